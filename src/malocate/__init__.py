"""Matrix completion that is fast, certified and at ease with repeated answers.

>>> from malocate import LowRankLeastSquares, Synthetic
>>> source = Synthetic.low_rank(shape=(60, 40), rank=2, noise=0.1, rng=0)
>>> done = LowRankLeastSquares().fit(source.observe(1200, rng=1))
>>> bool(((done.dense() - source.truth) ** 2).mean() < 0.01)
True

The public names load on first use: importing the package compiles nothing and stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from malocate.errors import InvalidInput, InvalidType, MalocateError, MissingDependency, TooLarge

if TYPE_CHECKING:
    from malocate.estimators.base import Completion, Estimator, Status
    from malocate.estimators.low_rank import LowRankLeastSquares
    from malocate.estimators.online import OnlineLeastSquares
    from malocate.estimators.projected import ProjectedLeastSquares
    from malocate.estimators.soft_impute import SoftImpute
    from malocate.estimators.square_root_lasso import SquareRootLasso
    from malocate.problem import Observations
    from malocate.sources import Synthetic

__version__ = "0.1.0"

__all__ = [
    "Completion",
    "Estimator",
    "InvalidInput",
    "InvalidType",
    "LowRankLeastSquares",
    "MalocateError",
    "MissingDependency",
    "Observations",
    "OnlineLeastSquares",
    "ProjectedLeastSquares",
    "SoftImpute",
    "SquareRootLasso",
    "Status",
    "Synthetic",
    "TooLarge",
]

_HOMES = {
    "Completion": "malocate.estimators.base",
    "Estimator": "malocate.estimators.base",
    "LowRankLeastSquares": "malocate.estimators.low_rank",
    "Observations": "malocate.problem",
    "OnlineLeastSquares": "malocate.estimators.online",
    "ProjectedLeastSquares": "malocate.estimators.projected",
    "SoftImpute": "malocate.estimators.soft_impute",
    "SquareRootLasso": "malocate.estimators.square_root_lasso",
    "Status": "malocate.estimators.base",
    "Synthetic": "malocate.sources",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module the first time that it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'malocate' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
