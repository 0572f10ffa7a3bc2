"""Look grids and the chance of error that each look spends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malocate.confidence.spending import Anytime, first_draws
from malocate.errors import InvalidInput, InvalidType
from malocate.problem import Observations


@given(delta=st.floats(0.001, 0.5), segments=st.integers(1, 30), looks=st.integers(1, 400))
def test_all_looks_at_all_segments_spend_no_more_than_delta(delta, segments, looks):
    grid = Anytime(delta=delta, segments=segments)
    spent = segments * sum(grid.delta_at(number) for number in range(1, looks + 1))
    assert spent <= delta * (1 + 1e-12)
    assert spent >= delta * (1 - 1.01 / (looks + 1))


@given(first=st.integers(10, 2000), ratio=st.floats(1.1, 4.0), draws=st.integers(0, 10**7))
def test_the_look_reached_is_the_last_that_fits(first, ratio, draws):
    grid = Anytime(first=first, ratio=ratio)
    look = grid.reached(draws)
    if look is None:
        assert draws < grid.size(1)
    else:
        assert look.size == grid.size(look.number) <= draws < grid.size(look.number + 1)
        assert look.delta == grid.delta_at(look.number)


def test_a_list_of_sizes_ends():
    grid = Anytime(sizes=(10, 30))
    assert grid.reached(9) is None
    assert grid.reached(10**9).number == 2
    with pytest.raises(InvalidInput, match="no look 3"):
        grid.size(3)


def test_a_look_judges_draws_by_their_number_not_by_when_they_were_answered():
    seen = Observations([0] * 4, [0] * 4, range(4), shape=(1, 1), draws=[7, 1, 0, 3])
    look = Anytime(sizes=(4, 8)).reached(7)
    assert sorted(first_draws(seen, look).draws.tolist()) == [0, 1, 3]


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"delta": 0}, InvalidInput, "between 0 and 1"),
        ({"delta": 1.0}, InvalidInput, "between 0 and 1"),
        ({"segments": 0}, InvalidInput, "at least 1"),
        ({"sizes": (5, 5)}, InvalidInput, "must rise"),
        ({"sizes": ()}, InvalidInput, "one at least"),
        ({"sizes": (5.5,)}, InvalidType, "whole number"),
        ({"last": 0}, InvalidInput, "last is 0; it must be at least 1"),
        ({"sizes": 5}, InvalidType, "list of whole numbers"),
        ({"first": 2, "ratio": 1.1}, InvalidInput, "second would not be larger"),
    ],
)
def test_bad_grids_are_refused(settings, kind, words):
    with pytest.raises(kind, match=words):
        Anytime(**settings)


def test_a_grid_without_end_does_not_overflow():
    grid = Anytime()
    assert grid.size(5000) == 2**63 - 1
    with pytest.raises(InvalidInput, match="at least 1"):
        grid.delta_at(0)
    with pytest.raises(InvalidInput, match="no look 9"):
        Anytime(sizes=(5, 6)).delta_at(9)
    with pytest.raises(InvalidType, match="whole number"):
        grid.reached("all")


def test_sizes_may_grow_by_a_step():
    grid = Anytime(first=100, step=40)
    assert [grid.size(number) for number in (1, 2, 3)] == [100, 140, 180]
    assert grid.reached(99) is None
    assert [grid.reached(draws).number for draws in (100, 139, 140, 180)] == [1, 1, 2, 3]


def test_a_grid_that_steps_spends_no_more_than_delta():
    grid = Anytime(delta=0.05, first=10, step=1, segments=3)
    assert 3 * sum(grid.delta_at(number) for number in range(1, 5000)) < 0.05


@given(
    settings=st.sampled_from([{"ratio": 1.25}, {"step": 7}, {"sizes": (5, 20, 40)}]),
    last=st.integers(1, 600),
    draws=st.integers(0, 700),
)
def test_a_last_size_ends_the_grid(settings, last, draws):
    grid = Anytime(first=20, last=last, **settings)
    plain = Anytime(first=20, **settings)
    ends = plain.looks or 100
    sizes = [n for n in map(plain.size, range(1, ends + 1)) if n < last] + [last]
    assert [grid.size(number) for number in range(1, grid.looks + 1)] == sizes
    below = [size for size in sizes if size <= draws]
    look = grid.reached(draws)
    assert (look.number, look.size) == (len(below), below[-1]) if below else look is None
    assert grid.next_size(draws) == next((size for size in sizes if size > draws), None)
    with pytest.raises(InvalidInput, match=f"no look {len(sizes) + 1}"):
        grid.delta_at(len(sizes) + 1)


def test_a_grid_that_hardly_grows_is_counted_at_once():
    grid = Anytime(first=10**7, ratio=1 + 1e-7, last=10**12)
    assert grid.size(grid.looks - 1) < 10**12 == grid.size(grid.looks)
    assert grid.reached(10**12).number == grid.looks > 10**8


def test_sizes_never_fall_however_large():
    grid = Anytime(first=2**40, ratio=2.0)
    sizes = [grid.size(number) for number in range(1, 80)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 2**63 - 1
