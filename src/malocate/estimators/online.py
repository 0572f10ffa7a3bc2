"""Least squares that learns from each new answer once: its cost does not grow with the past."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import Completion, Estimator, Status, check_start
from malocate.estimators.centring import Centre
from malocate.estimators.engine.blas import pinned
from malocate.estimators.engine.factored import balanced
from malocate.estimators.streaming import Heard, Lines, Watch, fitted, update
from malocate.problem import Entries, Observations
from malocate.problem.settings import check_count

Floats = npt.NDArray[np.float64]

_LEAST_NOISE = 1e-8  # noise variance over that of the answers, so that no precision is infinite


@dataclass(frozen=True)
class OnlineLeastSquares:
    """A factored fit that is moved by new answers alone, for streams.

    The first fit, without a start of its own making, is `batch`'s on all answers
    (`LowRankLeastSquares(rank=rank)` unless given), and settles rank and centring. From then on
    ``fit(observations, start=previous)`` reads only the answers with a later draw number than
    `previous` has seen: each row and column is a recursive least-squares problem that remembers
    its coefficients and their precision in `Completion.memory`. An update costs in proportion to
    the new answers, plus one pass over that memory, (rows + columns) · rank² numbers.

    An answer that comes late, with an earlier draw number, is not read. Where repeated answers
    show the noise, misses beyond chance make the past count less, so that a poor beginning is
    overcome; the rank never grows, however. Fit anew without a start now and then.

    >>> from malocate import Synthetic
    >>> source = Synthetic.low_rank(shape=(60, 40), rank=2, noise=0.1, rng=0)
    >>> stream = OnlineLeastSquares(rank=2)
    >>> done = stream.fit(source.observe(1000, rng=1))
    >>> done = stream.fit(source.observe(3000, rng=1), start=done)  # reads the last 2,000
    >>> done.status.value
    'updated from the new answers alone'
    >>> bool(((done.dense() - source.truth) ** 2).mean() < 0.001)
    True
    """

    rank: int | Literal["auto"] = "auto"
    batch: Estimator | None = None

    def __post_init__(self) -> None:
        if self.batch is not None and (
            isinstance(self.batch, type) or not hasattr(self.batch, "fit")
        ):
            raise InvalidType(f"batch is {self.batch!r}; it must be an estimator, or None.")
        if self.rank == "auto":
            return
        check_count("rank", self.rank, least=0, instead="'auto'")
        if self.batch is not None:
            raise InvalidInput(
                f"rank is {self.rank} and batch is {self.batch!r}; the batch estimator settles the "
                "rank, so give one of the two."
            )

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        """Move `start` by the answers that it has not seen, or begin with a batch fit."""
        check_start(observations, start)
        if start is None or not start.memory.get("next_draw"):  # it has heard nothing yet
            return self._begun(observations, start)
        new = observations.since(start.memory["next_draw"])
        with pinned():
            return _updated(start, new)

    def _begun(self, observations: Observations, start: Completion | None) -> Completion:
        done = (self.batch or self._default_batch()).fit(observations, start=start)
        if len(observations) == 0:
            rows, cols = _bare_sides(done.factors, done.centre)
            offset = done.centre.offset
            return _completion(done, done.status, offset, rows, cols, Watch(), observations, 0)
        with pinned():
            left, values, right = balanced(*done.factors)
            kept = values > 1e-10 * np.max(values, initial=0.0)
            root = np.sqrt(values[kept])
            sides = left[:, kept] * root, right[:, kept] * root
            entries = observations.entries
            rows, cols, watch = _first_lines(sides, done.centre, entries)
        return _completion(
            done,
            done.status,
            done.centre.offset,
            rows,
            cols,
            watch,
            observations,
            len(observations),
        )

    def _default_batch(self) -> Estimator:
        from malocate.estimators.low_rank import LowRankLeastSquares

        return LowRankLeastSquares(rank=self.rank)


def _first_lines(
    sides: tuple[Floats, Floats], centre: Centre, entries: Entries
) -> tuple[Lines, Lines, Watch]:
    """Give both sides with the precision that all answers so far lend them."""
    rows, cols = _bare_sides(sides, centre)
    targets, weights = entries.means - centre.offset, entries.visits.astype(np.float64)
    watch = Watch(left_over=_left_over(rows, cols, entries, targets)).repeated(entries)
    if rows.prior.size == 0:
        return rows, cols, watch
    scale = float(np.mean(targets**2)) or float(np.mean(entries.means**2)) or 1.0
    noise = max(watch.noise, _LEAST_NOISE * scale)
    rows, cols = (_with_prior(lines, noise, scale) for lines in (rows, cols))
    return (
        rows.learned(cols, Heard(entries.rows, entries.cols, weights, targets)),
        cols.learned(rows, Heard(entries.cols, entries.rows, weights, targets)),
        watch,
    )


def _bare_sides(sides: tuple[Floats, Floats], centre: Centre) -> tuple[Lines, Lines]:
    """Give both sides as they stand, with no precision yet."""
    additive = centre.kind == "additive"
    rows, cols = (
        _bare_lines(factor, each if additive else None)
        for factor, each in zip(sides, (centre.rows, centre.cols), strict=True)
    )
    return rows, cols


def _bare_lines(factor: Floats, effects: Floats | None) -> Lines:
    if effects is not None:
        effects = effects if effects.size else np.zeros(len(factor))
        factor = np.column_stack([factor, effects])
    size = factor.shape[1]
    return Lines(factor, np.zeros((len(factor), size, size)), np.zeros(size), effects is not None)


def _with_prior(lines: Lines, noise: float, scale: float) -> Lines:
    """Take each coefficient's own mean square as what to expect of it before any answer.

    Where all are zero, as after a single answer, a share of the answers' own `scale` stands in.
    """
    spread = np.mean(lines.coefficients**2, axis=0)
    prior = noise / np.maximum(spread, _LEAST_NOISE * (np.max(spread) or scale))
    precision = np.zeros_like(lines.precision) + np.diag(prior)
    return Lines(lines.coefficients, precision, prior, lines.effects)


def _left_over(rows: Lines, cols: Lines, entries: Entries, targets: Floats) -> float:
    """Give the variance, per answer, of what the fit does not explain of the entries' means."""
    parameters = rows.prior.size * (sum(entries.shape) - rows.prior.size)
    freedom = max(len(entries) - parameters, len(entries) / 2)
    misses = targets - fitted(rows, cols, entries)
    return float(entries.visits @ misses**2 / freedom)


