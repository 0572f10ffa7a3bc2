"""Upper bounds on the error: which may judge which estimate, and what each one promises.

    bound of the fold average = mean over folds of upper(squared misses) − lower(noise) − ambiguity

or, for pair products, mean over folds of upper(products) − ambiguity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from malocate.confidence import tails
from malocate.confidence.estimates import Estimate
from malocate.confidence.evidence import Evidence
from malocate.confidence.weights import draw_weights
from malocate.errors import InvalidInput
from malocate.problem import Observations
from malocate.problem.settings import check_positive

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """A way to bound the error from above, with a chance of at least 1 − delta.

    `judges` names the estimates that it may judge, `proven` those of them that it judges with a
    proof for every number of answers. `unseen` tells whether it may be quoted where the judges
    speak for entries that the fit has not seen only.
    """

    name: ClassVar[str]
    judges: ClassVar[frozenset[str]]
    proven: ClassVar[frozenset[str]] = frozenset()
    needs_scale: ClassVar[bool] = False
    needs_uniform: ClassVar[bool] = False
    unseen: ClassVar[bool] = True

    @property
    def condition(self) -> str:
        """What must be true of the answers for the bound to hold."""
        return "answers on the declared scale" if self.needs_scale else ""

    def of(self, evidence: Evidence, estimate: Estimate, delta: float) -> float:
        """Bound the fold average's mean squared error."""
        if estimate.kind == "pairs":
            return self._of_pairs(evidence, delta)
        spent = delta * (1 - evidence.noise.share)
        upper = self._mean_square(evidence, spent)
        return max(0.0, upper - self._noise(evidence, delta - spent) - evidence.ambiguity)

    def _of_pairs(self, evidence: Evidence, delta: float) -> float:
        raise NotImplementedError

    def _mean_square(self, evidence: Evidence, delta: float) -> float:
        raise NotImplementedError

    def _noise(self, evidence: Evidence, delta: float) -> float:
        return evidence.noise.certified_lower(delta)


@dataclass(frozen=True)
class _Ranged(Bound):
    """A bound on the mean of values that lie in a known range."""

    judges = frozenset({"residual", "pairs"})
    proven = frozenset({"residual", "pairs"})
    needs_scale = True
    needs_uniform = True

    def upper(self, values: Floats, low: float, high: float, delta: float) -> float:
        raise NotImplementedError

    def _mean_square(self, evidence: Evidence, delta: float) -> float:
        each = delta / len(evidence.folds)
        squares = [fold.units.squares for fold in evidence.folds]
        ranges = zip(squares, evidence.highest, strict=True)
        return float(np.mean([self.upper(x, 0.0, high, each) for x, high in ranges]))

    def _of_pairs(self, evidence: Evidence, delta: float) -> float:
        least, largest = evidence.scale or (-math.inf, math.inf)
        low, each = -(((largest - least) / 2) ** 2), delta / len(evidence.folds)
        products = [fold.pairs.products for fold in evidence.folds]
        ranges = zip(products, evidence.highest, strict=True)
        mean = float(np.mean([self.upper(z, low, high, each) for z, high in ranges]))
        return max(0.0, mean - evidence.ambiguity)


@dataclass(frozen=True)
class Betting(_Ranged):
    """The tightest proven bound for answers on a scale: bets against a small error."""

    name = "betting"
    unseen = False

    def upper(self, values: Floats, low: float, high: float, delta: float) -> float:
        """Bound the mean."""
        from malocate.confidence import betting  # numba loads at the first bound

        return low + betting.upper_mean(values - low, high - low, delta)


@dataclass(frozen=True)
class Hoeffding(_Ranged):
    """Hoeffding's inequality on the exact range; for reference."""

    name = "hoeffding"

    def upper(self, values: Floats, low: float, high: float, delta: float) -> float:
        """Bound the mean."""
        return min(high, tails.hoeffding_upper(values, low, high, delta))


@dataclass(frozen=True)
class Bernstein(_Ranged):
    """Maurer and Pontil's empirical Bernstein inequality; for reference."""

    name = "bernstein"
    proven = frozenset({"residual"})

    def upper(self, values: Floats, low: float, high: float, delta: float) -> float:
        """Bound the mean."""
        return min(high, tails.bernstein_upper(values, low, high, delta))


@dataclass(frozen=True)
class Moment(Bound):
    """Proven for answers without a scale, if squared misses v have E v² ≤ kappa · (E v)²."""

    kappa: float = 10.0
    name = "moment"
    judges = proven = frozenset({"residual"})
    unseen = False

    def __post_init__(self) -> None:
        check_positive("kappa", self.kappa)
        if self.kappa < 1:
            raise InvalidInput(f"kappa is {self.kappa!r}; E v² is never below (E v)²: at least 1.")

    @property
    def condition(self) -> str:
        """What must be true of the answers for the bound to hold."""
        return f"squared misses v (weighted as drawn) with E v² ≤ {self.kappa:g} (E v)²"

    def _mean_square(self, evidence: Evidence, delta: float) -> float:
        each = delta / len(evidence.folds)
        folds = [fold.units for fold in evidence.folds]
        factors = [tails.moment_factor(len(units), self.kappa, each) for units in folds]
        means = [float(units.squares.mean()) for units in folds]
        return float(np.mean([_times(*pair) for pair in zip(means, factors, strict=True)]))


