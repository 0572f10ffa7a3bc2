"""A run: what a campaign asked, found and delivered, round by round."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from malocate.confidence.band import Band
from malocate.confidence.ensemble import Ensemble
from malocate.design import Design
from malocate.estimators.base import Completion
from malocate.experiments.saved_band import SavedBand
from malocate.problem import Loss
from malocate.rounds import Finding, Round, Stop, answers_left, loss_bound, loss_of, spent
from malocate.rounds.standings import Findings

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

LOSSES = ("bound", "estimate", "loss", "loss_1", "loss_inf")
"""What a round's losses are of: bounds, estimates, and the truth in three ways."""


@dataclass(frozen=True)
class Change:
    """What one round changed at one segment."""

    segment: str
    asked: int
    estimate: float
    upper: float
    error: float


@dataclass(frozen=True)
class Record:
    """One round: what was spent after it, what it changed, the losses, and its why."""

    spent: float
    changes: tuple[Change, ...]
    losses: dict[str, float]
    why: str


@dataclass(frozen=True, eq=False)
class Run:
    """What a campaign asked, found and delivered.

    `completions` and `bands` are of each segment's last look; `stop` says why it ended, and
    `answers_left` foretells how many more each segment needs to reach the design's goal. The bands
    of a run that was loaded say the same, but have no intervals for cells: see `SavedBand`.

    >>> from malocate import Design, SoftImpute, Synthetic, simulate
    >>> source = Synthetic.ratings((30, 20), rank=1, rng=0)
    >>> design = Design([source.segment("north")], budget=260, estimator=SoftImpute())
    >>> run = simulate(design, {"north": source})
    >>> run.frame()[["spent", "segment", "n_north"]].to_numpy().tolist()
    [[200.0, 'north', 200], [260.0, 'north', 260]]
    """

    design: Design
    records: tuple[Record, ...]
    completions: dict[str, Completion | Ensemble]
    bands: Mapping[str, Band | SavedBand]
    stop: Stop
    answers_left: Mapping[str, int] | None = None

    def frame(self) -> pandas.DataFrame:
        """Give one line per round.

        `spent` is the cost so far, `segment` who was asked (several as "north, south"),
        `n_<segment>` how many answers each has, `upper_<segment>` and `error_<segment>` the bound
        on its mean squared error and the true one, `bound` the loss of the bounds, `estimate`
        that of the estimates, and `loss`, `loss_1` and `loss_inf` the true losses: the design's
        own, the sum and the maximum. What is not known is NaN.
        """
        import pandas

        nothing = Record(0.0, (), dict.fromkeys(LOSSES, math.nan), "")
        records = self.records or (nothing,)
        names = [segment.name for segment in self.design.segments]
        parts = [pandas.DataFrame([_head(*each) for each in enumerate(records, start=1)])]
        for prefix, values in _followed(records, names).items():
            parts.append(pandas.DataFrame(values, columns=[f"{prefix}{name}" for name in names]))
        parts.append(pandas.DataFrame({"why": [record.why for record in records]}))
        return pandas.concat(parts, axis=1).iloc[: len(self.records)]

    def why(self) -> list[str]:
        """Give the reason of each round in words."""
        return [record.why for record in self.records]

    def plot(self) -> Figure:
        """Draw the loss and its bound against what was spent, and who was asked."""
        from malocate.plots import run_picture

        return run_picture(self.frame(), [segment.name for segment in self.design.segments])

    def save(self, folder: Any) -> None:
        """Write the run to a folder: design, rounds, and each segment's completion and band.

        The folder is new or empty, or holds an earlier run, which is replaced.
        """
        from malocate.experiments import run_files

        run_files.save(self, folder)

    @classmethod
    def load(cls, folder: Any) -> Run:
        """Read a run that was saved."""
        from malocate.experiments import run_files

        return run_files.load(folder)


def _head(number: int, record: Record) -> dict[str, Any]:
    """Give the first columns of a round's line in the frame."""
    asked = _listed([change.segment for change in record.changes])
    return {"round": number, "spent": record.spent, "segment": asked, **record.losses}


def _followed(records: Sequence[Record], names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Give rounds × segments: how many answers each has, its bound and its true error."""
    places = {name: place for place, name in enumerate(names)}
    shape = len(records), len(names)
    asked = np.zeros(shape, dtype=np.int64)
    upper, error = (np.full(shape, math.nan) for _ in range(2))
    for number, record in enumerate(records):
        for each in (asked, upper, error):
            each[number] = each[max(0, number - 1)]
        for change in record.changes:
            place = number, places[change.segment]
            asked[place], upper[place], error[place] = change.asked, change.upper, change.error
    return {"n_": asked, "upper_": upper, "error_": error}


def _listed(names: Sequence[str]) -> str:
    """Give names as one text; one that has a comma or a quotation mark is quoted, as in JSON.

    >>> _listed(["north", "south, by the sea"])
    'north, "south, by the sea"'
    """
    odd = [any(mark in name for mark in ',"') for name in names]
    each = zip(names, odd, strict=True)
    return ", ".join(json.dumps(n, ensure_ascii=False) if quoted else n for n, quoted in each)


@dataclass(eq=False)
class Recorder:
    """Notes down a run as it goes: of each round, only what it changed."""

    design: Design
    records: list[Record] = field(default_factory=list)

    def note(self, step: Round, findings: Findings, errors: Sequence[float | None]) -> None:
        """Note one round."""
        changes = tuple(
            _change(batch.segment, findings[batch.place], errors[batch.place])
            for batch in step.batches
        )
        losses = self._losses(findings, errors)
        self.records.append(Record(spent(self.design, findings), changes, losses, step.why))

    def run(self, findings: Findings, stop: Stop) -> Run:
        """Give the run once it has stopped."""
        names = [segment.name for segment in self.design.segments]
        known = [(n, f) for n, f in zip(names, findings, strict=True) if f is not None]
        completions = {name: finding.completion for name, finding in known}
        bands = {name: finding.band for name, finding in known if finding.band is not None}
        left = answers_left(self.design, findings)
        return Run(self.design, tuple(self.records), completions, bands, stop, left)

    def _losses(self, findings: Findings, errors: Sequence[float | None]) -> dict[str, float]:
        """Give the losses of bounds, estimates and, where they are known, true errors."""
        true = [math.nan if error is None else error for error in errors]
        estimates = [
            math.inf if f is None or f.band is None else max(0.0, f.band.estimate) for f in findings
        ]
        frobenius = [
            segment.n_askable * error
            for segment, error in zip(self.design.segments, true, strict=True)
        ]
        known = not any(map(math.isnan, true))
        values = (
            loss_bound(self.design, findings),
            loss_of(self.design, estimates),
            loss_of(self.design, true) if known else math.nan,
            Loss(1).of(frobenius) if known else math.nan,
            Loss().of(frobenius) if known else math.nan,
        )
        return dict(zip(LOSSES, values, strict=True))


def _change(segment: str, finding: Finding | None, error: float | None) -> Change:
    band = None if finding is None else finding.band
    return Change(
        segment,
        0 if finding is None else finding.asked,
        math.nan if band is None else band.estimate,
        math.nan if band is None else band.upper,
        math.nan if error is None else error,
    )
