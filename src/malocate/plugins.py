"""Classes by name: ours and those that other installed packages bring, by entry point."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from malocate.errors import InvalidInput, InvalidType, MissingDependency


@dataclass(frozen=True)
class Registry:
    """The installed classes of one kind: the entry points of `group` that have `method`.

    >>> Registry("malocate.estimators", "estimator", "fit", "fit(observations)").find("SoftImpute")
    <class 'malocate.estimators.soft_impute.SoftImpute'>
    """

    group: str
    kind: str
    method: str
    signature: str

    def names(self) -> tuple[str, ...]:
        """Give the names of all installed ones; none of them is imported."""
        return tuple(sorted(self._points(anew=True)))

    def find(self, name: str) -> Callable[..., Any]:
        """Give the class of that name."""
        point = self._entry_point(name)
        found = self._loaded(point)
        if not (callable(found) and hasattr(found, self.method)):
            raise InvalidType(
                f"The {self.kind} {name!r} ({_origin(point)}) is no {self.kind}: it must be a class"
                f" with a method `{self.signature}`."
            )
        return found  # type: ignore[no-any-return]

    def _entry_point(self, name: str) -> EntryPoint:
        points = self._points().get(name) or self._points(anew=True).get(name)
        if points is None:
            known = self.names()
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            listed = ", ".join(known) or "none"
            raise InvalidInput(f"There is no {self.kind} {name!r}; installed are {listed}.{hint}")
        if len(points) > 1:
            listed = " and ".join(_origin(points[value]) for value in sorted(points))
            raise InvalidInput(
                f"The {self.kind} {name!r} is registered twice: {listed}; uninstall one of them."
            )
        return next(iter(points.values()))

    def _points(self, anew: bool = False) -> dict[str, dict[str, EntryPoint]]:
        """Give the entry points by name and value; `anew` sees what was installed meanwhile."""
        if anew:
            _registered.cache_clear()
        return _registered(self.group, tuple(sys.path))

    def _loaded(self, point: EntryPoint) -> Any:
        try:
            return point.load()
        except Exception as error:
            raise MissingDependency(
                f"The {self.kind} {point.name!r} ({_origin(point)}) cannot be imported: "
                f"{type(error).__name__}: {error}."
            ) from error


@lru_cache(maxsize=16)
def _registered(group: str, _path: tuple[str, ...]) -> dict[str, dict[str, EntryPoint]]:
    """Ask every package on the path, which takes longer than all else about a design."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, {})[point.value] = point
    return found


def _origin(point: EntryPoint) -> str:
    owner = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
    return f"{point.value}{owner}"
