"""Several matrices of known ranks: what a budget achieves, whoever spends it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from malocate.errors import InvalidInput
from malocate.problem import Segment
from malocate.problem.checks import shape_of
from malocate.problem.loss import check_power, power_mean
from malocate.problem.settings import check_positive
from malocate.theory.conditions import Condition, upper_conditions, warn_of
from malocate.theory.lower import Constant, lower_constant, packs
from malocate.theory.rates import Shape, complexity, degrees, parameters

Proven = float | Literal["paper", "sharp"]


@dataclass(frozen=True)
class Problem:
    """Matrices of known shapes and ranks, a loss, and what the theory says about them.

    Losses are the paper's L^p = (Σ (w_k·‖M̂_k − M_k‖²_F)^p)^(1/p). The budget is in units of cost,
    answers where nothing else is said. Weights and costs are 1 unless given.

    >>> market = Problem(((200, 200),) * 10, (40,) + 9 * (10,))  # the paper's first experiment
    >>> round(market.advantage(), 2)              # of MALocate over uniform, for the max loss
    3.08
    >>> market.allocation(200_000)[:2]
    (61538, 15385)
    """

    shapes: tuple[Shape, ...]
    ranks: tuple[int, ...]
    p: float = math.inf
    weights: tuple[float, ...] = ()  # empty: 1 each
    costs: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_power(self.p)
        shapes = tuple(shape_of(shape) for shape in self.shapes)
        if not shapes:
            raise InvalidInput("There are no shapes; give at least one matrix.")
        object.__setattr__(self, "shapes", shapes)
        ones = (1.0,) * len(shapes)
        for name, given in (
            ("ranks", self.ranks),
            ("weights", tuple(self.weights) or ones),
            ("costs", tuple(self.costs) or ones),
        ):
            object.__setattr__(self, name, _one_each(name, given, len(shapes)))
        for shape, rank in zip(shapes, self.ranks, strict=True):
            degrees(shape, rank)

    @classmethod
    def of(cls, segments: Iterable[Segment], ranks: Sequence[int], p: float = math.inf) -> Self:
        """Take shapes, weights and costs from segments; masks are not taken into account.

        >>> Problem.of([Segment("north", (30, 20), cost=2.0)], ranks=[3]).costs
        (2.0,)
        """
        listed = list(segments)
        weights, costs = tuple(each.weight for each in listed), tuple(each.cost for each in listed)
        return cls(tuple(each.shape for each in listed), tuple(ranks), p, weights, costs)

    def complexities(self, delta: float | None = None) -> tuple[float, ...]:
        """Give each matrix's complexity c_k; see `complexity`."""
        pairs = zip(self.shapes, self.ranks, strict=True)
        return tuple(complexity(shape, rank, delta=delta) for shape, rank in pairs)

    def upper_bound(
        self, budget: float, *, constant: Proven = 1.0, amplitude: float = 1.0, C: float = 1.0
    ) -> float:
        """Give the bound ‖c‖_{p/(p+1)}/n on MALocate's loss, times a constant and A².

        `constant` is a number, or "paper" (2^(1/p)·64·max(C, 128), which the proof ends with), or
        "sharp" (8·(C + 128), which its steps give: errors of C and 128 add up, and the two bounds
        that it balances meet at 8). C is that of the square-root lasso, which nobody has
        computed, and A = `amplitude` bounds the answers. Warns of conditions that fail.

        >>> import warnings
        >>> from malocate.theory import TheoryWarning
        >>> market = Problem(((200, 200),) * 10, (40,) + 9 * (10,))
        >>> with warnings.catch_warnings(action="ignore", category=TheoryWarning):
        ...     round(market.upper_bound(200_000))
        27551
        """
        warn_of(self.conditions(budget))
        return self._active(self.complexities(), budget) * _factor(
            constant, self.p, amplitude=amplitude, C=C
        )

    def uniform_bound(self, budget: float, *, amplitude: float = 1.0, C: float = 1.0) -> float:
        """Give the bound C·A²·K·‖c‖_p/n on the loss of asking all segments equally often.

        >>> market = Problem(((200, 200),) * 10, (40,) + 9 * (10,))
        >>> round(market.uniform_bound(200_000))
        84773
        """
        check_positive("budget", budget)
        weighted = np.multiply(self.complexities(), self.weights)
        total = math.fsum(self.costs)
        return C * amplitude**2 * total * power_mean(weighted, self.p) / budget

    def advantage(self) -> float:
        """Give how many times uniform's bound is MALocate's: K‖c‖_p/‖c‖_{p/(p+1)}, at least 1.

        >>> market = Problem(((200, 200),) * 10, (40,) + 9 * (10,), p=1)
        >>> round(market.advantage(), 2)
        1.07
        """
        return self.uniform_bound(1.0) / self._active(self.complexities(), 1.0)

    def allocation(self, budget: float) -> tuple[int, ...]:
        """Give the good allocation T_k ∝ (w_k·c_k)^(p/(p+1))·cost_k^(−1/(p+1)), whole answers.

        Rounded down; what is left goes where most was cut off, as long as it pays an answer.

        >>> Problem(((200, 200), (200, 200)), (40, 10), p=1).allocation(90)
        (60, 30)
        """
        ideal = self._ideal(budget)
        answers = [math.floor(each) for each in ideal]
        left = budget - math.fsum(np.multiply(answers, self.costs))
        for place in sorted(range(len(ideal)), key=lambda place: answers[place] - ideal[place]):
            cost = self.costs[place]
            if cost <= left * (1 + 1e-12):
                answers[place] += 1
                left -= cost
        return tuple(answers)

    def budget_for(
        self,
        epsilon: float,
        delta: float | None = None,
        *,
        constant: Proven = 1.0,
        amplitude: float = 1.0,
        C: float = 1.0,
    ) -> float:
        """Give the budget with which the bound on MALocate's loss is ε: about ‖c‖_{p/(p+1)}/ε.

        With δ, the paper's log d becomes log(1/δ): the (ε, δ) sample complexity. Unlike
        `upper_bound` it does not warn; `conditions` of the budget tell what is proven.

        >>> market = Problem(((200, 200),) * 10, (40,) + 9 * (10,))
        >>> round(market.budget_for(27_551) / 1000)
        200
        """
        check_positive("epsilon", epsilon)
        factor = _factor(constant, self.p, amplitude=amplitude, C=C)
        return factor * self._active(self.complexities(delta), epsilon)

    def lower_bound(
        self, budget: float, *, noise: float = 1.0, constant: Constant = "corrected"
    ) -> float:
        """Give a loss that no strategy beats on all problems of these shapes and ranks.

        It is a·A²·Σ r_k d_k³/n, A the standard deviation `noise`, and a by `constant`: "paper",
        "corrected", "optimised", "two_point" or "gaussian"; `malocate.theory.lower` has the proofs.
        "gaussian" is the largest and depends on p; the others are for the max loss, which
        is no larger than any other.

        >>> market = Problem(((200, 200),) * 10, (40,) + 9 * (10,))
        >>> [round(market.lower_bound(200_000, constant=a), 2) for a in ("corrected", "gaussian")]
        [0.14, 5200.0]
        """
        pairs = list(zip(self.shapes, self.ranks, strict=True))
        enough = all(packs(constant, shape, rank) for shape, rank in pairs)
        warn_of([Condition("size", enough, "rank times longer side must be 8 at least")])
        hidden = [
            lower_constant(constant, shape, rank) * degrees(shape, rank) * math.prod(shape)
            for shape, rank in pairs
        ]
        p = self.p if constant == "gaussian" else math.inf
        return noise**2 * self._active(hidden, budget, p)

    def information_limit(self, budget: float, *, noise: float = 1.0) -> float:
        """Give the loss of the best allocation if each error is σ²·r(d1 + d2 − r)/T per entry.

        >>> market = Problem(((200, 200),) * 10, (40,) + 9 * (10,), p=1)
        >>> round(market.information_limit(200_000, noise=0.1))
        930
        """
        pairs = zip(self.shapes, self.ranks, strict=True)
        limits = [parameters(shape, rank) * math.prod(shape) for shape, rank in pairs]
        return noise**2 * self._active(limits, budget)

    def conditions(self, budget: float) -> list[Condition]:
        """Give the conditions of the upper bound, each with whether it holds.

        >>> market = Problem(((200, 200),) * 10, (40,) + 9 * (10,))
        >>> [each.name for each in market.conditions(200_000) if not each.holds]
        ['stated budget', 'probability', 'lemma', 'regime']
        """
        return upper_conditions(self.shapes, self.costs, budget, self._ideal(budget))

    def _active(
        self, complexities: Sequence[float], budget: float, p: float | None = None
    ) -> float:
        """Give the least loss L^p where errors are complexity/answers: ‖w·c·cost‖_{p/(p+1)}/n."""
        check_positive("budget", budget)
        priced = np.multiply(complexities, self.weights) * self.costs
        return power_mean(priced, _dual(self.p if p is None else p)) / budget

    def _ideal(self, budget: float) -> list[float]:
        """Give the good allocation before rounding."""
        check_positive("budget", budget)
        weighted, costs = np.multiply(self.complexities(), self.weights), self.costs
        spent = (weighted / weighted.max() * costs) ** _dual(self.p)
        return list(budget * spent / math.fsum(spent) / costs)


def _dual(p: float) -> float:
    """Give p/(p + 1), 1 for p = ∞."""
    return 1.0 if math.isinf(p) else p / (p + 1)


def _factor(constant: Proven, p: float, *, amplitude: float, C: float) -> float:
    """Give the upper bound's constant times A²."""
    check_positive("amplitude", amplitude)
    check_positive("C", C)
    if constant == "paper":
        number = 2 ** (1 / p) * 64 * max(C, 128)
    elif constant == "sharp":
        number = 8 * (C + 128)
    else:
        check_positive("constant", constant, "it must be a positive number, 'paper' or 'sharp'")
        number = float(constant)
    return number * amplitude**2


def _one_each(name: str, given: Iterable[float], count: int) -> tuple[float, ...]:
    """Give one positive number for each matrix."""
    listed = tuple(given)
    if len(listed) != count:
        raise InvalidInput(f"There are {len(listed)} {name} for {count} shapes; give each one.")
    for place, each in enumerate(listed):
        check_positive(f"{name}[{place}]", each)
    return listed
