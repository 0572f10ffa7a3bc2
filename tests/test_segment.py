"""Segments and the loss over them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from malocate import InvalidInput, InvalidType, Loss, Segment


def test_labels_give_the_shape():
    assert Segment("a", labels=(list("xyz"), list("uv"))).shape == (3, 2)


def test_a_segment_hands_scale_labels_and_mask_on():
    mask = np.array([[True, False]])
    answers = Segment("a", (1, 2), scale=(1, 5), mask=mask).observations([0], [1], [3])
    assert answers.scale == (1, 5)
    assert answers.mask is not None
    assert answers.mask.tolist() == mask.tolist()


def test_replacing_a_field_keeps_the_others():
    one = Segment("a", (3, 2), weight=2, cap=9)
    assert replace(one, weight=2.0) == one
    assert replace(one, cap=8) != one


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "neither shape nor labels"),
        ({"shape": (0, 3)}, r"Segment 'a': shape is \(0, 3\); both sides must be at least 1"),
        ({"shape": (2, 2), "weight": 0}, "weight is 0; it must be a positive number"),
        ({"shape": (2, 2), "cost": -1}, "cost is -1"),
        ({"shape": (2, 2), "cost": math.nan}, "cost is nan"),
        ({"shape": (2, 2), "cap": 0}, "cap is 0; it must be at least 1"),
        ({"shape": (2, 2), "cap": 3, "floor": 4}, "its cap is 3 and its floor 4"),
        ({"shape": (1, 1), "mask": [[True]]}, "its mask leaves no cell to ask"),
    ],
)
def test_bad_segments_are_refused(settings, words):
    with pytest.raises(InvalidInput, match=words):
        Segment("a", **settings)


def test_a_name_must_be_text():
    with pytest.raises(InvalidType, match="name is 3"):
        Segment(3, (2, 2))


@pytest.mark.parametrize(("p", "loss"), [(1, 12.0), (2, math.sqrt(80)), (math.inf, 8.0)])
def test_the_weights_are_inside_the_power(p, loss):
    assert Loss(p, (2, 1)).of([4.0, 4.0]) == pytest.approx(loss)
    assert Loss(p).of([4.0, 4.0], weights=(2, 1)) == pytest.approx(loss)


def test_a_loss_per_entry_needs_the_entries():
    with pytest.raises(InvalidInput, match=r"weights per entry.*pass weights=design\.weights"):
        Loss(weights="per_entry").of([3.0, 4.0])
    assert Loss(1, "per_entry").of([3.0, 4.0], (1 / 3, 1 / 2)) == pytest.approx(3.0)


def test_an_error_below_zero_is_refused():
    with pytest.raises(InvalidInput, match=r"errors\[1\] is -4; a squared error is at least 0"):
        Loss(1).of([3.0, -4.0])


def test_askable_cells_are_counted_once(monkeypatch):
    one = Segment("a", (1, 2), mask=[[True, False]])
    assert one.n_askable == 1
    monkeypatch.setattr(np, "count_nonzero", pytest.fail)
    assert one.n_askable == 1
    assert replace(one, mask=None).n_askable == 2


def test_no_segment_no_loss():
    assert Loss(2).of([]) == 0.0


@pytest.mark.parametrize("p", [1, 2.5, math.inf])
def test_an_unknown_error_makes_the_loss_unknown(p):
    assert Loss(p).of([1.0, math.inf]) == math.inf


def test_the_loss_falls_with_p_and_ends_at_the_maximum():
    errors = [1.0, 2.0, 3.0]
    losses = [Loss(p).of(errors) for p in (1, 1.5, 2, 10, 1e6, math.inf)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-2] == pytest.approx(3.0)


@pytest.mark.parametrize("p", [0.5, math.nan, -1])
def test_the_power_is_at_least_one(p):
    with pytest.raises(InvalidInput, match="it must be at least 1"):
        Loss(p)


def test_each_segment_has_one_weight():
    with pytest.raises(InvalidInput, match="There are 2 weights and 3 segments"):
        Loss(1, (1, 2)).of([1, 2, 3])
