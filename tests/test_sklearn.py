"""malocate.sklearn: the regressor on pairs and the imputer, in scikit-learn's own machinery."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from malocate import (
    InvalidInput,
    InvalidType,
    LowRankLeastSquares,
    Observations,
    ProjectedLeastSquares,
    SoftImpute,
    SquareRootLasso,
    Synthetic,
)
from malocate.sklearn import MatrixCompletionRegressor, MatrixImputer

SOURCE = Synthetic.low_rank((40, 25), rank=2, noise=0.1, rng=0)


def pairs_and_answers(n=900, rng=1):
    answers = SOURCE.observe(n, rng=rng)
    return np.column_stack([answers.rows, answers.cols]), np.array(answers.values)


def with_holes(matrix, share=0.3, rng=2):
    holes = np.random.default_rng(rng).random(matrix.shape) < share
    return np.where(holes, np.nan, matrix), holes


def noisy(rng=3):
    return SOURCE.truth + 0.1 * np.random.default_rng(rng).standard_normal(SOURCE.shape)


class TestRegressor:
    def test_it_is_the_estimator_on_the_same_answers(self):
        X, y = pairs_and_answers()
        model = MatrixCompletionRegressor(SoftImpute(penalty=1.0), shape=SOURCE.shape).fit(X, y)
        expected = SoftImpute(penalty=1.0).fit(SOURCE.observe(900, rng=1))
        np.testing.assert_array_equal(model.predict(X), expected.predict(X[:, 0], X[:, 1]))
        assert model.n_features_in_ == 2

    def test_the_default_estimator_learns(self):
        X, y = pairs_and_answers()
        model = MatrixCompletionRegressor().fit(X, y)
        assert isinstance(model._chosen(), LowRankLeastSquares)
        assert model.score(*pairs_and_answers(rng=7)) > 0.9

    def test_the_shape_is_just_large_enough_for_the_pairs(self):
        model = MatrixCompletionRegressor(SoftImpute(1.0)).fit([[0, 4], [2, 1]], [1.0, 2.0])
        assert model.completion_.shape == (3, 5)

    def test_whole_floats_are_row_numbers(self):
        X, y = pairs_and_answers()
        model = MatrixCompletionRegressor(SoftImpute(1.0))
        np.testing.assert_array_equal(
            model.fit(X.astype(float), y).predict(X.astype(np.float32)), model.fit(X, y).predict(X)
        )

    def test_repeats_count_one_by_one(self):
        X, y = [[0, 0], [0, 0], [1, 1]], [1.0, 3.0, 5.0]
        model = MatrixCompletionRegressor(ProjectedLeastSquares(rank=2)).fit(X, y)
        np.testing.assert_allclose(model.predict([[0, 0], [1, 1]]), [2.0, 5.0])

    def test_a_scale_reaches_the_estimator(self):
        X, y = [[0, 0], [1, 1]], [1.0, 5.0]
        model = MatrixCompletionRegressor(ProjectedLeastSquares(rank=1), scale=(1, 5)).fit(X, y)
        assert model.completion_.clip == (1, 5)
        with pytest.raises(InvalidInput, match=r"values\[1\] is 6; the scale is 1 to 5"):
            model.fit(X, [1.0, 6.0])

    @pytest.mark.parametrize(
        ("X", "error", "words"),
        [
            ([[0, 1.5]], InvalidInput, r"X\[0, 1\] is 1.5; row and column numbers must be whole"),
            ([[0, 1, 2]], ValueError, "X has 3 features, but .* is expecting 2 features"),
            ([[0, 0], [3, 0]], InvalidInput, r"X\[1, 0\] is 3; the model was .* shape \(3, 5\)"),
            ([[0, 0], [0, -1]], InvalidInput, r"X\[1, 1\] is -1; row and column numbers start"),
            ([[1e25, 0]], InvalidInput, r"X\[0, 0\] is 1e\+25; the model was .* shape \(3, 5\)"),
            ([[0, np.nan]], ValueError, "Input X contains NaN"),
        ],
    )
    def test_pairs_that_are_no_cells_are_refused(self, X, error, words):
        model = MatrixCompletionRegressor(SoftImpute(1.0)).fit([[0, 4], [2, 1]], [1.0, 2.0])
        with pytest.raises(error, match=words):
            model.predict(X)

    def test_bad_training_data_are_refused(self):
        model = MatrixCompletionRegressor(SoftImpute(1.0))
        with pytest.raises(InvalidInput, match="X has 3 columns; it must have two"):
            model.fit([[0, 1, 2]], [1.0])
        with pytest.raises(InvalidInput, match=r"X\[0, 0\] is -1; row and column numbers start"):
            model.fit([[-1, 1]], [1.0])
        with pytest.raises(InvalidInput, match=r"X\[0, 1\] is 1e\+25; the shape can be at most"):
            model.fit([[0, 1e25]], [1.0])
        with pytest.raises(InvalidInput, match=r"X\[0, 1\] is 3; the shape is \(2, 3\)"):
            MatrixCompletionRegressor(SoftImpute(1.0), shape=(2, 3)).fit([[0, 3]], [1.0])
        with pytest.raises(InvalidInput, match="shape is 3; it must be two integers"):
            MatrixCompletionRegressor(SoftImpute(1.0), shape=3).fit([[0, 3]], [1.0])
        with pytest.raises(InvalidInput, match="lengths differ"):
            model.fit([[0, 1]], [1.0, 2.0])
        with pytest.raises(InvalidInput, match=r"values\[0\] is nan"):
            model.fit([[0, 1]], [np.nan])
        with pytest.raises(NotFittedError):
            model.predict([[0, 1]])

    def test_it_cross_validates(self):
        X, y = pairs_and_answers()
        model = MatrixCompletionRegressor(SoftImpute(0.5), shape=SOURCE.shape)
        assert cross_val_score(model, X, y, cv=3, error_score="raise").mean() > 0.9

    @pytest.mark.parametrize(
        "grid",
        [
            {"estimator": [SoftImpute(50.0), SoftImpute(0.5), SquareRootLasso(C=50.0)]},
            {"estimator__penalty": [50.0, 0.5]},
            {"estimator": [SoftImpute()], "estimator__penalty": [50.0, 0.5]},
        ],
    )
    def test_a_grid_of_estimators_or_settings_is_searched(self, grid):
        X, y = pairs_and_answers()
        model = MatrixCompletionRegressor(SoftImpute(), shape=SOURCE.shape)
        search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
        assert search.best_estimator_.estimator == SoftImpute(0.5)
        assert search.best_score_ > 0.9

    def test_settings_are_parameters(self):
        model = MatrixCompletionRegressor(SoftImpute(2.0))
        assert model.get_params()["estimator__penalty"] == 2.0
        assert "estimator__penalty" not in model.get_params(deep=False)
        assert model.set_params(estimator__tol=0.01).estimator == SoftImpute(2.0, tol=0.01)
        assert MatrixCompletionRegressor().set_params(estimator__rank=3).estimator.rank == 3
        with pytest.raises(InvalidInput, match="SoftImpute has no setting 'rank'; it has penalty"):
            model.set_params(estimator__rank=3)

    def test_clones_and_pickles_are_the_same_model(self):
        X, y = pairs_and_answers()
        model = MatrixCompletionRegressor(SoftImpute(0.5), shape=SOURCE.shape)
        twin = clone(model)
        assert twin is not model
        assert twin.get_params() == model.get_params()
        again = pickle.loads(pickle.dumps(model.fit(X, y)))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_it_ends_a_pipeline(self):
        X, y = pairs_and_answers()
        from_one = make_pipeline(
            FunctionTransformer(lambda pairs: pairs - 1), MatrixCompletionRegressor(SoftImpute(0.5))
        )
        assert from_one.fit(X + 1, y).score(X + 1, y) > 0.9

    @pytest.mark.parametrize("estimator", [3, SoftImpute, "SoftImpute"])
    def test_what_is_no_estimator_is_refused(self, estimator):
        with pytest.raises(InvalidType, match=r"estimator is .*; it must be a malocate estimator"):
            MatrixCompletionRegressor(estimator).fit([[0, 0]], [1.0])


class TestImputer:
    @pytest.mark.parametrize(
        "estimator", [None, SoftImpute(penalty=1.0, centre="additive"), ProjectedLeastSquares()]
    )
    def test_it_passes_scikit_learns_checks(self, estimator):
        results = check_estimator(MatrixImputer(estimator), on_skip=None, on_fail=None)
        names = {status: set() for status in ("passed", "failed", "skipped")}
        for result in results:
            names[result["status"]].add(result["check_name"])
        assert names["failed"] == set()
        assert names["skipped"] <= {"check_array_api_input"}
        assert len(names["passed"]) > 35

    def test_unseen_cells_come_near_the_truth_and_seen_ones_stay(self):
        table, holes = with_holes(noisy())
        filled = MatrixImputer().fit_transform(table)
        np.testing.assert_array_equal(filled[~holes], table[~holes])
        assert np.mean((filled - SOURCE.truth)[holes] ** 2) < 0.02

    def test_seen_cells_can_be_fitted_too_which_removes_noise(self):
        table, holes = with_holes(noisy())
        kept = MatrixImputer(SoftImpute()).fit_transform(table)
        fitted = MatrixImputer(SoftImpute(), keep_seen=False).fit_transform(table)
        np.testing.assert_array_equal(kept[holes], fitted[holes])
        smooth = MatrixImputer(keep_seen=False).fit_transform(table)
        assert miss(smooth[~holes], SOURCE.truth[~holes]) < miss(
            table[~holes], SOURCE.truth[~holes]
        )

    @pytest.mark.parametrize("estimator", [None, SoftImpute(1.0), SoftImpute(centre="additive")])
    def test_fit_transform_is_transform_of_the_training_rows(self, estimator):
        table, _ = with_holes(noisy())
        imputer = MatrixImputer(estimator, keep_seen=False)
        filled = imputer.fit_transform(table)
        np.testing.assert_array_equal(imputer.transform(table), filled)
        np.testing.assert_allclose(imputer.transform(table[7:8]), filled[7:8], rtol=1e-9)
        np.testing.assert_allclose(imputer.transform(table[::-1]), filled[::-1], rtol=1e-9)

    @pytest.mark.parametrize(
        ("estimator", "tol"),
        [(SoftImpute(1.0, tol=1e-7), 1e-3), (SquareRootLasso(penalty=0.05, tol=1e-6), 1e-2)],
    )
    def test_training_rows_are_folded_in_where_the_completion_put_them(self, estimator, tol):
        table, _ = with_holes(noisy())
        imputer = MatrixImputer(estimator, keep_seen=False).fit(table)
        np.testing.assert_allclose(imputer.transform(table), imputer.completion_.dense(), atol=tol)

    def test_new_rows_are_filled_from_the_learned_columns(self):
        table, holes = with_holes(noisy())
        imputer = MatrixImputer().fit(table[:30])
        filled = imputer.transform(table[30:])
        errors = (filled - SOURCE.truth[30:])[holes[30:]]
        assert np.mean(errors**2) < 0.05 * np.mean(SOURCE.truth[30:] ** 2)

    def test_a_new_rows_own_effect_is_learned(self):
        rng = np.random.default_rng(4)
        table = 3 + np.add.outer(rng.normal(0, 2, 40), rng.normal(0, 1, 12))
        table += 0.05 * rng.standard_normal(table.shape)
        imputer = MatrixImputer(SoftImpute(centre="additive")).fit(table[:30])
        holed, holes = with_holes(table[30:], share=0.5)
        filled = imputer.transform(holed)
        assert miss(filled[holes], table[30:][holes]) < 0.05

    @pytest.mark.parametrize("centre", ["none", "mean", "additive"])
    def test_a_row_without_any_number_gets_the_centre(self, centre):
        table, _ = with_holes(noisy() + np.arange(25))
        imputer = MatrixImputer(SoftImpute(centre=centre)).fit(table)
        filled = imputer.transform(np.full((1, 25), np.nan))
        middle = imputer.completion_.centre
        expected = middle.offset + (middle.cols if middle.cols.size else np.zeros(25))
        np.testing.assert_allclose(filled[0], expected, atol=1e-9)

    def test_a_matrix_without_any_number_is_completed_by_zeros(self):
        filled = MatrixImputer(SoftImpute(1.0)).fit_transform(np.full((3, 2), np.nan))
        assert (filled == 0).all()

    def test_infinities_are_refused_not_imputed(self):
        table, _ = with_holes(noisy())
        imputer = MatrixImputer(SoftImpute(1.0)).fit(table)
        table[0, 0] = np.inf
        for call in (imputer.fit, imputer.transform, imputer.fit_transform):
            with pytest.raises(ValueError, match="Input X contains infinity"):
                call(table)

    def test_two_fits_are_the_same_fit(self):
        table, _ = with_holes(noisy())
        first, second = (MatrixImputer().fit_transform(table) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_nothing_given_is_changed(self):
        table, _ = with_holes(noisy())
        before = table.copy()
        MatrixImputer(SoftImpute(1.0)).fit_transform(table)
        np.testing.assert_array_equal(table, before)

    def test_float32_stays_float32(self):
        table, _ = with_holes(noisy().astype(np.float32))
        filled = MatrixImputer(SoftImpute(1.0)).fit_transform(table.astype(np.float32))
        assert filled.dtype == np.float32
        assert np.isfinite(filled).all()

    def test_frames_keep_their_names(self):
        table, _ = with_holes(noisy())
        frame = pd.DataFrame(table, columns=[f"q{j}" for j in range(25)])
        imputer = MatrixImputer(SoftImpute(1.0)).set_output(transform="pandas")
        filled = imputer.fit_transform(frame)
        assert filled.columns.tolist() == frame.columns.tolist()
        assert filled.notna().all(axis=None)
        assert imputer.get_feature_names_out().tolist() == frame.columns.tolist()
        with pytest.raises(ValueError, match="feature names should match"):
            imputer.transform(frame.rename(columns={"q0": "other"}))

    def test_nullable_frames_are_read(self):
        frame = pd.DataFrame({"a": [1, 2, None, 4], "b": [2, None, 6, 8]}, dtype="Int64")
        assert np.isfinite(MatrixImputer(SoftImpute(0.1)).fit_transform(frame)).all()

    def test_a_scale_bounds_what_is_filled(self):
        source = Synthetic.ratings((30, 20), rank=2, noise=0.5, rng=0)
        seen = source.observe(400, rng=1)
        table = np.full((30, 20), np.nan)
        table[seen.rows, seen.cols] = seen.values
        for estimator in (ProjectedLeastSquares(rank=5), SquareRootLasso(C=0.1)):
            imputer = MatrixImputer(estimator, scale=(1, 5), keep_seen=False)
            filled = imputer.fit_transform(table)
            assert 1 <= filled.min() <= filled.max() <= 5

    def test_blocks_of_rows_give_what_all_rows_give(self, monkeypatch):
        table, _ = with_holes(noisy())
        imputer = MatrixImputer(SoftImpute(1.0)).fit(table)
        whole = imputer.transform(table)
        monkeypatch.setattr("malocate.sklearn.BLOCK_CELLS", 60)
        np.testing.assert_allclose(imputer.transform(table), whole, rtol=1e-12)

    def test_it_works_in_a_pipeline_and_a_search(self):
        table, _ = with_holes(noisy(), share=0.2)
        y = SOURCE.truth @ np.linspace(-1, 1, 25)
        model = Pipeline(
            [
                ("impute", MatrixImputer(SoftImpute())),
                ("scale", StandardScaler()),
                ("predict", LinearRegression()),
            ]
        )
        grid = {"impute__estimator": [SoftImpute(100.0), SoftImpute(0.5)]}
        search = GridSearchCV(model, grid, cv=4, error_score="raise").fit(table, y)
        assert search.best_params_["impute__estimator"] == SoftImpute(0.5)
        grid = {"impute__estimator__penalty": [100.0, 0.5], "impute__keep_seen": [True]}
        search = GridSearchCV(model, grid, cv=4, error_score="raise").fit(table, y)
        assert search.best_params_["impute__estimator__penalty"] == 0.5

    def test_clones_and_pickles_are_the_same_imputer(self):
        table, _ = with_holes(noisy())
        imputer = MatrixImputer(SoftImpute(1.0), keep_seen=False)
        twin = clone(imputer)
        assert twin.get_params() == imputer.get_params()
        again = pickle.loads(pickle.dumps(imputer.fit(table)))
        np.testing.assert_array_equal(again.transform(table), imputer.transform(table))

    def test_transform_wants_a_fit_and_the_same_number_of_columns(self):
        with pytest.raises(NotFittedError):
            MatrixImputer().transform([[1.0]])
        imputer = MatrixImputer(SoftImpute(1.0)).fit(np.ones((3, 2)))
        with pytest.raises(ValueError, match="expecting 2 features"):
            imputer.transform(np.ones((3, 3)))

    def test_the_completion_is_at_hand(self):
        table, _ = with_holes(noisy())
        imputer = MatrixImputer(SoftImpute(1.0)).fit(table)
        expected = SoftImpute(1.0).fit(Observations.from_dense(table))
        np.testing.assert_array_equal(imputer.completion_.dense(), expected.dense())


def miss(one, two):
    return float(np.mean((one - two) ** 2))
