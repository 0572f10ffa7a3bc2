"""Why a round asks whom it asks, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from malocate.problem.counting import counted
from malocate.strategies.base import Allocation, Explains, Standing
from malocate.strategies.choosing import power

_SHOWN = 3  # segments by name; a sentence with a thousand of them is no help


def why(allocation: Allocation, standings: Sequence[Standing], strategy: object = None) -> str:
    """Give one sentence, in plain words, on why these segments are asked next.

    A `strategy` that has a method `reason` is quoted; otherwise the sentence has its index. Of
    several segments, the first three that need it most have their reasons.

    >>> from malocate import MALocate
    >>> north = Standing("north", 4_000, answers=1_600, batch=400, estimate=0.29, se=0.02)
    >>> allocation = MALocate().plan([north], 10_000)
    >>> why(allocation, [north], MALocate())
    'north: largest error still expected, 0.31 per cell on 4,000 cells, after 1,600 answers'
    """
    rows = zip(standings, allocation.answers, allocation.index, strict=True)
    asked = [(standing, index) for standing, count, index in rows if count]
    if not asked:
        return "nobody can be asked: the budget is spent, or every cap or target is reached"
    if all(standing.answers == 0 for standing, _ in asked):
        names = _listed([standing.name for standing, _ in asked])
        return f"{names}: never asked before, {counted(sum(allocation.answers), 'answer')}"
    first = sorted(asked, key=_need)[:_SHOWN]
    sentences = [_sentence(standing, index, strategy) for standing, index in first]
    told = _listed(sentences, "; ", len(asked))
    if len(asked) == 1:
        return told
    return f"{len(asked):,} of {len(standings):,} segments, most urgent first: {told}"


def error_in_words(what: str, error: float, standing: Standing, p: float | None) -> str:
    """Say of an error, such as the "error still expected", that it is the one to lower next."""
    if math.isinf(error):
        return "nothing is known of its error yet"
    size = f"{_shown(error)} per cell on {counted(standing.entries, 'cell')}"
    weight = f", weight {_shown(standing.weight)}" if standing.weight != 1 else ""
    if math.isinf(power(p)):
        return f"largest {what}, {size}{weight}"
    return f"its next answers should take most off the loss, {what} {size}{weight}"


def _sentence(standing: Standing, index: float, strategy: object) -> str:
    if standing.answers == 0:
        return f"{standing.name}: never asked before"
    if standing.short > 0:
        reason = f"{standing.short:,} short of its floor"
    elif isinstance(strategy, Explains):
        reason = strategy.reason(standing)
    else:
        reason = f"index {_shown(index)}"
    return f"{standing.name}: {reason}, after {counted(standing.answers, 'answer')}"


def _need(asked: tuple[Standing, float]) -> tuple[bool, float, int]:
    """Order who is asked as `choose` does: by their answers where floors are missed."""
    standing, index = asked
    return not standing.short, 0.0 if standing.short else -index, standing.answers


def _listed(parts: list[str], between: str = ", ", count: int | None = None) -> str:
    more = (len(parts) if count is None else count) - _SHOWN
    return between.join(parts[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _shown(number: float) -> str:
    return f"{number:,.0f}" if 100 <= abs(number) < math.inf else f"{number:.2g}"
