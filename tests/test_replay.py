"""Recorded answers that answer again: with and without replacement, by key, masked where none."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from draws import draws_of, part_of
from scipy import stats

from malocate import InvalidInput, InvalidType, Observations, Replay
from malocate.sources import Asked

LINES = pandas.DataFrame(
    {
        "who": ["Al", "Al", "Al", "Bo", "Bo", "Cy"],
        "wine": ["red", "red", "white", "red", "red", "white"],
        "stars": [1, 4, 2, 5, 3, 3],
    }
)
NAMES = {"row": "who", "column": "wine", "value": "stars"}


@pytest.fixture
def pool():
    """Answers 0 to 199 about 12 cells, some of them asked more often than others."""
    rng = np.random.default_rng(0)
    rows, cols = rng.choice(4, 200, p=[0.1, 0.2, 0.3, 0.4]), rng.integers(3, size=200)
    return Observations(rows, cols, np.arange(200), shape=(4, 3))


def visits_to(cell: tuple[int, int], n: int, first: int = 0) -> Asked:
    """Give n visits of one cell."""
    rows, cols = (np.full(n, side) for side in cell)
    numbers = np.arange(first, first + n)
    return Asked(rows, cols, numbers, numbers)


def answers_at(pool, cell):
    return pool.values[(pool.rows == cell[0]) & (pool.cols == cell[1])]


class TestWithReplacement:
    def test_the_truth_is_the_mean_answer(self, pool):
        truth = Replay(pool).truth
        for cell in np.ndindex(4, 3):
            assert truth[cell] == pytest.approx(answers_at(pool, cell).mean())

    def test_each_answer_of_a_cell_is_as_likely(self, pool):
        drawn = Replay(pool).answer(visits_to((3, 1), 20_000), 1, "a")
        expected = np.sort(answers_at(pool, (3, 1)))
        values, counts = np.unique(drawn, return_counts=True)
        assert (values == expected).all()
        assert stats.chisquare(counts).pvalue > 0.001

    def test_repeats_are_independent(self, pool):
        drawn = Replay(pool).answer(visits_to((3, 1), 20_000), 1, "a")
        assert np.corrcoef(drawn[1:], drawn[:-1])[0, 1] == pytest.approx(0, abs=0.03)

    def test_answers_are_the_cells_own(self, pool):
        asked = draws_of((4, 3), 500)
        for value, row, col in zip(
            Replay(pool).answer(asked, 1, "a"), asked.rows, asked.cols, strict=True
        ):
            assert value in answers_at(pool, (row, col))


class TestWithoutReplacement:
    def test_every_answer_is_used_once(self, pool):
        source, own = Replay(pool, replace=False), np.sort(answers_at(pool, (2, 0)))
        drawn = source.answer(visits_to((2, 0), len(own)), 1, "a")
        assert (np.sort(drawn) == own).all()
        assert (drawn != own).any()

    def test_the_truth_is_unknown(self, pool):
        assert Replay(pool, replace=False).truth is None

    def test_the_order_is_by_chance(self, pool):
        """Each answer of a cell comes first under about as many keys."""
        source, own = Replay(pool, replace=False), answers_at(pool, (0, 1))
        asked = visits_to((0, 1), 2)
        drawn = np.array([source.answer(asked, run, "a") for run in range(3_000)])
        for visit in (0, 1):
            values, counts = np.unique(drawn[:, visit], return_counts=True)
            assert len(values) == len(own)
            assert stats.chisquare(counts).pvalue > 0.001

    def test_errors_of_repeats_are_negatively_correlated(self, pool):
        source, own = Replay(pool, replace=False), answers_at(pool, (0, 1))
        drawn = np.array([source.answer(visits_to((0, 1), 2), run, "a") for run in range(3_000)])
        expected = -1 / (len(own) - 1)
        assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(expected, abs=0.06)
        assert expected < -0.1

    def test_an_exhausted_cell_starts_over_in_a_new_order(self, pool):
        source, own = Replay(pool, replace=False), np.sort(answers_at(pool, (2, 0)))
        asked = visits_to((2, 0), 3 * len(own))
        passes = source.answer(asked, 1, "a").reshape(3, -1)
        assert all((np.sort(each) == own).all() for each in passes)
        assert (passes[0] != passes[1]).any()
        assert (passes[1] != passes[2]).any()
        assert source.restarts(asked).tolist() == [False] * len(own) + [True] * 2 * len(own)

    def test_an_exhausted_cell_can_refuse(self, pool):
        source, n = Replay(pool, replace=False, exhausted="refuse"), len(answers_at(pool, (2, 0)))
        assert len(source.answer(visits_to((2, 0), n), 1, "a")) == n
        with pytest.raises(InvalidInput, match=rf"cell \(2, 0\) for the {n + 1}. time, and it has"):
            source.answer(visits_to((2, 0), n + 1), 1, "a")

    def test_draws_of_other_numbers_make_no_difference(self, pool):
        source, asked = Replay(pool, replace=False), draws_of((4, 3), 90)
        later = Asked(asked.rows, asked.cols, asked.draws + 1000, asked.visits)
        assert (source.answer(asked, 1, "a") == source.answer(later, 1, "a")).all()


@pytest.mark.parametrize("replace", [True, False])
class TestEitherWay:
    def test_it_does_not_matter_how_draws_are_cut_into_calls(self, pool, replace):
        source, asked = Replay(pool, replace=replace), draws_of((4, 3), 900)
        whole = source.answer(asked, 1, "a")
        order = np.random.default_rng(0).permutation(900)
        for part in (order[:400], order[400:401], order[401:]):
            assert (source.answer(part_of(asked, part), 1, "a") == whole[part]).all()
        assert len(source.answer(part_of(asked, order[:0]), 1, "a")) == 0

    def test_the_key_counts(self, pool, replace):
        source, asked = Replay(pool, replace=replace), draws_of((4, 3), 100)
        one, again, other = (source.answer(asked, 1, name) for name in "aab")
        assert (one == again).all()
        assert (one != other).any()

    def test_the_order_of_the_lines_does_not_count(self, pool, replace):
        asked = draws_of((4, 3), 100)
        mixed = pool.take(np.random.default_rng(1).permutation(200))
        one, two = (Replay(each, replace=replace).answer(asked, 1) for each in (pool, mixed))
        assert (one == two).all()

    def test_cells_without_answers_are_masked_and_refused(self, replace):
        source = Replay(LINES, **NAMES, replace=replace)
        assert source.mask.tolist() == [[False, False], [False, True], [True, False]]
        with pytest.raises(InvalidInput, match=r"Draw 0 asks cell \(1, 1\), which has no recorded"):
            source.answer(visits_to((1, 1), 1), 1)
        with pytest.raises(InvalidInput, match=r"asks cell \(2, 0\)"):
            source.answer(visits_to((2, 0), 1), 1)


def test_a_segment_gets_labels_scale_and_mask():
    source = Replay(LINES, **NAMES, scale=(1, 5))
    segment = source.segment("north", weight=2.0)
    assert segment.labels == (("Al", "Bo", "Cy"), ("red", "white"))
    assert (segment.scale, segment.weight, segment.n_askable) == ((1, 5), 2.0, 4)
    assert segment.mask.tolist() == source.mask.tolist()
    assert np.isnan(source.truth).tolist() == source.mask.tolist()


def test_a_full_pool_masks_nothing(pool):
    assert Replay(pool).mask is None
    assert Replay(pool).segment("a").n_askable == 12


def test_a_frame_of_segments_gives_a_source_each():
    lines = LINES.assign(town=["x", "y", "x", "y", "y", "y"])
    sources = Replay.from_frame(lines, segment="town", **NAMES, scale=(1, 5), replace=False)
    assert {name: source.shape for name, source in sources.items()} == {"x": (1, 2), "y": (3, 2)}
    assert all(not source.replace and source.pool.scale == (1, 5) for source in sources.values())


def test_the_mask_is_closed_to_writing():
    source = Replay(LINES, **NAMES)
    for array in (source.mask, source.truth):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Replay(LINES.assign(segment="x"), **NAMES), InvalidInput, "has 1 segments"),
        (lambda: Replay.from_frame(LINES, **NAMES), InvalidInput, "no column 'segment'"),
        (lambda: Replay(LINES, **NAMES, replace="no"), InvalidInput, "replace is 'no'"),
        (lambda: Replay(LINES, **NAMES, exhausted="stop"), InvalidInput, "exhausted is 'stop'"),
        (
            lambda: Replay(Observations([], [], [], shape=(2, 2))),
            InvalidInput,
            "There are no answers to replay",
        ),
        (
            lambda: Replay(Observations([0], [0], [1], shape=(2, 2)), value="stars"),
            InvalidType,
            "value: only a frame's columns are read by name",
        ),
    ],
)
def test_bad_pools_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
