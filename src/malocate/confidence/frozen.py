"""Certify a completion that is finished, by answers that came later; valid at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from malocate.confidence.audit import Audit, audit
from malocate.confidence.band import Label
from malocate.confidence.betting import running_lower, running_upper
from malocate.confidence.checks import check_alike, check_noise
from malocate.confidence.ensemble import clipped, largest_miss
from malocate.confidence.evidence import Judged
from malocate.confidence.weights import draw_weights
from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import Completion
from malocate.problem import Observations
from malocate.problem.settings import check_share

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """A bound on a frozen completion's mean squared error that may be read at any time.

    With a chance of at least 1 − delta it holds at every number of later answers at once. `label`
    is "certified", or "approximate" where the audit found that draws were not uniform.
    """

    upper: float
    estimate: float
    noise: float
    answers: int
    delta: float
    given: str
    completion: Completion
    label: Label
    audit: Audit | None

    def __str__(self) -> str:
        """Say it in a sentence or two."""
        warning = self.audit.words if self.audit is not None and not self.audit.passed else ""
        return (
            f"With certainty {1 - self.delta:.4g} ({self.label}) the root mean squared error is "
            f"at most {math.sqrt(self.upper):.4g}, by {self.answers:,} later answers. "
            f"Given {self.given}. {warning}"
        ).rstrip()


def certify(
    completion: Completion,
    later: Observations,
    *,
    delta: float = 0.05,
    noise_variance: float | None = None,
    check_uniform: bool = True,
) -> Certificate:
    """Bound the error of a completion by answers that it was not made from.

    The answers must lie on a declared scale and be drawn uniformly, without a look at them. The
    noise is taken off if its variance is declared, or if some later draws were re-asked on
    purpose (`repeats`): doubles by chance cannot be used here. One may look after every answer.

    >>> from malocate import LowRankLeastSquares, Synthetic
    >>> source = Synthetic.ratings(shape=(40, 30), rank=2, rng=0)
    >>> done = LowRankLeastSquares().fit(source.observe(900, rng=1))
    >>> sealed = certify(done, source.observe(600, rng=2))
    >>> error = ((sealed.completion.dense() - source.truth) ** 2).mean()
    >>> bool(error <= sealed.upper < 2.0), sealed.label
    (True, 'certified')
    """
    check_share("delta", delta)
    _check(completion, later, noise_variance)
    scale = later.scale or (0.0, 0.0)
    done = clipped(completion, scale)
    later = later.take(np.argsort(later.draws, kind="stable"))
    squares, variances = _in_draw_order(Judged(done, later))
    spent = delta if noise_variance is not None else delta / 2
    upper = running_upper(squares, largest_miss(done, scale, later.mask), spent)
    noise, least, given = noise_variance or 0.0, noise_variance or 0.0, "the declared noise"
    if noise_variance is None:
        given = "independent errors of the replicates"
        least = running_lower(variances, (scale[1] - scale[0]) ** 2 / 2, delta / 2)
        noise = float(variances.mean()) if len(variances) else 0.0
        if not len(variances):
            given = "nothing more; the noise of an answer is part of it, for no draw was re-asked"
    estimate = float(squares.mean()) - noise if len(squares) else math.inf
    given = f"uniform draws, answers on the scale, {given}"
    audited = audit(later) if check_uniform else None
    label: Label = "certified" if audited is None or audited.passed else "approximate"
    bound = max(0.0, upper - least)
    return Certificate(bound, estimate, noise, len(later), delta, given, done, label, audited)


def _in_draw_order(judged: Judged) -> tuple[Floats, Floats]:
    """Give the squared miss of each fresh draw, and the variance that each first replicate shows.

    Neither is changed by what comes later, for bets have been made on it.
    """
    answers = judged.answers
    fresh = answers.repeats < 0
    repeated, first = np.unique(answers.repeats[~fresh], return_index=True)
    _, before, at = np.intersect1d(answers.draws[fresh], repeated, return_indices=True)
    again = first[at]
    differences = answers.values[~fresh][again] - answers.values[fresh][before]
    return judged.misses[fresh] ** 2, differences[np.argsort(again)] ** 2 / 2


def _check(completion: Completion, later: Observations, noise_variance: float | None) -> None:
    if not isinstance(completion, Completion):
        raise InvalidType(f"certify was given {type(completion).__name__}, not a Completion.")
    if not isinstance(later, Observations):
        raise InvalidType(f"later is {type(later).__name__}; it must be Observations.")
    check_alike(completion, later)
    if later.scale is None:
        raise InvalidInput(
            "certify needs to know between which values an answer can lie: declare the scale of "
            "the later answers, Observations(…, scale=(least, largest))."
        )
    if draw_weights(later) is not None:
        raise InvalidInput(
            "certify needs draws that were uniform; these have probabilities of their own. Draw "
            "the later answers uniformly, or take error_band(…, bound='moment')."
        )
    check_noise(noise_variance, later.scale)
