"""The band: how wrong a completion may be, with what certainty, and given what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy.typing as npt

from malocate.confidence import intervals
from malocate.confidence.audit import Audit
from malocate.confidence.bounds import Bound
from malocate.confidence.ensemble import Ensemble
from malocate.confidence.evidence import Evidence
from malocate.confidence.schemes import Scheme
from malocate.estimators.base import Completion
from malocate.problem.counting import counted

Label = Literal["certified", "approximate"]
Deliver = Literal["refit", "ensemble"]


@dataclass(frozen=True)
class Folding:
    """What decides which answers judge which fit; warm starts must agree in it."""

    scheme: Scheme
    salt: int | str
    segment: str


@dataclass(frozen=True, eq=False, repr=False)
class Band:
    """An estimate of a completion's mean squared error, and a bound that holds with 1 − delta.

    `upper` bounds the error of exactly `completion`; `ensemble_upper` is the tighter bound of
    `ensemble`, the average of the fold fits, of which `estimate` and `se` speak, too. `label` is
    "certified" (proven for every number of answers) or "approximate", `given` says what either
    rests on, and `reason` why a bound is infinite or worse than it could be. `certainty` is that
    of this bound alone or, with a grid of looks, of all looks at once, for which this one spends
    `delta`.

    >>> from malocate import SoftImpute, Synthetic, error_band
    >>> source = Synthetic.ratings(shape=(40, 30), rank=2, rng=0)
    >>> band = error_band(SoftImpute(2.0), source.observe(1500, rng=1))
    >>> print(band)  # doctest: +ELLIPSIS
    With certainty 0.95 (certified) the root mean squared error is at most ...
    """

    estimate: float
    se: float
    upper: float
    label: Label
    given: str
    noise: float
    replicated: int
    completion: Completion | Ensemble
    delivered: Deliver
    ensemble: Ensemble
    ensemble_upper: float
    answers: int
    bound: Bound
    audit: Audit | None
    reason: str
    folding: Folding
    evidence: Evidence
    delta: float = 0.05
    certainty: float = 0.95

    def __repr__(self) -> str:
        return (
            f"Band(estimate {self.estimate:.4g} ± {self.se:.2g}, upper {self.upper:.4g}, "
            f"{self.label}, {counted(self.answers, 'answer')})"
        )

    def __str__(self) -> str:
        """Say it in a sentence or two."""
        words = "Nothing bounds the error yet"
        if math.isfinite(self.upper):
            words = (
                f"With certainty {self.certainty:.4g} ({self.label}) the root mean squared error "
                f"is at most {self.rmse_upper:.4g}; the estimate is {self.rmse:.4g}"
            )
        return f"{words}. Given {self.given}. {self.reason}".rstrip()

    @property
    def rmse(self) -> float:
        """The estimated root mean squared error, zero where the estimate is below zero."""
        return math.sqrt(max(0.0, self.estimate))

    @property
    def rmse_upper(self) -> float:
        """The bound on the delivered completion's root mean squared error."""
        return math.sqrt(self.upper)

    def interval(
        self,
        rows: npt.ArrayLike,
        cols: npt.ArrayLike,
        level: float = 0.9,
        of: intervals.Of = "answer",
    ) -> intervals.Interval:
        """Give an interval at each cell: for the next answer there, or for the cell's mean.

        For the answer it is CV+, whose proven coverage is about 1 − 2(1 − level), not `level`;
        the interval's `guarantee` is that number. For the mean it is approximate.
        """
        trusted = self.folding.scheme.whole and (self.audit is None or self.audit.passed)
        error = max(self.estimate, self.se if math.isfinite(self.se) else 0.0)
        return intervals.interval(self.evidence, rows, cols, level, of, error, trusted)
