"""Estimators by name: ours and those that other installed packages bring.

A package registers an estimator under the entry-point group `malocate.estimators`::

    [project.entry-points."malocate.estimators"]
    MyEstimator = "my_package.estimator:MyEstimator"
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from malocate.errors import InvalidInput, InvalidType, MissingDependency
from malocate.estimators.base import Estimator

GROUP = "malocate.estimators"
"""The entry-point group under which packages register their estimators."""


def estimator_names() -> tuple[str, ...]:
    """Give the names of all installed estimators; none of them is imported.

    >>> "SoftImpute" in estimator_names()
    True
    """
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def find_estimator(name: str) -> Callable[..., Estimator]:
    """Give the estimator class of that name; call it with its settings.

    >>> find_estimator("ProjectedLeastSquares")(rank=2).rank
    2
    """
    point = _entry_point(name)
    found = _loaded(point)
    if not (callable(found) and hasattr(found, "fit")):
        raise InvalidType(
            f"The estimator {name!r} ({_origin(point)}) is no estimator: it must be a class with a "
            "method `fit(observations, *, start=None)`."
        )
    return found  # type: ignore[no-any-return]


def _entry_point(name: str) -> EntryPoint:
    points = {point.value: point for point in entry_points(group=GROUP, name=name)}
    if not points:
        known = estimator_names()
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(
            f"There is no estimator {name!r}; installed are {', '.join(known) or 'none'}.{hint}"
        )
    if len(points) > 1:
        listed = " and ".join(_origin(points[value]) for value in sorted(points))
        raise InvalidInput(
            f"The estimator {name!r} is registered twice: {listed}; uninstall one of them."
        )
    return next(iter(points.values()))


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise MissingDependency(
            f"The estimator {point.name!r} ({_origin(point)}) cannot be imported: "
            f"{type(error).__name__}: {error}."
        ) from error


def _origin(point: EntryPoint) -> str:
    owner = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
    return f"{point.value}{owner}"
