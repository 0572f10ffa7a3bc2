"""Strategies: where to ask next. Each is a frozen value whose `plan` gives an `Allocation`.

>>> from malocate.strategies import Standing, Uniform
>>> Uniform().plan([Standing("north", 100, batch=8), Standing("south", 100, batch=8)], 1_000)
Allocation(answers=(8, 8), index=(0.0, 0.0))
"""

from malocate.strategies.base import Allocation, Explains, Standing, Strategy
from malocate.strategies.good_allocation import GoodAllocation
from malocate.strategies.malocate import MALocate
from malocate.strategies.oracle import Oracle
from malocate.strategies.plugins import find_strategy, strategy_names
from malocate.strategies.reasons import why
from malocate.strategies.uniform import Uniform

__all__ = [
    "Allocation",
    "Explains",
    "GoodAllocation",
    "MALocate",
    "Oracle",
    "Standing",
    "Strategy",
    "Uniform",
    "find_strategy",
    "strategy_names",
    "why",
]
