"""Spend a survey budget where it teaches you most: complete several matrices, with bounds.

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

from malocate.errors import (
    ComputeError,
    Conflict,
    InvalidInput,
    InvalidType,
    MalocateError,
    MissingDependency,
    NotFound,
    StoreError,
    TooLarge,
)

if TYPE_CHECKING:
    from malocate.campaign import Campaign, Ticket
    from malocate.compute import Compute
    from malocate.confidence.band import Band
    from malocate.confidence.difference import Difference, difference, differences
    from malocate.confidence.frozen import certify
    from malocate.confidence.judgement import error_band
    from malocate.confidence.schemes import CrossFit, HoldOut
    from malocate.confidence.spending import Anytime
    from malocate.design import Batches, Design, Doubling, Growing
    from malocate.estimators.base import Completion, Estimator, Status
    from malocate.estimators.low_rank import LowRankLeastSquares
    from malocate.estimators.online import OnlineLeastSquares
    from malocate.estimators.projected import ProjectedLeastSquares
    from malocate.estimators.soft_impute import SoftImpute
    from malocate.estimators.square_root_lasso import SquareRootLasso
    from malocate.experiments import Run, simulate
    from malocate.problem import Loss, Observations, Segment
    from malocate.sources import Replay, Synthetic
    from malocate.strategies import (
        Allocation,
        GoodAllocation,
        MALocate,
        Oracle,
        Standing,
        Uniform,
    )

__version__ = "0.1.0"

__all__ = [
    "Allocation",
    "Anytime",
    "Band",
    "Batches",
    "Campaign",
    "Completion",
    "Compute",
    "ComputeError",
    "Conflict",
    "CrossFit",
    "Design",
    "Difference",
    "Doubling",
    "Estimator",
    "GoodAllocation",
    "Growing",
    "HoldOut",
    "InvalidInput",
    "InvalidType",
    "Loss",
    "LowRankLeastSquares",
    "MALocate",
    "MalocateError",
    "MissingDependency",
    "NotFound",
    "Observations",
    "OnlineLeastSquares",
    "Oracle",
    "ProjectedLeastSquares",
    "Replay",
    "Run",
    "Segment",
    "SoftImpute",
    "SquareRootLasso",
    "Standing",
    "Status",
    "StoreError",
    "Synthetic",
    "Ticket",
    "TooLarge",
    "Uniform",
    "certify",
    "difference",
    "differences",
    "error_band",
    "simulate",
]

_HOMES = {
    "Allocation": "malocate.strategies",
    "Anytime": "malocate.confidence.spending",
    "Band": "malocate.confidence.band",
    "Batches": "malocate.design",
    "Campaign": "malocate.campaign",
    "Completion": "malocate.estimators.base",
    "Compute": "malocate.compute",
    "CrossFit": "malocate.confidence.schemes",
    "Design": "malocate.design",
    "Difference": "malocate.confidence.difference",
    "Doubling": "malocate.design",
    "Estimator": "malocate.estimators.base",
    "GoodAllocation": "malocate.strategies",
    "Growing": "malocate.design",
    "HoldOut": "malocate.confidence.schemes",
    "Loss": "malocate.problem",
    "LowRankLeastSquares": "malocate.estimators.low_rank",
    "MALocate": "malocate.strategies",
    "Observations": "malocate.problem",
    "OnlineLeastSquares": "malocate.estimators.online",
    "Oracle": "malocate.strategies",
    "ProjectedLeastSquares": "malocate.estimators.projected",
    "Replay": "malocate.sources",
    "Run": "malocate.experiments",
    "Segment": "malocate.problem",
    "SoftImpute": "malocate.estimators.soft_impute",
    "SquareRootLasso": "malocate.estimators.square_root_lasso",
    "Standing": "malocate.strategies",
    "Status": "malocate.estimators.base",
    "Synthetic": "malocate.sources",
    "Ticket": "malocate.campaign",
    "Uniform": "malocate.strategies",
    "certify": "malocate.confidence.frozen",
    "difference": "malocate.confidence.difference",
    "differences": "malocate.confidence.difference",
    "error_band": "malocate.confidence.judgement",
    "simulate": "malocate.experiments",
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
