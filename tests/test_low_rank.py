"""LowRankLeastSquares: near the oracle, by itself, on a permuted stream, warm and cold."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

from malocate import (
    Completion,
    InvalidInput,
    InvalidType,
    LowRankLeastSquares,
    Observations,
    SoftImpute,
    Status,
    Synthetic,
)
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import balanced, descend
from malocate.estimators.tuning.ridge_path import Grid, Place, Walk


def error(done, truth):
    return float(np.mean((done.dense() - truth) ** 2))


def first(seen, count):
    return Observations(
        seen.rows[:count], seen.cols[:count], seen.values[:count],
        shape=seen.shape, scale=seen.scale,
    )  # fmt: skip


def oracle_error(seen, truth, rank):
    """Ridge least squares with the true rank on its own path, at the ridge best for the truth."""
    cells = Cells.from_entries(seen.entries)
    u, values, vt = np.linalg.svd(cells.matrix(cells.weights * cells.targets).toarray())
    left, right = u[:, :rank], vt[:rank].T
    errors = []
    for ridge in 0.7 * values[0] * 1.5 ** -np.arange(24.0):
        done = descend(cells, left, right, np.full(rank, ridge), max_steps=200, tol=1e-6)
        left, right = done.left, done.right
        errors.append(np.mean((left @ right.T - truth) ** 2))
    return min(errors)


@pytest.mark.parametrize("seed", range(3))
def test_it_comes_near_the_oracle_that_knows_the_rank(seed):
    source = Synthetic.low_rank((60, 50), rank=4, noise=0.1, rng=seed)
    seen = source.observe(1_400, rng=seed + 100)
    done = LowRankLeastSquares().fit(seen)
    assert error(done, source.truth) <= 1.3 * oracle_error(seen, source.truth, 4)


def test_the_rank_falls_out():
    source = Synthetic.low_rank((60, 50), rank=4, noise=0.1, rng=5)
    assert LowRankLeastSquares().fit(source.observe(2_000, rng=6)).rank == 4


@pytest.mark.parametrize("exponent", [1, 2])
def test_decaying_spectra_are_fitted_better_than_by_the_best_soft_impute(exponent):
    source = Synthetic.decaying((60, 50), exponent=exponent, noise=0.1, rng=3)
    seen = source.observe(1_500, rng=4)
    penalties = 20.0 * 1.4 ** -np.arange(16.0)
    rival = min(error(done, source.truth) for done in SoftImpute().path(seen, penalties))
    assert error(LowRankLeastSquares().fit(seen), source.truth) < rival


def test_pure_noise_gives_the_centre():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(40, size=800), rng.integers(30, size=800)
    done = LowRankLeastSquares().fit(
        Observations(rows, cols, rng.standard_normal(800), shape=(40, 30))
    )
    assert np.mean(done.dense() ** 2) < 0.01


def test_a_permutation_of_the_answers_changes_no_bit():
    seen = Synthetic.ratings((40, 30), rank=2, rng=1).observe(700)
    order = np.random.default_rng(2).permutation(len(seen))
    permuted = Observations(
        seen.rows[order], seen.cols[order], seen.values[order], shape=seen.shape, scale=seen.scale
    )
    one, other = (LowRankLeastSquares().fit(answers).dense() for answers in (seen, permuted))
    np.testing.assert_array_equal(one, other)


def test_every_answer_given_thrice_is_the_same_fit():
    seen = Synthetic.low_rank((40, 30), rank=2, rng=1).observe(700)
    thrice = Observations(
        np.repeat(seen.rows, 3), np.repeat(seen.cols, 3), np.repeat(seen.values, 3),
        shape=seen.shape,
    )  # fmt: skip
    one, other = (LowRankLeastSquares().fit(answers).dense() for answers in (seen, thrice))
    np.testing.assert_allclose(one, other, atol=1e-6)


class TestCentring:
    def test_strong_effects_are_taken_off(self):
        rng = np.random.default_rng(1)
        truth = np.add.outer(3 * rng.standard_normal(50), rng.standard_normal(40)) + 7
        rows, cols = rng.integers(50, size=900), rng.integers(40, size=900)
        seen = Observations(
            rows, cols, truth[rows, cols] + 0.1 * rng.standard_normal(900), shape=(50, 40)
        )
        done = LowRankLeastSquares().fit(seen)
        assert done.memory["centre"] == "additive"
        assert error(done, truth) < 0.01

    def test_a_low_rank_matrix_is_left_as_it_is(self):
        seen = Synthetic.low_rank((50, 40), rank=3, rng=1).observe(1_200)
        assert LowRankLeastSquares().fit(seen).memory["centre"] == "none"

    def test_the_mean_is_not_taken_off_where_components_explain_it_better(self):
        rng = np.random.default_rng(1)
        truth = np.outer(1 + rng.random(60), 1 + rng.random(50))
        rows, cols = rng.integers(60, size=900), rng.integers(50, size=900)
        seen = Observations(
            rows, cols, truth[rows, cols] + 0.1 * rng.standard_normal(900), shape=(60, 50)
        )
        done = LowRankLeastSquares().fit(seen)
        assert (done.memory["centre"], done.rank) == ("none", 1)

    @pytest.mark.parametrize("kind", ["none", "mean", "additive"])
    def test_a_given_centre_is_used(self, kind):
        seen = Synthetic.ratings((40, 30), rank=2, rng=1).observe(700)
        done = LowRankLeastSquares(centre=kind).fit(seen)
        assert done.memory["centre"] == kind
        assert (done.centre.offset != 0.0) == (kind != "none")
        assert (done.centre.rows.size > 0) == (kind == "additive")


class TestGivenSettings:
    seen = Synthetic.low_rank((40, 30), rank=3, noise=0.1, rng=1).observe(800)

    @pytest.mark.parametrize("rank", [0, 1, 2, 3])
    def test_a_given_rank_is_used(self, rank):
        assert LowRankLeastSquares(rank=rank).fit(self.seen).rank == rank

    def test_a_given_rank_finds_its_ridge(self):
        truth = Synthetic.low_rank((40, 30), rank=3, noise=0.1, rng=1).truth
        done = LowRankLeastSquares(rank=3).fit(self.seen)
        assert error(done, truth) <= 1.3 * oracle_error(self.seen, truth, 3)

    def test_a_given_ridge_is_the_same_for_all_components(self):
        done = LowRankLeastSquares(ridge=0.3).fit(self.seen)
        assert done.memory["ridge"] == 0.3
        cells = Cells.from_entries(self.seen.entries)
        again = descend(cells, *done.factors, np.full(done.rank, 0.3), max_steps=300, tol=1e-9)
        np.testing.assert_allclose(again.left @ again.right.T, done.dense(), atol=0.01)

    def test_rank_and_ridge_given_is_ridge_least_squares(self):
        done = LowRankLeastSquares(rank=2, ridge=0.5, centre="none").fit(self.seen)
        assert (done.rank, done.memory["ridge"]) == (2, 0.5)

    def test_a_huge_ridge_leaves_the_centre(self):
        done = LowRankLeastSquares(ridge=1e6, centre="mean").fit(self.seen)
        np.testing.assert_allclose(done.dense(), done.centre.offset, atol=1e-6)

    @pytest.mark.parametrize(
        ("settings", "kind", "sentence"),
        [
            ({"rank": -1}, InvalidInput, "rank is -1; it must be at least 0"),
            ({"rank": 2.0}, InvalidType, "rank is 2.0; it must be a whole number"),
            ({"rank": True}, InvalidType, "rank is True"),
            ({"ridge": 0.0}, InvalidInput, "ridge is 0.0; it must be a positive number"),
            ({"ridge": "big"}, InvalidType, "ridge is 'big'"),
            ({"centre": "median"}, InvalidInput, "centre is 'median'"),
            ({"tune": "never"}, InvalidInput, "tune is 'never'; it must be 'full', 'local' or"),
        ],
    )
    def test_senseless_settings_are_refused(self, settings, kind, sentence):
        with pytest.raises(kind, match=sentence):
            LowRankLeastSquares(**settings)


class TestScale:
    source = Synthetic.ratings((40, 30), rank=2, rng=1)

    def test_the_completion_stays_on_the_scale(self):
        done = LowRankLeastSquares().fit(self.source.observe(500))
        assert done.clip == (1, 5)
        assert done.dense().min() >= 1
        assert done.dense().max() <= 5

    def test_without_answers_it_is_the_middle(self):
        done = LowRankLeastSquares().fit(Observations([], [], [], shape=(2, 3), scale=(1, 5)))
        assert done.status is Status.EMPTY
        np.testing.assert_array_equal(done.dense(), 3.0)


class TestLocal:
    source = Synthetic.low_rank((60, 50), rank=3, noise=0.1, rng=1)
    seen = source.observe(1_650)
    before = LowRankLeastSquares().fit(first(seen, 1_500))

    def test_it_is_nearly_as_good_as_a_full_search(self):
        local = LowRankLeastSquares(tune="local").fit(self.seen, start=self.before)
        full = LowRankLeastSquares().fit(self.seen)
        assert error(local, self.source.truth) <= 1.1 * error(full, self.source.truth)

    def test_auto_goes_on_in_small_steps_and_searches_after_large_ones(self):
        auto = LowRankLeastSquares(tune="auto")
        local = LowRankLeastSquares(tune="local")
        small = auto.fit(self.seen, start=self.before)
        np.testing.assert_array_equal(
            small.dense(), local.fit(self.seen, start=self.before).dense()
        )
        early = auto.fit(first(self.seen, 1_200))
        large = auto.fit(self.seen, start=early)
        np.testing.assert_array_equal(large.dense(), LowRankLeastSquares().fit(self.seen).dense())

    def test_looks_can_follow_one_another(self):
        done = LowRankLeastSquares().fit(first(self.seen, 700))
        for count in range(800, 1_650, 100):
            done = LowRankLeastSquares(tune="local").fit(first(self.seen, count), start=done)
        full = LowRankLeastSquares().fit(first(self.seen, 1_600))
        assert error(done, self.source.truth) <= 1.2 * error(full, self.source.truth)

    def test_a_saved_completion_is_the_same_start(self, tmp_path):
        self.before.save(tmp_path / "before.npz")
        starts = [
            self.before,
            Completion.load(tmp_path / "before.npz"),
            pickle.loads(pickle.dumps(self.before)),
        ]
        fits = [LowRankLeastSquares(tune="local").fit(self.seen, start=s) for s in starts]
        for one, other in itertools.pairwise(fits):
            np.testing.assert_array_equal(one.dense(), other.dense())

    @pytest.mark.parametrize(
        "start",
        [
            None,
            SoftImpute(penalty=2.0).fit(seen),
            LowRankLeastSquares(rank=2).fit(seen),
            LowRankLeastSquares(rank=0).fit(seen),
            replace(SoftImpute(penalty=2.0).fit(seen), memory={"answers": None}),
        ],
    )
    @pytest.mark.parametrize("tune", ["local", "auto"])
    def test_a_start_that_does_not_fit_means_a_full_search(self, start, tune):
        local = LowRankLeastSquares(tune=tune).fit(self.seen, start=start)
        np.testing.assert_array_equal(local.dense(), LowRankLeastSquares().fit(self.seen).dense())

    def test_a_full_search_ignores_its_start(self):
        started = LowRankLeastSquares().fit(self.seen, start=self.before)
        np.testing.assert_array_equal(started.dense(), LowRankLeastSquares().fit(self.seen).dense())

    def test_a_start_of_another_shape_is_refused(self):
        with pytest.raises(InvalidInput, match="start has shape"):
            LowRankLeastSquares(tune="local").fit(
                Synthetic.low_rank((9, 9), rank=1).observe(20), start=self.before
            )


class TestDegenerate:
    @pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2), (3, 50)])
    @pytest.mark.parametrize("count", [1, 2, 5, 40])
    def test_small_shapes_are_completed(self, shape, count):
        rng = np.random.default_rng(count)
        rows, cols = (rng.integers(side, size=count) for side in shape)
        done = LowRankLeastSquares().fit(
            Observations(rows, cols, rng.standard_normal(count), shape=shape)
        )
        assert np.isfinite(done.dense()).all()
        assert np.abs(done.dense()).max() < 10

    @pytest.mark.parametrize("value", [0.0, 2.5, -1e-9, 1e9])
    def test_constant_answers_are_that_constant(self, value):
        rng = np.random.default_rng(0)
        rows, cols = rng.integers(20, size=150), rng.integers(15, size=150)
        done = LowRankLeastSquares().fit(
            Observations(rows, cols, np.full(150, value), shape=(20, 15))
        )
        np.testing.assert_allclose(done.dense(), value, rtol=1e-9)
        assert done.rank == 0

    def test_rows_and_columns_without_answers_get_the_centre(self):
        source = Synthetic.low_rank((30, 20), rank=1, rng=0)
        seen = source.observe(600)
        kept = (seen.rows != 3) & (seen.cols != 5)
        done = LowRankLeastSquares(centre="none").fit(
            Observations(seen.rows[kept], seen.cols[kept], seen.values[kept], shape=(30, 20))
        )
        np.testing.assert_array_equal(done.predict(3, np.arange(20)), 0.0)
        np.testing.assert_array_equal(done.predict(np.arange(30), 5), 0.0)

    @pytest.mark.parametrize("unit", [1e-80, 1e-6, 1e6, 1e80])
    def test_the_unit_of_the_answers_does_not_matter(self, unit):
        seen = Synthetic.low_rank((30, 20), rank=2, rng=0).observe(300)
        scaled = Observations(seen.rows, seen.cols, unit * seen.values, shape=seen.shape)
        one, other = (LowRankLeastSquares().fit(answers).dense() for answers in (seen, scaled))
        np.testing.assert_allclose(other / unit, one, rtol=1e-3, atol=1e-3)


class TestPath:
    seen = Synthetic.low_rank((40, 30), rank=3, noise=0.1, rng=1).observe(600)

    def walk(self, cap=20):
        cells = Cells.from_entries(self.seen.entries)
        return Walk(cells, Grid.of(cells), cap)

    def test_the_plain_path_solves_the_nuclear_norm_problem(self):
        walk = self.walk(cap=30)
        for place in range(8):
            left, right = walk.at(Place(place))
            best = SoftImpute(penalty=walk.grid[place], tol=1e-6).fit(self.seen)
            miss = walk.cells.matrix(walk.cells.weights).toarray() > 0
            reached, least = (
                0.5 * np.sum(walk.cells.weights * (walk.cells.targets - m[miss]) ** 2)
                + walk.grid[place] * np.linalg.norm(m, "nuc")
                for m in (left @ right.T, best.dense())
            )
            assert least * (1 - 1e-5) <= reached <= least * 1.01

    def test_a_place_is_the_same_however_it_was_reached(self):
        one, other = self.walk(), self.walk()
        for place in (Place(3), Place(9, 6), Place(7, 4)):
            one.at(place)
        for a, b in zip(one.at(Place(8, 6)), other.at(Place(8, 6)), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_reweighting_drops_components_and_shrinks_large_ones_less(self):
        walk = self.walk()
        plain, pruned = (balanced(*walk.at(Place(8, d)))[1] for d in (-1, 5))
        assert len(pruned) < len(plain)
        ridges = walk.ridges(pruned, Place(8, 5))
        assert np.all(np.diff(ridges) >= 0)

    def test_a_grid_ends_at_its_floor(self):
        grid = Grid(top=10.0, floor=0.3)
        assert grid[grid.last] == 0.3 < grid[grid.last - 1]
        assert Grid(top=0.3, floor=0.3).last == 0
