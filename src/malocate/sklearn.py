"""scikit-learn's manners: a regressor on (row, column) pairs and an imputer of NaN matrices."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import BLOCK_CELLS, Completion, Estimator
from malocate.estimators.folding import FoldIn
from malocate.problem import Observations, checks

__all__ = ["MatrixCompletionRegressor", "MatrixImputer"]

Floats = npt.NDArray[np.floating[Any]]

LONGEST = (checks.LONGEST_SIDE, checks.LONGEST_SIDE)

_INNER = "estimator__"


class _WithEstimator(BaseEstimator):  # type: ignore[misc]
    """Reaches the settings of `estimator` as ``estimator__<setting>``, for grid searches."""

    estimator: Estimator | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the parameters; with `deep`, the settings of the estimator too."""
        params: dict[str, Any] = super().get_params(deep=False)
        inner = self._chosen()
        if deep and dataclasses.is_dataclass(inner) and not isinstance(inner, type):
            names = [each.name for each in dataclasses.fields(inner)]
            params |= {f"estimator__{name}": getattr(inner, name) for name in names}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``estimator__<setting>`` replaces one setting of the estimator."""
        inner = {k.removeprefix(_INNER): v for k, v in params.items() if k.startswith(_INNER)}
        super().set_params(**{k: v for k, v in params.items() if not k.startswith(_INNER)})
        if inner:
            known = [k.removeprefix(_INNER) for k in self.get_params() if k.startswith(_INNER)]
            unknown = [name for name in inner if name not in known]
            if unknown:
                raise InvalidInput(
                    f"{type(self._chosen()).__name__} has no setting {unknown[0]!r}; "
                    f"it has {', '.join(known) or 'none'}."
                )
            self.estimator = dataclasses.replace(self._chosen(), **inner)
        return self

    def _chosen(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from malocate.estimators.low_rank import LowRankLeastSquares

        return LowRankLeastSquares()

    def _fit(self, observations: Observations) -> Completion:
        estimator = self._chosen()
        if not isinstance(estimator, Estimator) or isinstance(estimator, type):
            raise InvalidType(
                f"estimator is {estimator!r}; it must be a malocate estimator, such as "
                "SoftImpute(penalty=2.0), or None."
            )
        return estimator.fit(observations)


class MatrixCompletionRegressor(RegressorMixin, _WithEstimator):  # type: ignore[misc]
    """A regressor on pairs of row and column numbers; the same pair may come any number of times.

    Parameters
    ----------
    estimator : the malocate estimator; `LowRankLeastSquares()` when left out. Its settings can be
        searched as ``estimator__<setting>``, or whole estimators as ``estimator``.
    shape : (rows, columns) of the matrix; when left out, just large enough for the pairs seen in
        `fit`. Give it when cross-validating: a fold may hold a row that the others lack.
    scale : (least, largest) answer, when there is such a scale.

    >>> import numpy as np
    >>> from malocate import SoftImpute
    >>> from sklearn.model_selection import GridSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers((30, 20), size=(600, 2))
    >>> y = np.outer(range(30), range(20))[X[:, 0], X[:, 1]] / 100 + 0.1 * rng.normal(size=600)
    >>> model = MatrixCompletionRegressor(SoftImpute(), shape=(30, 20))
    >>> search = GridSearchCV(model, {"estimator__penalty": [0.5, 50.0]}).fit(X, y)
    >>> search.best_params_, bool(search.best_score_ > 0.95)
    ({'estimator__penalty': 0.5}, True)
    """

    completion_: Completion

    def __init__(
        self,
        estimator: Estimator | None = None,
        *,
        shape: tuple[int, int] | None = None,
        scale: tuple[float, float] | None = None,
    ) -> None:
        self.estimator = estimator
        self.shape = shape
        self.scale = scale

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Complete the matrix from answers `y` at the pairs `X`."""
        shape = LONGEST if self.shape is None else checks.shape_of(self.shape)
        verb = "can be at most" if self.shape is None else "is"
        pairs = self._pairs(X, shape, f"the shape {verb} {shape}", reset=True)
        answers = column_or_1d(y, warn=True)
        if self.shape is None:
            shape = int(pairs[:, 0].max()) + 1, int(pairs[:, 1].max()) + 1
        seen = Observations(pairs[:, 0], pairs[:, 1], answers, shape=shape, scale=self.scale)
        self.completion_ = self._fit(seen)
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Give the completed values at the pairs `X`."""
        check_is_fitted(self, "completion_")
        shape = self.completion_.shape
        rule = (
            f"the model was fitted for shape {shape}. Fit with `shape` large enough for every row "
            "and column that may come"
        )
        pairs = self._pairs(X, shape, rule, reset=False)
        return self.completion_.predict(pairs[:, 0], pairs[:, 1])

    def _pairs(
        self, X: npt.ArrayLike, shape: tuple[int, int], rule: str, *, reset: bool
    ) -> npt.NDArray[np.int64]:
        """Give pairs of whole numbers inside the shape; `rule` says why there are no others."""
        array = validate_data(self, X, reset=reset, dtype="numeric", ensure_min_samples=1)
        if array.shape[1] != 2:
            raise InvalidInput(f"X has {array.shape[1]} columns; it must have two, row and column.")
        if array.dtype.kind not in "iuf":
            raise InvalidType(f"X has dtype {array.dtype}; it must hold row and column numbers.")
        checks.refuse_where(array < 0, array, "X", "row and column numbers start at 0")
        checks.refuse_where(array >= shape, array, "X", rule)
        whole = checks.whole_numbers(array, "X", "row and column numbers must be whole")
        return whole.astype(np.int64)


class MatrixImputer(OneToOneFeatureMixin, TransformerMixin, _WithEstimator):  # type: ignore[misc]
    """Fills the NaN cells of a matrix by low rank; new rows are filled from the learned columns.

    Rows are samples and columns are features. `fit` completes the training matrix. `transform`
    fits each row, of training or new, to the learned columns by the ridge regression that the
    completion itself solves for its rows, so that `fit_transform` is `transform` of the same rows
    and no row depends on its neighbours. A row without any number gets the centre.

    Parameters
    ----------
    estimator : the malocate estimator; `LowRankLeastSquares()` when left out.
    keep_seen : whether cells that were not NaN keep their value (True, as imputers do), or get
        the fitted one too, which removes noise.
    scale : (least, largest) value; filled cells are clipped to it when the estimator does.

    >>> import numpy as np
    >>> from malocate import SoftImpute
    >>> table = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 3.0, 4.0])
    >>> table[2, 1] = np.nan
    >>> imputer = MatrixImputer(SoftImpute(penalty=0.1)).fit(table)
    >>> imputer.transform([[10.0, np.nan, 30.0, 40.0]]).round().tolist()
    [[10.0, 20.0, 30.0, 40.0]]
    """

    completion_: Completion

    def __init__(
        self,
        estimator: Estimator | None = None,
        *,
        keep_seen: bool = True,
        scale: tuple[float, float] | None = None,
    ) -> None:
        self.estimator = estimator
        self.keep_seen = keep_seen
        self.scale = scale

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Complete the matrix; `y` is ignored."""
        seen = Observations.from_dense(self._matrix(X, reset=True), scale=self.scale)
        self.completion_ = self._fit(seen)
        self._fold_in = FoldIn.of(self.completion_, seen.entries)
        return self

    def transform(self, X: npt.ArrayLike) -> Floats:
        """Fill the NaN cells of the rows of `X`."""
        check_is_fitted(self, "completion_")
        matrix = self._matrix(X, reset=False)
        filled = np.empty_like(matrix)
        height = max(1, BLOCK_CELLS // matrix.shape[1])
        for first in range(0, len(matrix), height):
            rows = slice(first, first + height)
            filled[rows] = self._fold_in.filled(matrix[rows].astype(np.float64))
        return np.where(np.isnan(matrix), filled, matrix) if self.keep_seen else filled

    def _matrix(self, X: npt.ArrayLike, *, reset: bool) -> Floats:
        return np.asarray(
            validate_data(
                self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
