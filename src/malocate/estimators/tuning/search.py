"""The search along the reweighted ridge path for the place with the least held-out error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from malocate.estimators.tuning.inner import Panel
from malocate.estimators.tuning.ridge_path import NOWHERE, Place

Errors = dict[Place, float]

FLAT, CLIMBING = 0.01, 0.005
"""Shares of the error: departures are tried from where the plain path gains less than the first
in a place, and on to the next departure while that gains more than the second."""


@dataclass(frozen=True)
class Bounds:
    """Which places may be chosen: up to `last`; there alone; only on the plain path."""

    last: int
    at_last: bool = False
    plain: bool = False

    def branch(self, departure: int) -> Iterable[Place]:
        """Give the places to judge after a departure (-1: on the plain path), in order."""
        first = self.last if self.at_last else max(0, departure)
        return (Place(end, departure) for end in range(first, self.last + 1))


def explore(panel: Panel, bounds: Bounds) -> Errors:
    """Judge the plain path as far as it is good, then departures from where it flattens out."""
    plain = follow(panel, (Place(end) for end in range(bounds.last + 1)))
    found = {NOWHERE: panel.error(NOWHERE)} | follow(panel, bounds.branch(-1))
    if bounds.plain:
        return found
    return found | climb(panel, bounds, max(0, flattening(plain).end - 1))


def flattening(path: Errors) -> Place:
    """Give the first place after which the next gains little.

    >>> flattening({Place(0): 1.0, Place(1): 0.5, Place(2): 0.499, Place(3): 0.498})
    Place(end=1, departure=-1)
    """
    flat = (here for here, after in pairwise(path) if path[after] > (1 - FLAT) * path[here])
    return next(flat, list(path)[-1])


def climb(panel: Panel, bounds: Bounds, departure: int) -> Errors:
    """Judge a departure and its neighbours, and go on to where the error falls by enough."""
    found: Errors = {}
    least: dict[int, float] = {}

    def at(departure: int) -> float:
        if departure < 0 or departure > bounds.last:
            return math.inf
        if departure not in least:
            errors = follow(panel, bounds.branch(departure))
            least[departure] = min(errors.values())
            found.update(errors)
        return least[departure]

    for step in (-1, 1):
        while at(departure + step) < (1 - CLIMBING) * at(departure):
            departure += step
    return found


def confirm(panel: Panel, bounds: Bounds, found: Errors) -> Errors:
    """Judge by every fold what a few folds have found: nothing, and the best branch.

    The second best is judged too, if it is behind by no more than chance.
    """
    places = sorted(found.keys() - {NOWHERE}, key=lambda place: (found[place], place))
    first = places[0]
    errors = {NOWHERE: panel.error(NOWHERE)} | follow(panel, bounds.branch(first.departure))
    second = next((place for place in places if place.departure != first.departure), None)
    if second is not None and not panel.few().prefers(first, second):
        errors |= follow(panel, bounds.branch(second.departure))
    return errors


def follow(panel: Panel, places: Iterable[Place]) -> Errors:
    """Judge places in turn, up to the first that is no better than those before it."""
    found: Errors = {}
    for place in places:
        error = panel.error(place)
        better = error < min(found.values(), default=math.inf)
        found[place] = error
        if not better:
            break
    return found


def best(found: Errors) -> Place:
    """Give the place with the least error; of equals, the one that is reached first."""
    return min(found, key=lambda place: (found[place], place))
