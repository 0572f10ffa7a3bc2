"""SoftImpute: least squares on the seen entries plus the nuclear norm, with a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from malocate.errors import InvalidInput
from malocate.estimators.base import (
    Completion,
    Memory,
    Status,
    check_start,
    empty_completion,
    factors_above,
)
from malocate.estimators.centring import Centre, CentreKind, check_kind, fit_centre
from malocate.estimators.convex import nuclear
from malocate.estimators.engine.blas import pinned
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.spectrum import largest_singular_value
from malocate.estimators.engine.table import Table
from malocate.estimators.engine.threads import in_threads
from malocate.problem import Entries, Observations
from malocate.problem.settings import (
    check_count,
    check_positive,
    check_several,
    check_share,
    check_switch,
)

PenaltyRule = Literal["universal", "fancyimpute"]

ENOUGH_REPLICATES = 30
"""Entries answered at least twice from which their variance is trusted as the noise level."""

SMALLEST_SHARE = 1e-3
"""The universal rule's penalty is at least this share of the one that gives zero."""

NOISE_ROUNDS = 12


@dataclass(frozen=True)
class SoftImpute:
    """Least squares on the seen entries plus `penalty` times the nuclear norm.

    Minimises ½ Σ_e visits_e (mean_e − M_e)² + penalty · ‖M‖_* and stops at a *certified* relative
    duality gap of `tol`. The rank is found on the way; nobody has to guess it.

    `penalty` is a number, "universal" (the noise's own operator norm, σ̂ (√(n/d1) + √(n/d2)), with
    σ̂ from replicates or else from the residual) or "fancyimpute" (that package's default, the
    largest singular value of the zero-filled data over 50). The universal rule never goes below a
    thousandth of the penalty that gives zero.

    With `clip` every value is clipped to the observations' scale, if they have one: a heuristic,
    and the status says so; `gap` and the memory's objective are of the matrix before.

    >>> from malocate import SoftImpute, Synthetic
    >>> source = Synthetic.low_rank(shape=(60, 40), rank=2, noise=0.1, rng=0)
    >>> done = SoftImpute(penalty=1.0).fit(source.observe(1200, rng=1))
    >>> done.gap <= 1e-3, done.status.value
    (True, 'converged')
    """

    penalty: float | PenaltyRule = "universal"
    centre: CentreKind = "none"
    tol: float = 1e-3
    max_steps: int = 2000
    clip: bool = False

    def __post_init__(self) -> None:
        """Refuse settings that no data could satisfy."""
        rule = "it must be a positive number, 'universal' or 'fancyimpute'"
        if not isinstance(self.penalty, str):
            check_positive("penalty", self.penalty, rule)
        elif self.penalty not in get_args(PenaltyRule):
            raise InvalidInput(f"penalty is {self.penalty!r}; {rule}.")
        check_kind(self.centre)
        check_share("tol", self.tol)
        check_count("max_steps", self.max_steps)
        check_switch("clip", self.clip)

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        """Complete the matrix; a `start` saves work and changes the result by no more than tol."""
        check_start(observations, start)
        if len(observations) == 0:
            penalty = math.nan if isinstance(self.penalty, str) else float(self.penalty)
            return empty_completion(observations, self._memory(observations, penalty))
        with pinned():
            entries = observations.grouped(in_threads)
            centre = fit_centre(entries, self.centre)
            cells = Cells.above(entries, centre)
            factors = None if start is None else factors_above(centre, start)
            return self._complete(observations, cells, centre, factors)

    def path(
        self,
        observations: Observations,
        penalties: Iterable[float],
        *,
        start: Completion | None = None,
    ) -> Iterator[Completion]:
        """Complete at each penalty in turn, every fit starting from the one before.

        Give the penalties in falling order: each completion is then a short way from the last.
        """
        check_start(observations, start)
        rule = "it must be a list of them; one alone is a setting, SoftImpute(penalty=…).fit(…)"
        check_several("penalties", penalties, rule)
        return self._walked(observations, penalties, start)

    def _walked(
        self, observations: Observations, penalties: Iterable[float], done: Completion | None
    ) -> Iterator[Completion]:
        for penalty in penalties:
            done = replace(self, penalty=penalty).fit(observations, start=done)
            yield done

    def _complete(
        self,
        observations: Observations,
        cells: Cells,
        centre: Centre,
        start: tuple[np.ndarray, np.ndarray] | None,
    ) -> Completion:
        penalty = self._penalty(observations.entries, cells)
        clip = observations.scale if self.clip else None
        solved = nuclear.solve(cells, penalty, tol=self.tol, max_steps=self.max_steps, start=start)
        return Completion(
            solved.left,
            solved.right,
            centre,
            _status(solved, self.tol, clipped=clip is not None),
            solved.gap,
            clip,
            labels=observations.labels,
            memory=self._memory(observations, penalty, solved.objective, solved.steps),
        )

    def _memory(
        self, observations: Observations, penalty: float, objective: float = 0.0, steps: int = 0
    ) -> Memory:
        return {
            "answers": len(observations),
            "centre": self.centre,
            "penalty": penalty,
            "objective": objective,
            "steps": steps,
        }

    def _penalty(self, entries: Entries, cells: Cells) -> float:
        if self.penalty == "universal":
            return universal_penalty(entries, cells)
        if self.penalty == "fancyimpute":
            largest = largest_singular_value(Table(cells, cells.targets))
            return largest / 50 if largest > 0.0 else 1.0
        return float(self.penalty)


def _status(solved: nuclear.Solution, tol: float, *, clipped: bool) -> Status:
    if solved.gap <= tol:
        return Status.CLIPPED if clipped else Status.CONVERGED
    return Status.STALLED if solved.stalled else Status.OUT_OF_STEPS


def universal_penalty(entries: Entries, cells: Cells) -> float:
    """Give σ̂ (√(n/d1) + √(n/d2)): the size of pure noise's operator norm at n answers."""
    per_noise = sum(math.sqrt(entries.n_answers / side) for side in entries.shape)
    zero = largest_singular_value(Table(cells, cells.weights * cells.targets))
    if zero == 0.0:
        return 1.0
    if np.count_nonzero(entries.visits >= 2) >= ENOUGH_REPLICATES:
        noise = math.sqrt(entries.noise_variance)
    else:
        noise = _residual_noise(entries, cells, per_noise)
    return max(noise * per_noise, SMALLEST_SHARE * zero)


def _residual_noise(entries: Entries, cells: Cells, per_noise: float) -> float:
    """Find σ equal to the residual's root mean square at the penalty that σ itself asks for."""
    within = float(entries.squares.sum())
    noise = math.sqrt((within + cells.weights @ cells.targets**2) / entries.n_answers)
    factors = None
    for _ in range(NOISE_ROUNDS):
        solved = nuclear.solve(cells, noise * per_noise, tol=1e-2, max_steps=100, start=factors)
        factors = (solved.left, solved.right)
        norms = np.sum(solved.left**2) + np.sum(solved.right**2)
        missed = 2 * solved.objective - noise * per_noise * norms
        before, noise = noise, math.sqrt(max(0.0, within + missed) / entries.n_answers)
        if noise <= 0.0 or abs(noise - before) <= 0.01 * before:
            break
    return noise