def _updated(start: Completion, new: Observations) -> Completion:
    memory, entries = start.memory, new.entries
    offset, answers = start.centre.offset, int(memory["answers"]) + len(new)
    rows, cols, watch = _lines(start, "left"), _lines(start, "right"), _watch(memory)
    if len(new) and not rows.effects and offset != 0:
        misses = entries.means - offset - fitted(rows, cols, entries)
        offset += float(entries.visits @ misses) / answers
    if len(new) and rows.prior.size:
        rows, cols, watch = update(rows, cols, watch, entries, entries.means - offset)
    return _completion(start, Status.UPDATED, offset, rows, cols, watch, new, answers)


def _completion(
    before: Completion,
    status: Status,
    offset: float,
    rows: Lines,
    cols: Lines,
    watch: Watch,
    new: Observations,
    answers: int,
) -> Completion:
    size = rows.prior.size - rows.effects
    effects = (rows.shift, cols.shift) if rows.effects else ()
    next_draw = max(new.numbering.end, int(before.memory.get("next_draw", 0)))
    centre = Centre(offset, *effects)
    memory = {
        "answers": answers,
        "centre": centre.kind,
        "next_draw": next_draw,
        "effects": rows.effects,
        "left_precision": rows.precision,
        "left_prior": rows.prior,
        "right_precision": cols.precision,
        "right_prior": cols.prior,
        **asdict(watch),
    }
    return Completion(
        rows.coefficients[:, :size],
        cols.coefficients[:, :size],
        centre,
        status,
        clip=before.clip,
        labels=new.labels,
        memory=memory,
    )


def _lines(done: Completion, side: Literal["left", "right"]) -> Lines:
    factor, effects = done.left, done.centre.rows
    if side == "right":
        factor, effects = done.right, done.centre.cols
    memory = done.memory
    if memory["effects"]:
        factor = np.column_stack([factor, effects])
    return Lines(
        factor, memory[f"{side}_precision"], memory[f"{side}_prior"], bool(memory["effects"])
    )


def _watch(memory: Any) -> Watch:
    return Watch(**{each.name: memory[each.name] for each in fields(Watch)})
