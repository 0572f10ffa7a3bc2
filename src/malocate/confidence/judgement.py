"""Complete a matrix and say how wrong the completion may be: the work behind a band."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from malocate.confidence.audit import Audit, audit
from malocate.confidence.band import Band, Deliver, Folding
from malocate.confidence.bounds import Bound, bound_of, check_honest
from malocate.confidence.ensemble import Ensemble, clipped, distance
from malocate.confidence.estimates import Estimate, estimate_of
from malocate.confidence.evidence import Evidence, Judged
from malocate.confidence.noise import Noise, draw_weights, replicate_noise
from malocate.confidence.schemes import Part, Scheme, scheme_of
from malocate.confidence.spending import Anytime, first_draws, settled_draws
from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import Completion, Estimator
from malocate.estimators.settings import check_count, check_share
from malocate.problem import Observations

Job = tuple[Estimator, Observations, Completion | None]
Map = Callable[[Callable[[Job], Completion], list[Job]], Iterable[Completion]]


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
    settled: int | None = None,
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
    - `look`: a grid of sizes (`Anytime`), which makes the bounds of all looks hold at once;
      a look is taken once its draws are settled.
    - `settled`: how many draws, from number 0 on, have been answered, refused or given up; by
      default those that were answered without a gap.
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
    seen, spent, reason = _looked_at(observations, delta, look, settled)
    parts = [] if reason else folding.scheme.parts(seen, salt, segment)
    fits, refit = _fitted(estimator, seen, parts, deliver, _starts(start, folding, deliver), map)
    judged = [Judged(done, part.judge) for done, part in zip(fits, parts, strict=True)]
    evidence = Evidence(judged, _noise(seen, noise_variance), seen, folding.scheme.whole)
    verdict = _verdict(evidence, judge, chosen, folding.scheme, spent)
    band = _delivered(evidence, verdict, refit, folding, check_uniform)
    certainty = 1 - (delta if look is None else look.delta)
    return replace(band, delta=spent, certainty=certainty, reason=reason or band.reason)


@dataclass(frozen=True)
class _Verdict:
    """What is said of the fold average."""

    estimate: Estimate
    bound: Bound
    upper: float
    proven: bool
    reason: str


def _looked_at(
    observations: Observations, delta: float, look: Anytime | None, settled: int | None
) -> tuple[Observations, float, str]:
    """Give the answers that are judged, the chance of error, and why none are where none are."""
    if look is None:
        return observations, delta, ""
    if settled is not None:
        check_count("settled", settled, least=0)
    draws = settled_draws(observations) if settled is None else settled
    reached = look.reached(draws)
    if reached is None:
        words = f"The first look comes at {look.size(1):,} settled draws; {draws:,} are."
        return observations.take(slice(0, 0)), look.delta_at(1), words
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
    elif kind == "residual" and not evidence.noise.fair and kind in bound.proven:
        reason = (
            "Draws were not uniform and none was re-asked on purpose: the noise of an answer is "
            "counted as error."
        )
    elif math.isinf(estimate.value):
        reason = "Too few entries were asked twice within a fold."
    return _Verdict(estimate, bound, upper, kind in bound.proven and scheme.whole, reason)


def _delivered(
    evidence: Evidence,
    verdict: _Verdict,
    refit: Completion | None,
    folding: Folding,
    check_uniform: bool,
) -> Band:
    """Carry the bound over to what is delivered, and put everything into words."""
    fits = [fold.completion for fold in evidence.folds]
    ensemble = Ensemble(tuple(fits or filter(None, [refit])))
    mask = evidence.observations.mask
    away = distance(refit, ensemble.members, mask) if refit is not None else 0.0
    audited = audit(evidence.observations) if check_uniform else None
    warning = audited.words if audited is not None and not audited.passed else ""
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
        answers=len(evidence.observations),
        bound=verdict.bound,
        audit=audited,
        reason=" ".join(filter(None, [verdict.reason, warning])),
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