@dataclass(frozen=True)
class Skew(Bound):
    """Hall's correction of Student's t for skewness; approximate, for answers without a scale."""

    name = "skew"
    judges = frozenset({"residual", "pairs"})
    unseen = False

    def _mean_square(self, evidence: Evidence, delta: float) -> float:
        squares = np.concatenate([fold.units.squares for fold in evidence.folds])
        return tails.hall_upper(squares, delta)

    def _noise(self, evidence: Evidence, delta: float) -> float:
        return evidence.noise.approximate_lower(delta)

    def _of_pairs(self, evidence: Evidence, delta: float) -> float:
        products = np.concatenate([fold.pairs.products for fold in evidence.folds])
        return max(0.0, tails.hall_upper(products, delta) - evidence.ambiguity)


@dataclass(frozen=True)
class Normal(Bound):
    """The estimate plus a normal quantile of its standard errors; for allocation, not for trust."""

    name = "normal"
    judges = frozenset({"residual", "pairs", "two_phase"})

    def of(self, evidence: Evidence, estimate: Estimate, delta: float) -> float:  # noqa: ARG002
        """Bound the fold average's mean squared error."""
        from scipy.special import ndtri

        return max(0.0, estimate.value + float(-ndtri(delta)) * estimate.se)


@dataclass(frozen=True)
class Paper(Bound):
    """The paper's bound with its constants, R̂ + 8 A² √(log d / N); for reproduction.

    Answers lie between −A and A: `largest`, else half the length of the declared scale, else the
    largest answer seen, which then is a guess. With ``by="delta"`` log(1/δ) takes the place of
    log d, as in the paper's (ε, δ) setting.
    """

    largest: float | None = None
    by: Literal["dimension", "delta"] = "dimension"
    name = "paper"
    judges = frozenset({"pairs"})

    def __post_init__(self) -> None:
        if self.largest is not None:
            check_positive("largest", self.largest)
        if self.by not in ("dimension", "delta"):
            raise InvalidInput(f"by is {self.by!r}; choose 'dimension' or 'delta'.")

    @property
    def condition(self) -> str:
        """What must be true of the answers for the bound to hold."""
        return "answers no larger than the paper's A"

    def of(self, evidence: Evidence, estimate: Estimate, delta: float) -> float:
        """Bound the fold average's mean squared error."""
        count = sum(len(fold.pairs) for fold in evidence.folds)
        if not count:
            return math.inf
        side = max(2, *evidence.observations.shape)
        logarithm = math.log(side if self.by == "dimension" else 1 / delta)
        widest = 8 * self._reach(evidence) ** 2 * math.sqrt(logarithm / count)
        return max(0.0, estimate.value + widest)

    def _reach(self, evidence: Evidence) -> float:
        """Give the paper's A."""
        if self.largest is not None:
            return float(self.largest)
        if evidence.scale is not None:
            return (evidence.scale[1] - evidence.scale[0]) / 2
        return float(np.abs(evidence.observations.values).max(initial=0.0))


BOUNDS: dict[str, type[Bound]] = {
    bound.name: bound for bound in (Betting, Moment, Skew, Normal, Hoeffding, Bernstein, Paper)
}


def bound_of(bound: str | Bound, observations: Observations, whole: bool) -> Bound:
    """Give the bound of a name; "auto" is `betting` where there is a scale, else `skew`.

    Where the judges do not speak for the `whole` matrix it is `normal`.
    """
    if isinstance(bound, Bound):
        return bound
    if bound == "auto" and not whole:
        return Normal()
    if bound == "auto":
        ranged = observations.scale is not None and draw_weights(observations) is None
        return Betting() if ranged else Skew()
    if not isinstance(bound, str) or bound not in BOUNDS:
        raise InvalidInput(f"bound is {bound!r}; choose from auto, {', '.join(BOUNDS)}.")
    return BOUNDS[bound]()


def check_honest(bound: Bound, kind: str, whole: bool, observations: Observations) -> None:
    """Refuse a bound of an estimate that it may not judge, saying why and what to do instead."""
    if kind not in bound.judges:
        may = " or ".join(sorted(bound.judges))
        raise InvalidInput(
            f"bound={bound.name!r} cannot judge estimate={kind!r}: nothing says that it would "
            f"hold. It judges {may}; or take bound='normal', which is approximate."
        )
    if bound.needs_scale and observations.scale is None:
        raise InvalidInput(
            f"bound={bound.name!r} needs to know between which values an answer can lie. Declare "
            "the scale, Observations(…, scale=(least, largest)), or take bound='skew', which is "
            "approximate, or bound='moment'."
        )
    if bound.needs_uniform and draw_weights(observations) is not None:
        raise InvalidInput(
            f"bound={bound.name!r} needs draws that were uniform, and these have probabilities of "
            "their own: nothing limits what one draw may weigh. Take bound='moment' or 'skew'."
        )
    if not whole and not bound.unseen:
        raise InvalidInput(
            f"bound={bound.name!r} would take the error at entries that the fit has not seen for "
            "that of the whole matrix, and draws at one entry for independent. Take "
            "scheme='crossfit' or 'holdout', or bound='paper' or 'normal'."
        )


def _times(mean: float, factor: float) -> float:
    return math.inf if math.isinf(factor) else mean * factor
