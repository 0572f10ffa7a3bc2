"""A trial of a design: its run, that of a rival, and what both come to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malocate.cli.segments import by_segment
from malocate.cli.showing import ends
from malocate.problem.counting import counted
from malocate.problem.plain import finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from malocate.compute import Compute
    from malocate.design import Design
    from malocate.experiments import Run
    from malocate.experiments.compare import Comparison, Show
    from malocate.strategies import Strategy

PICTURE, SUMMARY = "picture.png", "summary.json"


class Rival(StrEnum):
    """The strategies that a design can be held against."""

    UNIFORM = "uniform"
    PROPORTIONAL = "proportional"
    ORACLE = "oracle"
    NONE = "none"

    def strategy(self, design: Design) -> Strategy:
        """Give the strategy, which asks as many segments at once as the design's own."""
        from malocate import Oracle, Uniform
        from malocate.strategies.choosing import at_once

        several = at_once(design.strategy)
        if self is Rival.ORACLE:
            return Oracle(parallel_segments=several)
        return Uniform("entries" if self is Rival.PROPORTIONAL else "segment", several)


@dataclass(frozen=True, eq=False)
class Trial:
    """The runs of a trial by their names, and what comparing them says."""

    runs: Mapping[str, Run]
    ranks: Mapping[str, int]
    comparison: Comparison | None

    def words(self) -> list[str]:
        """Give what is to be said below the table."""
        name, run = next(iter(self.runs.items()))
        said = [f"{name} stopped: {run.stop.why}.", forecast(run)]
        said += [] if self.comparison is None else [self.comparison.words()]
        return [words for words in said if words]

    def plain(self) -> dict[str, Any]:
        """Give everything for machines; what is not known or infinite is null."""
        found = self.comparison
        worth = None if found is None else {"more": found.more, "reached": found.reached}
        told = {
            "runs": {label: _plain_run(run) for label, run in self.runs.items()},
            "ranks": dict(self.ranks),
            "comparison": worth,
            "words": self.words(),
        }
        plain: dict[str, Any] = finite(told, lambda _: None)
        return plain

    def plot(self) -> Figure:
        """Draw the runs side by side, or the only one."""
        return (self.comparison or next(iter(self.runs.values()))).plot()

    def save(self, out: Path) -> None:
        """Write the runs, a summary and a picture to a folder."""
        for label, run in self.runs.items():
            run.save(out / label)
        text = json.dumps(self.plain(), indent=2, ensure_ascii=False, allow_nan=False)
        (out / SUMMARY).write_text(text + "\n", encoding="utf-8")
        self.plot().savefig(out / PICTURE, dpi=150)


def forecast(run: Run) -> str:
    """Say how many answers are missing to the design's goal; nothing without one, or at it."""
    if run.stop.reached or (run.design.rmse is None and run.design.epsilon is None):
        return ""
    if run.answers_left is None:
        return "How many answers its goal still takes cannot be foretold yet."
    each = ", ".join(f"{name} {more:,}" for name, more in run.answers_left.items() if more)
    total = counted(sum(run.answers_left.values()), "answer")
    return f"Its goal would take about {total} more ({each}), if bounds go on falling so."


def run_trial(
    design: Design,
    ranks: Mapping[str, int],
    noise: float | None,
    against: Rival,
    compute: Compute,
    show: Show,
) -> Trial:
    """Try a design on made-up matrices, by itself or against a rival."""
    from malocate.experiments.compare import compare, watched_run
    from malocate.experiments.twins import twins

    sources = twins(design, ranks, noise=noise, seed=design.seed)
    made = {name: int(source.left.shape[1]) for name, source in sources.items()}
    name, rival = names_of(design, against)
    if against is Rival.NONE:
        return Trial({name: watched_run(design, sources, name, compute, show)}, made, None)
    other = against.strategy(design)
    found = compare(design, sources, other, names=(name, rival), compute=compute, show=show)
    return Trial({name: found.run, rival: found.rival}, made, found)


def names_of(design: Design, against: Rival) -> tuple[str, str]:
    """Give the names of the runs: that of the design's strategy, and its rival's."""
    from malocate.experiments import compare

    return compare.names_of(design.strategy, against.value)


def ranks_of(design: Design, given: Sequence[str]) -> dict[str, int]:
    """Read ranks: "3" is for all segments, "north=8" for one; the later wins."""
    return by_segment(design, given, int, "--rank", "rank")


def _plain_run(run: Run) -> dict[str, Any]:
    last = run.records[-1] if run.records else None
    return {
        "stop": run.stop.why,
        "answers_left": None if run.answers_left is None else dict(run.answers_left),
        "spent": 0.0 if last is None else last.spent,
        "losses": {} if last is None else dict(last.losses),
        "segments": {name: asdict(end) for name, end in ends(run).items()},
    }
