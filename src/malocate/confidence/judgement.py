"""Complete a matrix and say how wrong the completion may be: the work behind a band."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

from numpy.typing import ArrayLike

from malocate.confidence.audit import Audit, audit
from malocate.confidence.band import Band, Deliver, Folding
from malocate.confidence.bounds import Bound, bound_of, check_honest
from malocate.confidence.checks import check_fit, check_noise, check_request
from malocate.confidence.ensemble import Ensemble, clipped, distance
from malocate.confidence.estimates import Estimate, estimate_of
from malocate.confidence.evidence import Evidence, Judged
from malocate.confidence.noise import Noise, replicate_noise
from malocate.confidence.schemes import Part, Scheme, scheme_of
from malocate.confidence.spending import Anytime, first_draws, settled_draws
from malocate.confidence.weights import draw_weights
from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import Completion, Estimator
from malocate.problem import Observations
from malocate.problem.arrays import Index

Job = tuple[int, Index | None, Completion | None]
"""A fit's place, which answers it is made of (None for all), and where it starts."""

Done = tuple[int, Completion]
Map = Callable[[Callable[[Job], Done], list[Job]], Iterable[Done]]


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
    unanswered: tuple[ArrayLike, ArrayLike] | None = None,
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
      default those that were answered without a gap. Take each look once: answers that come in
      later count at the next.
    - `unanswered`: (rows, columns) of the draws that were refused or given up, for the audit.
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
    check_request(estimator, observations, delta, deliver)
    check_noise(noise_variance, observations.scale)
    folding, judge = Folding(scheme_of(scheme), salt, segment), estimate_of(estimate)
    chosen = bound_of(bound, observations, folding.scheme.whole)
    check_honest(chosen, estimate, folding.scheme.whole, observations)
    seen, spent, reason = looked_at(observations, delta, look, settled)
    parts = [] if reason else folding.scheme.parts(seen, salt, segment)
    starts = _starts(start, folding, deliver)
    fits, refit = _fitted(estimator, seen, parts, deliver, starts, map)
    judged = [Judged(done, part.judge) for done, part in zip(fits, parts, strict=True)]
    evidence = Evidence(judged, _noise(seen, noise_variance), seen, folding.scheme.whole)
    verdict = _verdict(evidence, judge, chosen, folding.scheme, spent)
    audited = audit(seen, unanswered=unanswered) if check_uniform else None
    band = _delivered(evidence, verdict, refit, folding, audited)
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


def looked_at(
    observations: Observations, delta: float, look: Anytime | None, settled: int | None
) -> tuple[Observations, float, str]:
    """Give the answers that are judged, the chance of error, and why none are where none are."""
    if look is None:
        if settled is not None:
            raise InvalidInput("settled counts draws for a look; give the grid: look=Anytime(…).")
        return observations, delta, ""
    if not isinstance(look, Anytime):
        raise InvalidType(f"look is {look!r}; it must be a grid of sizes, Anytime(…).")
    draws = settled_draws(observations) if settled is None else settled
    reached = look.reached(draws)
    if reached is not None:
        return first_draws(observations, reached), reached.delta, ""
    words = f"The first look comes at {look.size(1):,} settled draws; {draws:,} are"
    if settled is None and draws < len(observations):
        words += f": draw {draws:,} has no answer. If it is over, say settled="
    return observations.take(slice(0, 0)), look.delta_at(1), f"{words}."


def _fitted(
    estimator: Estimator,
    seen: Observations,
    parts: list[Part],
    deliver: Deliver,
    starts: list[Completion | None],
    map: Map,  # noqa: A002
) -> tuple[list[Completion], Completion | None]:
    """Fit every part, and all answers where that is what will be delivered."""
    trains: list[Index | None] = [part.trains for part in parts]
    trains += [None] if deliver == "refit" or not parts else []
    starts = starts if len(starts) == len(trains) else [None] * len(trains)
    jobs = list(zip(range(len(trains)), trains, starts, strict=True))
    fits = _in_order(map(partial(_fit, estimator, seen), jobs), len(jobs))
    fits = [clipped(check_fit(done, seen.shape), seen.scale) for done in fits]
    return fits[: len(parts)], fits[-1] if len(fits) > len(parts) else None


