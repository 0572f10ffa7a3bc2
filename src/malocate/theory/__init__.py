"""What the paper proves, as calculators: complexities, bounds, rates, and when they hold."""

from malocate.theory.conditions import Condition, TheoryWarning
from malocate.theory.lower import hard_level, lower_constant, lower_rate
from malocate.theory.pairs import expected_pairs, guaranteed_pairs
from malocate.theory.problem import Problem
from malocate.theory.rates import complexity, first_batch, information_limit, upper_rate

__all__ = [
    "Condition",
    "Problem",
    "TheoryWarning",
    "complexity",
    "expected_pairs",
    "first_batch",
    "guaranteed_pairs",
    "hard_level",
    "information_limit",
    "lower_constant",
    "lower_rate",
    "upper_rate",
]
