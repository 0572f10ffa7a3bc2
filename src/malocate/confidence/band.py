"""The band: how wrong a completion may be, with what certainty, and given what."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal

import numpy.typing as npt

from malocate.confidence import intervals
from malocate.confidence.audit import Audit, audit
from malocate.confidence.bounds import Bound, bound_of, check_honest
from malocate.confidence.ensemble import Ensemble, clipped, distance
from malocate.confidence.estimates import Estimate, estimate_of
from malocate.confidence.evidence import Evidence, Judged
from malocate.confidence.noise import Noise, draw_weights, replicate_noise
from malocate.confidence.schemes import Part, Scheme, scheme_of
from malocate.confidence.spending import Anytime, first_draws
from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import Completion, Estimator
from malocate.estimators.settings import check_share
from malocate.problem import Observations

Label = Literal["certified", "approximate"]
Deliver = Literal["refit", "ensemble"]
Job = tuple[Estimator, Observations, Completion | None]
Map = Callable[[Callable[[Job], Completion], list[Job]], Iterable[Completion]]


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
    rests on, and `reason` why a bound is infinite or worse than it could be.
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
    delta: float
    answers: int
    bound: Bound
    audit: Audit | None
    reason: str
    folding: Folding
    evidence: Evidence = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"Band(estimate {self.estimate:.4g} ± {self.se:.2g}, upper {self.upper:.4g}, "
            f"{self.label}, {self.answers:,} answers)"
        )

    def __str__(self) -> str:
        """Say it in a sentence or two."""
        certainty = f"{1 - self.delta:.4g}".rstrip("0").rstrip(".")
        words = "Nothing bounds the error yet"
        if math.isfinite(self.upper):
            words = (
                f"With certainty {certainty} ({self.label}) the root mean squared error is at "
                f"most {self.rmse_upper:.4g}; the estimate is {self.rmse:.4g}"
            )
        return f"{words}. Given {self.given}.{' ' + self.reason if self.reason else ''}"

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
        return intervals.interval(self.evidence, rows, cols, level, of, self.estimate)


def error_band(
    estimator: Estimator,
    observations: Observations,
    *,
    delta: float = 0.05,
    scheme: str | Scheme = "crossfit",
    estimate: str = "residual",
    bound: str | Bound = "auto",
    noise_variance: float | None = None,
    deliver: Deliver = "refit",
    look: Anytime | None = None,
    start: Band | None = None,
    salt: int | str = 0,
    segment: str = "",
    map: Map = map,  # noqa: A002
    check_uniform: bool = True,
) -> Band:
    """Complete a matrix and say how wrong the completion may be.

    - `delta`: the chance of error of the bound; with a `look`, the grid's counts instead.
    - `scheme`: which answers judge which fit: "crossfit" (or ``CrossFit(folds, share)``),
      "holdout", "halves" or "once_vs_multi".
    - `estimate`: "residual", "pairs" (the paper's) or "two_phase".
    - `bound`: "auto", "betting", "moment", "skew", "normal", "hoeffding", "bernstein", "paper".
    - `noise_variance`: the variance of one answer, where known; else replicates tell it.
    - `deliver`: "refit", a fit to all answers, or "ensemble", the average of the fold fits.
    - `look`: a grid of sizes (`Anytime`), which makes the bounds of all looks hold at once.
    - `start`: the band of an earlier look at the same segment, for warm starts in each fold.
    - `salt`, `segment`: keys of the hash that gives each draw its fold for ever.
    - `map`: how to run the fits, such as a process pool's `map`.
    - `check_uniform`: whether to audit that draws were uniform; where they were not, the label
      "certified" is withdrawn.

    >>> from malocate import LowRankLeastSquares, Synthetic
    >>> source = Synthetic.ratings(shape=(40, 30), rank=2, rng=0)
    >>> band = error_band(LowRankLeastSquares(), source.observe(2000, rng=1))
    >>> error = ((band.completion.dense() - source.truth) ** 2).mean()
    >>> bool(error <= band.upper), band.label
    (True, 'certified')
    """
    _check(estimator, observations, delta, deliver)
    _check_noise(noise_variance)
    folding, judge = Folding(scheme_of(scheme), salt, segment), estimate_of(estimate)
    chosen = bound_of(bound, observations)
    check_honest(chosen, estimate, folding.scheme.whole, observations)
    seen, delta, reason = _looked_at(observations, delta, look)
    parts = [] if reason else folding.scheme.parts(seen, salt, segment)
    fits, refit = _fitted(estimator, seen, parts, deliver, _starts(start, folding, deliver), map)
    judged = [Judged(done, part.judge) for done, part in zip(fits, parts, strict=True)]
    evidence = Evidence(judged, _noise(seen, noise_variance), seen)
    verdict = _verdict(evidence, judge, chosen, folding.scheme, delta)
    return _delivered(evidence, verdict, refit, folding, delta, check_uniform, reason)


@dataclass(frozen=True)
class _Verdict:
    """What is said of the fold average."""

    estimate: Estimate
    bound: Bound
    upper: float
    proven: bool
    reason: str


def _looked_at(
    observations: Observations, delta: float, look: Anytime | None
) -> tuple[Observations, float, str]:
    """Give the answers that are judged, the chance of error, and why none are where none are."""
    if look is None:
        return observations, delta, ""
    reached = look.reached(observations.numbering.end)
    if reached is None:
        first = f"The first look comes at {look.size(1):,} draws."
        return observations.take(slice(0, 0)), look.delta, first
    return first_draws(observations, reached), reached.delta, ""


def _fitted(
    estimator: Estimator,
    seen: Observations,
    parts: list[Part],
    deliver: Deliver,
    starts: list[Completion | None],
    map: Map,  # noqa: A002
) -> tuple[list[Completion], Completion | None]:
    """Fit every part, and all answers where that is what will be delivered."""
    trains = [part.train for part in parts]
    trains += [seen] if deliver == "refit" or not parts else []
    starts = starts if len(starts) == len(trains) else [None] * len(trains)
    jobs = [(estimator, train, start) for train, start in zip(trains, starts, strict=True)]
    fits = [clipped(done, seen.scale) for done in map(_fit, jobs)]
    return fits[: len(parts)], fits[-1] if len(fits) > len(parts) else None


def _fit(job: Job) -> Completion:
    estimator, train, start = job
    return estimator.fit(train, start=start)


def _starts(band: Band | None, folding: Folding, deliver: Deliver) -> list[Completion | None]:
    """Give the earlier band's fits, in the order of the folds; each was made without its fold."""
    if band is None:
        return []
    if not isinstance(band, Band):
        raise InvalidType(
            f"start is {type(band).__name__}; it must be the Band of an earlier look."
        )
    if band.folding != folding:
        raise InvalidInput(
            "start is a band with other folds (scheme, salt or segment differ): its fits have "
            "seen answers that are to judge now. Keep scheme, salt and segment, or pass start=None."
        )
    starts: list[Completion | None] = list(band.ensemble.members)
    refit = band.completion if isinstance(band.completion, Completion) else None
    return [*starts, refit] if deliver == "refit" else starts


def _check_noise(declared: Any) -> None:
    if declared is None:
        return
    if isinstance(declared, bool) or not isinstance(declared, Real):
        raise InvalidType(f"noise_variance is {declared!r}; it must be a number, or None.")
    if not 0.0 <= float(declared) < math.inf:
        raise InvalidInput(f"noise_variance is {declared!r}; it must be 0 or more, and finite.")


def _noise(seen: Observations, declared: float | None) -> Noise:
    found = replicate_noise(seen, draw_weights(seen))
    return found if declared is None else replace(found, declared=float(declared))


def _verdict(
    evidence: Evidence,
    judge: Callable[[Evidence], Estimate],
    bound: Bound,
    scheme: Scheme,
    delta: float,
) -> _Verdict:
    """Estimate and bound the fold average's error."""
    estimate, reason = judge(evidence), ""
    if not evidence.folds:
        words = "No answer was held out to judge by."
        return _Verdict(estimate, bound, math.inf, False, words)
    upper, kind = bound.of(evidence, estimate, delta), estimate.kind
    if kind == "residual" and not evidence.noise.known:
        reason = "No entry was asked twice and no noise variance declared:"
        if bound.needs_scale:
            reason += " the noise of an answer is counted as error."
        else:
            upper, reason = math.inf, f"{reason} nothing tells error from noise."
    elif math.isinf(estimate.value):
        reason = "Too few entries were asked twice within a fold."
    return _Verdict(estimate, bound, upper, kind in bound.proven and scheme.whole, reason)


def _delivered(
    evidence: Evidence,
    verdict: _Verdict,
    refit: Completion | None,
    folding: Folding,
    delta: float,
    check_uniform: bool,
    reason: str,
) -> Band:
    """Carry the bound over to what is delivered, and put everything into words."""
    fits = [fold.completion for fold in evidence.folds]
    ensemble = Ensemble(tuple(fits or filter(None, [refit])))
    mask = evidence.observations.mask
    away = distance(refit, ensemble.members, mask) if refit is not None else 0.0
    audited = audit(evidence.observations) if check_uniform else None
    warning = audited.words if audited is not None and not audited.passed else ""
    reasons = [reason or verdict.reason, warning]
    return Band(
        estimate=verdict.estimate.value,
        se=verdict.estimate.se,
        upper=(math.sqrt(verdict.upper) + away) ** 2 if away else verdict.upper,
        label="certified" if verdict.proven and not warning else "approximate",
        given=_given(evidence, verdict, folding.scheme, audited),
        noise=evidence.noise.value,
        replicated=evidence.noise.entries,
        completion=ensemble if refit is None else refit,
        delivered="ensemble" if refit is None else "refit",
        ensemble=ensemble,
        ensemble_upper=verdict.upper,
        delta=delta,
        answers=len(evidence.observations),
        bound=verdict.bound,
        audit=audited,
        reason=" ".join(filter(None, reasons)),
        folding=folding,
        evidence=evidence,
    )


def _given(evidence: Evidence, verdict: _Verdict, scheme: Scheme, audited: Audit | None) -> str:
    """Say what the bound rests on."""
    draws = "uniform draws" if evidence.uniform else "draws with the stated probabilities"
    parts = [draws + ("" if audited is not None else " (not audited)"), verdict.bound.condition]
    if evidence.noise.declared is not None:
        parts.append("the declared noise variance")
    elif evidence.noise.entries:
        parts.append("independent errors of repeated answers")
    if not scheme.whole:
        parts.append("an error at unseen entries like that at all")
    return ", ".join(filter(None, parts))


def _check(estimator: Any, observations: Any, delta: float, deliver: str) -> None:
    check_share("delta", delta)
    if not isinstance(estimator, Estimator):
        raise InvalidType(
            f"error_band was given {estimator!r} as its estimator; it takes one with a `fit`, "
            "such as LowRankLeastSquares()."
        )
    if not isinstance(observations, Observations):
        raise InvalidType(
            f"error_band was given {type(observations).__name__}; it takes Observations."
        )
    if deliver not in ("refit", "ensemble"):
        raise InvalidInput(f"deliver is {deliver!r}; choose 'refit' or 'ensemble'.")
