"""Estimators by name: ours and those that other installed packages bring.

A package registers an estimator under the entry-point group `malocate.estimators`::

    [project.entry-points."malocate.estimators"]
    MyEstimator = "my_package.estimator:MyEstimator"
"""

from __future__ import annotations

from collections.abc import Callable

from malocate.estimators.base import Estimator
from malocate.plugins import Registry

ESTIMATORS = Registry("malocate.estimators", "estimator", "fit", "fit(observations, *, start=None)")


def estimator_names() -> tuple[str, ...]:
    """Give the names of all installed estimators; none of them is imported.

    >>> "SoftImpute" in estimator_names()
    True
    """
    return ESTIMATORS.names()


def find_estimator(name: str) -> Callable[..., Estimator]:
    """Give the estimator class of that name; call it with its settings.

    >>> find_estimator("ProjectedLeastSquares")(rank=2).rank
    2
    """
    return ESTIMATORS.find(name)
