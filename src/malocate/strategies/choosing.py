"""How all our strategies choose: first batches, then floors, then the most urgent segments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from malocate.problem.loss import check_power
from malocate.problem.settings import check_count
from malocate.strategies.base import Allocation, Standing

SLACK = 1e-9  # of an answer: costs such as 0.1 do not add up to the budget exactly
_ROUNDING = 1e-12  # relative, of a sum of costs

Counts = dict[int, int]  # answers by the position of their segment
Prices = dict[int, float]


def choose(
    standings: Sequence[Standing],
    budget: float,
    index: Callable[[Standing], float],
    parallel_segments: int = 1,
) -> Allocation:
    """Allocate one round; `index` says how urgent a segment is.

    1. Segments that were never asked get their first batches, all at once, scaled down
       where the budget does not pay for them.
    2. Otherwise one segment gets its batch, or what the budget and its cap leave of that: the
       one with the fewest answers among those short of their floors,
    3. or else the one of the highest index. One that is infinite or not a number means that
       nothing is known, and goes first. Ties go to the fewest answers, then to position.

    With `parallel_segments`, up to so many get their batches at once, in that order, the last ones
    what the budget leaves. While somebody is short of a floor, only such are asked.

    >>> north = Standing("north", 100, answers=40, batch=10, estimate=0.2)
    >>> south = Standing("south", 100, answers=40, batch=10, estimate=0.3)
    >>> choose([north, south], 7, lambda standing: standing.estimate).answers
    (0, 7)
    >>> choose([north, south], 17, lambda standing: standing.estimate, parallel_segments=2).answers
    (7, 10)
    """
    urgencies = tuple(_known(index(each)) for each in standings)
    counts = first_batches(standings, budget)
    if not counts:
        order = _by_need(standings, budget, urgencies)
        counts = _next_batches(standings, budget, order, parallel_segments)
    return Allocation(tuple(counts.get(place, 0) for place in range(len(standings))), urgencies)


def affordable(standing: Standing, budget: float) -> int:
    """Give how many answers a segment can be asked for: whole batches are cut, never raised.

    >>> affordable(Standing("north", 100, batch=10, cost=0.1, multiple=2), 0.7)
    6
    """
    most = min(standing.batch, standing.room, budget / standing.cost + SLACK)
    return max(0, math.floor(most) // standing.multiple * standing.multiple)


def first_batches(standings: Sequence[Standing], budget: float) -> Counts:
    """Give the first batches of those who were never asked; none where there are no such."""
    new = [place for place, each in enumerate(standings) if each.answers == 0]
    wanted = {place: affordable(standings[place], math.inf) for place in new}
    wanted = {
        place: count
        for place, count in wanted.items()
        if count and standings[place].multiple * standings[place].cost <= budget * (1 + _ROUNDING)
    }
    cost = math.fsum(count * standings[place].cost for place, count in wanted.items())
    return wanted if cost <= budget * (1 + _ROUNDING) else _scaled(wanted, standings, budget)


def _scaled(wanted: Counts, standings: Sequence[Standing], budget: float) -> Counts:
    """Scale batches down in proportion, each to one unit at least: the least it can be asked for.

    Where the budget does not even pay for one unit each, as many segments as possible get one.
    """
    units = {place: count // standings[place].multiple for place, count in wanted.items()}
    price = {place: standings[place].multiple * standings[place].cost for place in wanted}
    if math.fsum(price.values()) > budget * (1 + _ROUNDING):
        ideal = dict.fromkeys(sorted(price, key=lambda place: price[place]), 0.5)
    else:
        share = _share(units, price, budget)
        ideal = {place: max(1.0, share * count) for place, count in units.items()}
    counts = _rounded(ideal, price, budget)
    return {place: n * standings[place].multiple for place, n in counts.items() if n}


def _share(units: Counts, price: Prices, budget: float) -> float:
    """Give the share to which batches are scaled; those that would fall below a unit keep one."""
    left = budget * (1 - _ROUNDING)  # so that no whole part is rounded up over the budget
    total = math.fsum(price[place] * count for place, count in units.items())
    for place in sorted(units, key=lambda place: units[place]):
        if left * units[place] >= total:
            break
        left -= price[place]
        total -= price[place] * units[place]
    return max(0.0, left / total) if total > 0 else 0.0


def _rounded(ideal: Prices, price: Prices, budget: float) -> Counts:
    """Round down, then up again where most was cut off, as long as the budget pays."""
    counts = {place: math.floor(each) for place, each in ideal.items()}
    left = budget - math.fsum(price[place] * count for place, count in counts.items())
    for place in sorted(ideal, key=lambda place: counts[place] - ideal[place]):
        if counts[place] < ideal[place] and price[place] * (1 - SLACK) <= left:
            counts[place] += 1
            left -= price[place]
    return counts


def _by_need(standings: Sequence[Standing], budget: float, urgencies: Sequence[float]) -> list[int]:
    """Give who may be asked, those who need it most first; where a floor is missed, such alone."""
    can = [place for place, each in enumerate(standings) if affordable(each, budget)]
    short = [place for place in can if standings[place].short > 0]
    if short:
        return sorted(short, key=lambda place: (standings[place].answers, place))
    return sorted(can, key=lambda place: (-urgencies[place], standings[place].answers, place))


def _next_batches(
    standings: Sequence[Standing], budget: float, order: Sequence[int], most: int
) -> Counts:
    """Give the batches of the first in order, `most` of them, as long as the budget pays."""
    counts: Counts = {}
    for place in order:
        if len(counts) == most:
            break
        if count := affordable(standings[place], budget):
            counts[place] = count
            budget -= count * standings[place].cost
    return counts


def urgency(standing: Standing, error: float, p: float | None) -> float:
    """Give weight · entries · error · (cost · answers)^(−1/p), infinite before the first answer.

    Where errors fall like one over the answers, the segment that is highest takes most off the
    loss L^p for the next unit of the budget; at p = ∞, it is the one whose error is the loss.

    >>> north = Standing("north", 100, answers=4, cost=4.0)
    >>> [urgency(north, 0.5, p) for p in (1, 2, None)]
    [3.125, 12.5, 50.0]
    """
    if standing.answers == 0:
        return math.inf
    spent = standing.cost * standing.answers
    return float(standing.weight * standing.entries * error * spent ** (-1 / power(p)))


def check_parallel(parallel_segments: object) -> None:
    """Refuse what is no number of segments that a round may ask at once."""
    check_count("parallel_segments", parallel_segments)


def at_once(strategy: object) -> int:
    """Give how many segments a strategy's ordinary rounds ask; one where it does not say.

    >>> from malocate import MALocate
    >>> at_once(MALocate(parallel_segments=3))
    3
    """
    return int(getattr(strategy, "parallel_segments", 1))


def clipped(error: float) -> float:
    """Give an error that is at least zero, infinite where it is not a number."""
    return math.inf if math.isnan(error) else max(0.0, error)


def power(p: float | None) -> float:
    """Give the p of the loss that counts; without one, only the largest error does."""
    return math.inf if p is None else p


def checked_power(p: float | None) -> float | None:
    """Give p as a float, or None where the design's loss will tell it."""
    if p is None:
        return None
    check_power(p)
    return float(p)


def _known(index: float) -> float:
    return math.inf if math.isnan(index) else index
