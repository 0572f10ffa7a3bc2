"""Averages of completions: the ambiguity identity, distances and misses, without dense matrices."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from malocate import (
    Completion,
    CrossFit,
    InvalidInput,
    InvalidType,
    LowRankLeastSquares,
    Synthetic,
    TooLarge,
    error_band,
)
from malocate.confidence import ensemble
from malocate.confidence.ensemble import Ensemble, ambiguity, clipped, distance, largest_miss
from malocate.estimators import base
from malocate.estimators.centring import Centre

SHAPE = 23, 17
SCALE = -1.0, 1.2
CLIPS = pytest.mark.parametrize("clip", [None, SCALE], ids=["unclipped", "clipped"])
MASKS = pytest.mark.parametrize("masked", [False, True], ids=["all cells", "masked"])
CENTRES = pytest.mark.parametrize("centre", ["none", "mean", "additive", "mixed"])


def centre_of(kind, rng, place=0):
    if kind == "mixed":
        kind = ("none", "additive", "mean")[place % 3]
    if kind == "none":
        return Centre()
    if kind == "mean":
        return Centre(rng.normal())
    return Centre(rng.normal(), rng.standard_normal(SHAPE[0]), rng.standard_normal(SHAPE[1]))


def some(count=4, centre="none", clip=None, seed=0, shape=SHAPE):
    rng = np.random.default_rng(seed)
    return [
        Completion(
            rng.standard_normal((shape[0], 1 + place)),
            rng.standard_normal((shape[1], 1 + place)),
            centre_of(centre, rng, place),
            clip=clip,
        )
        for place in range(count)
    ]


def a_mask(masked, seed=5):
    return np.random.default_rng(seed).random(SHAPE) < 0.3 if masked else None


def mean_of(squares, mask):
    return squares.mean() if mask is None else squares[~mask].mean()


def dense_of(members):
    return np.array([member.dense() for member in members])


@CLIPS
@MASKS
@CENTRES
def test_the_error_of_the_average_is_the_average_error_less_the_ambiguity(clip, masked, centre):
    members, mask = some(centre=centre, clip=clip), a_mask(masked)
    truth = np.random.default_rng(9).standard_normal(SHAPE)
    errors = [mean_of((member.dense() - truth) ** 2, mask) for member in members]
    error = mean_of((Ensemble(tuple(members)).dense() - truth) ** 2, mask)
    assert error == pytest.approx(np.mean(errors) - ambiguity(members, mask), rel=1e-10)
    assert ambiguity(members, mask) > 0.05


@CENTRES
def test_factors_and_blocks_give_the_same(centre):
    completion, *members = some(5, centre)
    nothing = np.zeros(SHAPE, dtype=bool)  # makes them walk
    assert ambiguity(members) == pytest.approx(ambiguity(members, nothing), rel=1e-10)
    walked = distance(completion, members, nothing)
    assert distance(completion, members) == pytest.approx(walked, rel=1e-10)


def test_factors_are_reduced_piece_by_piece(monkeypatch):
    completion, *members = some(3, "additive")
    whole = ambiguity(members), distance(completion, members)
    monkeypatch.setattr(ensemble, "_TALL", 1)
    monkeypatch.setattr(ensemble, "_WALKED", 40)
    pieces = ambiguity(members), distance(completion, members)
    np.testing.assert_allclose(pieces, whole, rtol=1e-12)
    clip = [replace(member, clip=SCALE) for member in members]
    np.testing.assert_allclose(ambiguity(clip), dense_of(clip).var(axis=0).mean(), rtol=1e-12)


def test_a_tiny_ambiguity_on_a_large_level_is_not_lost():
    """A difference of two large numbers would leave nothing of it."""
    first = some(1, "additive")[0]
    lifted = replace(first, centre=replace(first.centre, offset=1e8))
    moved = replace(lifted, left=lifted.left * (1 + 1e-6))
    exact = (0.5e-6) ** 2 * np.mean((first.left @ first.right.T) ** 2)
    assert ambiguity([lifted, moved]) == pytest.approx(exact, rel=1e-6)


@CLIPS
@MASKS
@CENTRES
def test_distance_is_that_of_the_dense_matrices(clip, masked, centre):
    completion, *members = some(5, centre, clip)
    mask = a_mask(masked)
    apart = completion.dense() - dense_of(members).mean(axis=0)
    assert distance(completion, members, mask) == pytest.approx(
        math.sqrt(mean_of(apart**2, mask)), rel=1e-12
    )


@pytest.mark.parametrize("ranks", [(0, 0), (0, 2), (30, 30)], ids=str)
def test_any_rank_will_do(ranks):
    rng = np.random.default_rng(2)
    members = [
        Completion(rng.normal(size=(SHAPE[0], rank)), rng.normal(size=(SHAPE[1], rank)))
        for rank in ranks
    ]
    exact = dense_of(members).var(axis=0).mean()
    assert ambiguity(members) == pytest.approx(exact, rel=1e-12, abs=1e-30)


@CLIPS
@MASKS
def test_the_largest_miss_is_that_of_the_dense_matrix(clip, masked, monkeypatch):
    monkeypatch.setattr(ensemble, "_WALKED", 40)
    completion, mask = some(1, "additive", clip)[0], a_mask(masked)
    values = completion.dense()
    misses = np.maximum(values - SCALE[0], SCALE[1] - values) ** 2
    expected = (misses if mask is None else misses[~mask]).max()
    assert largest_miss(completion, SCALE, mask) == expected


def test_the_largest_miss_inside_the_scale_is_below_its_length():
    middle = Completion(np.ones((2, 1)), np.full((2, 1), 3.0))
    assert largest_miss(middle, (1.0, 5.0)) == 4.0


@CLIPS
def test_masked_cells_do_not_count(clip):
    members = some(3, clip=clip)
    mask = np.ones(SHAPE, dtype=bool)
    mask[2, 3] = False
    values = np.array([member.predict(2, 3).item() for member in members])
    apart = abs(values[0] - values[1:].mean())
    assert ambiguity(members, mask) == pytest.approx(values.var(), rel=1e-12)
    assert distance(members[0], members[1:], mask) == pytest.approx(apart, rel=1e-12)
    worst = max(values[0] - SCALE[0], SCALE[1] - values[0]) ** 2
    assert largest_miss(members[0], SCALE, mask) == pytest.approx(worst, rel=1e-12)


def test_a_matrix_that_cannot_be_asked_at_all_has_no_error():
    members, mask = some(2), np.ones(SHAPE, dtype=bool)
    assert ambiguity(members, mask) == distance(members[0], members, mask) == 0.0
    assert largest_miss(members[0], SCALE, mask) == pytest.approx(1.1**2)


@CLIPS
@MASKS
@CENTRES
def test_above_the_limit_all_is_valid_and_wider(clip, masked, centre, monkeypatch):
    completion, *members = some(5, centre, clip)
    mask = a_mask(masked)
    exact = distance(completion, members, mask)
    spread = ambiguity(members, mask)
    monkeypatch.setattr(ensemble, "CELLS_LIMIT", 10)
    wider = distance(completion, members, mask)
    if clip is None and mask is None:
        assert (wider, ambiguity(members)) == (exact, spread)
    else:
        assert wider > exact
        assert ambiguity(members, mask) == 0.0


def test_above_the_limit_the_distance_is_still_near_where_completions_are(monkeypatch):
    completion = some(1, "additive", SCALE)[0]
    near = [replace(completion, left=completion.left + step) for step in (1e-3, 2e-3)]
    exact = distance(completion, near)
    monkeypatch.setattr(ensemble, "CELLS_LIMIT", 10)
    assert exact < distance(completion, near) < 3 * exact


def test_above_the_limit_the_distance_is_at_most_the_scale(monkeypatch):
    monkeypatch.setattr(ensemble, "CELLS_LIMIT", 10)
    far = [Completion(np.full((9, 1), level), np.ones((9, 1)), clip=(0, 1)) for level in (-9, 9.0)]
    assert distance(far[0], far[1:]) == 1.0


def test_completions_clipped_otherwise_are_walked_at_any_size(monkeypatch):
    """Clipping one side only may drive two matrices apart, so that no bound would hold."""
    completion, other = some(2, "additive")
    members = [clipped(other, (0.0, 0.5))]
    exact = distance(completion, members)
    monkeypatch.setattr(ensemble, "CELLS_LIMIT", 10)
    assert distance(completion, members) == exact


def test_above_the_limit_the_largest_miss_is_the_scale_and_needs_clipping(monkeypatch):
    completion = some(1)[0]
    monkeypatch.setattr(ensemble, "CELLS_LIMIT", 10)
    assert largest_miss(clipped(completion, SCALE), SCALE) == (SCALE[1] - SCALE[0]) ** 2
    for clip in (None, (-2.0, 1.0)):
        with pytest.raises(InvalidInput, match=r"not clipped to the scale \(-1.0, 1.2\).*clipped"):
            largest_miss(replace(completion, clip=clip), SCALE)


def test_clipped_to_the_scale():
    done = some(1, "mean")[0]
    assert clipped(done, None) is done
    once = clipped(done, SCALE)
    np.testing.assert_array_equal(once.dense(), np.clip(done.dense(), *SCALE))
    assert clipped(once, SCALE) is once
    inner = replace(done, clip=(0.0, 1.0))
    assert clipped(inner, SCALE) is inner


@pytest.mark.parametrize("clip", [(-5.0, 5.0), (-5.0, 0.0), (2.0, 3.0)], ids=str)
def test_clipping_what_is_clipped_to_another_scale_clips_its_values(clip):
    done = replace(some(1)[0], clip=clip)
    np.testing.assert_array_equal(clipped(done, SCALE).dense(), np.clip(done.dense(), *SCALE))


@CLIPS
def test_an_ensemble_is_the_average(clip):
    members = some(3, "mixed", clip)
    average, expected = Ensemble(tuple(members)), dense_of(members).mean(axis=0)
    assert average.shape == SHAPE
    assert repr(average) == "Ensemble(23×17, average of 3 completions)"
    np.testing.assert_allclose(average.dense(), expected, atol=1e-14)
    rows, cols = np.indices(SHAPE)
    np.testing.assert_allclose(average.predict(rows, cols), expected, atol=1e-14)
    walked = list(average.blocks(cells=40))
    assert [rows.start for rows, _ in walked] == list(range(0, SHAPE[0], 2))
    np.testing.assert_allclose(np.vstack([block for _, block in walked]), expected, atol=1e-14)
    again = pickle.loads(pickle.dumps(average))
    np.testing.assert_array_equal(again.dense(), average.dense())


def test_an_ensemble_of_one_is_that_completion():
    (done,) = some(1, "additive", SCALE)
    alone = Ensemble((done,))
    assert repr(alone) == "Ensemble(23×17, average of 1 completion)"
    np.testing.assert_array_equal(alone.dense(), done.dense())
    np.testing.assert_array_equal(alone.predict(3, [1, 2]), done.predict(3, [1, 2]))
    assert alone.predict(3, 1).item() == done.predict(3, 1).item()
    assert ambiguity(alone.members) == pytest.approx(0.0, abs=1e-30)
    assert distance(done, alone.members) == 0.0


def test_an_ensemble_gives_a_labelled_frame():
    labels = (("ada", "bo"), ("tea",))
    members = (
        Completion(np.full((2, 1), level), np.ones((1, 1)), labels=labels) for level in (1.0, 2.0)
    )
    average = Ensemble(members)
    assert average.labels == labels
    frame = average.to_frame()
    assert frame.to_dict("list") == {
        "row": ["ada", "bo"],
        "column": ["tea", "tea"],
        "value": [1.5, 1.5],
    }


def test_a_large_dense_average_is_refused_unless_forced(monkeypatch):
    average = Ensemble(tuple(some(2)))
    monkeypatch.setattr(base, "DENSE_LIMIT", 10)
    with pytest.raises(TooLarge, match=r"shape \(23, 17\) has 391 cells.*walk `blocks\(\)`"):
        average.dense()
    with pytest.raises(TooLarge, match="walk `blocks"):
        average.to_frame()
    assert average.dense(force=True).shape == SHAPE


def test_members_must_be_completions_of_one_matrix():
    small = some(1, shape=(3, 3))[0]
    with pytest.raises(InvalidInput, match="members is empty"):
        Ensemble(())
    with pytest.raises(InvalidInput, match=r"members\[1\] has shape \(3, 3\)"):
        ambiguity([some(1)[0], small])
    with pytest.raises(InvalidInput, match="must complete the same matrix"):
        distance(small, some(2))
    with pytest.raises(InvalidType, match=r"members\[0\] is a str"):
        ambiguity(["fold"])


@pytest.mark.parametrize("mask", [np.zeros((2, 2), dtype=bool), np.zeros(SHAPE)])
def test_a_mask_of_another_matrix_is_refused(mask):
    members = some(2)
    for measure in (
        lambda: ambiguity(members, mask),
        lambda: distance(members[0], members, mask),
        lambda: largest_miss(members[0], SCALE, mask),
    ):
        with pytest.raises(InvalidInput, match=r"mask has shape .* it must be boolean"):
            measure()


def peak_bytes(work):
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@CLIPS
def test_no_dense_matrix_is_held(clip):
    shape = (20_000, 5_000) if clip is None else (8_000, 2_500)
    members = some(3, clip=clip, shape=shape)
    dense = 8 * math.prod(shape)
    assert peak_bytes(lambda: ambiguity(members)) < dense / 8
    assert peak_bytes(lambda: distance(members[0], members[1:])) < dense / 8


def test_many_answers_are_worth_a_walk(monkeypatch):
    """Where a fit has cost more than a walk does, the exact figures are found at any size."""
    answers = Synthetic.ratings((30, 20), rank=2, rng=0).observe(400, rng=1)
    exact = error_band(LowRankLeastSquares(rank=2), answers, scheme=CrossFit(2))
    monkeypatch.setattr(ensemble, "CELLS_LIMIT", 10)
    walked = error_band(LowRankLeastSquares(rank=2), answers, scheme=CrossFit(2))
    assert (walked.upper, walked.estimate) == (exact.upper, exact.estimate)
    monkeypatch.setattr(ensemble, "CELLS_AN_ANSWER", 1)
    wider = error_band(LowRankLeastSquares(rank=2), answers, scheme=CrossFit(2))
    assert wider.upper > exact.upper