def fit_all(
    estimator: Estimator,
    observations: Observations,
    start: Completion | None = None,
    map: Map = map,  # noqa: A002
) -> Completion:
    """Give the completion that a band would deliver, a fit to all answers, without the band.

    >>> from malocate import SoftImpute, Synthetic
    >>> answers = Synthetic.ratings(shape=(40, 30), rank=2, rng=0).observe(900, rng=1)
    >>> fit_all(SoftImpute(2.0), answers).clip
    (1.0, 5.0)
    """
    _, done = _fitted(estimator, observations, [], "refit", [start], map)
    assert done is not None  # noqa: S101  # it was what was asked for
    return done


def fit_parts(
    estimator: Estimator,
    observations: Observations,
    parts: list[Part],
    map: Map = map,  # noqa: A002
) -> list[Completion]:
    """Fit the training answers of every part, clipped to the scale.

    >>> from malocate import CrossFit, SoftImpute, Synthetic
    >>> answers = Synthetic.ratings(shape=(40, 30), rank=2, rng=0).observe(900, rng=1)
    >>> len(fit_parts(SoftImpute(2.0), answers, CrossFit(3).parts(answers, 0, "")))
    3
    """
    return _fitted(estimator, observations, parts, "ensemble", [], map)[0] if parts else []


def _fit(estimator: Estimator, seen: Observations, job: Job) -> Done:
    place, trains, start = job
    train = seen if trains is None else seen.take(trains)
    if train.home is not None:  # what is grouped for the fit is let go with it
        train = copy(train)
    return place, estimator.fit(train, start=start)


def _in_order(done: Iterable[Done], count: int) -> list[Completion]:
    """Give the fits in the order of their jobs: a map may hand them back in any."""
    fits = dict(done)
    if set(fits) != set(range(count)):
        raise InvalidInput(
            f"map gave {len(fits)} of {count} fits; it must run the function on every job and "
            "give back every result, as the builtin map does."
        )
    return [fits[place] for place in range(count)]


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
    if not folding.scheme.permanent:
        raise InvalidInput(
            f"With scheme={folding.scheme.name!r} answers change sides between looks, so the "
            "earlier fits may have seen what is to judge now. Pass start=None."
        )
    starts: list[Completion | None] = list(band.ensemble.members)
    refit = band.completion if isinstance(band.completion, Completion) else None
    return [*starts, refit] if deliver == "refit" else starts


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
    if math.isinf(upper) and not reason:
        reason = f"There are too few answers for the bound {bound.name!r}."
    proven = kind in bound.proven and scheme.whole and math.isfinite(upper)
    return _Verdict(estimate, bound, upper, proven, reason)


def _delivered(
    evidence: Evidence,
    verdict: _Verdict,
    refit: Completion | None,
    folding: Folding,
    audited: Audit | None,
) -> Band:
    """Carry the bound over to what is delivered, and put everything into words."""
    fits = [fold.completion for fold in evidence.folds]
    ensemble = Ensemble(tuple(fits or filter(None, [refit])))
    mask = evidence.observations.mask
    away = 0.0
    if refit is not None:
        away = distance(refit, ensemble.members, mask, limit=evidence.walkable)
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
    draws = (
        "uniform draws" if evidence.uniform else "draws with the stated probabilities, none zero"
    )
    parts = [draws + ("" if audited is not None else " (not audited)"), verdict.bound.condition]
    if verdict.estimate.kind == "residual" and evidence.noise.declared is not None:
        parts.append("the declared noise variance")
    elif evidence.noise.entries:
        parts.append("independent errors of repeated answers")
    if not scheme.whole:
        parts.append("an error at unseen entries like that at all")
    return ", ".join(filter(None, parts))
