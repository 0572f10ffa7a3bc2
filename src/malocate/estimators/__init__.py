"""Estimators: each is a frozen value whose `fit` gives a `Completion`.

>>> from malocate.estimators import SoftImpute, find_estimator
>>> find_estimator("SoftImpute") is SoftImpute
True

The names load on first use, as they do in `malocate` itself.
"""

from __future__ import annotations

from importlib import import_module

_HOMES = {
    "Completion": "base",
    "Estimator": "base",
    "LowRankLeastSquares": "low_rank",
    "OnlineLeastSquares": "online",
    "ProjectedLeastSquares": "projected",
    "SoftImpute": "soft_impute",
    "SquareRootLasso": "square_root_lasso",
    "Status": "base",
    "estimator_names": "plugins",
    "find_estimator": "plugins",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    """Load a public name from its module the first time that it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'malocate.estimators' has no attribute {name!r}")
    return getattr(import_module(f"malocate.estimators.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
