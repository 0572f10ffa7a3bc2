"""Strategies by name: ours and those that other installed packages bring.

A package registers a strategy under the entry-point group `malocate.strategies`::

    [project.entry-points."malocate.strategies"]
    MyStrategy = "my_package.strategy:MyStrategy"
"""

from __future__ import annotations

from collections.abc import Callable

from malocate.plugins import Registry
from malocate.strategies.base import Strategy

STRATEGIES = Registry("malocate.strategies", "strategy", "plan", "plan(standings, budget)")


def strategy_names() -> tuple[str, ...]:
    """Give the names of all installed strategies; none of them is imported.

    >>> "MALocate" in strategy_names()
    True
    """
    return STRATEGIES.names()


def find_strategy(name: str) -> Callable[..., Strategy]:
    """Give the strategy class of that name; call it with its settings.

    >>> find_strategy("Uniform")(by="entries")
    Uniform(by='entries', parallel_segments=1)
    """
    return STRATEGIES.find(name)
