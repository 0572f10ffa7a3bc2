"""Simulate a campaign in memory: plan a round, ask the sources, look, until it stops."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from malocate.compute import Compute
from malocate.confidence.ensemble import Ensemble
from malocate.design import Design
from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import Completion
from malocate.experiments.run import Recorder, Run
from malocate.experiments.truth import true_error
from malocate.problem import Observations, Segment
from malocate.problem.arrays import Int64s
from malocate.problem.checks import a
from malocate.problem.entries import Entries
from malocate.rounds import Batch, Finding, Questions, Stop, begin, close, plan, questions, spent
from malocate.rounds.step import MapOf
from malocate.sources import Replay, Source, as_source

Seen = Literal["completed", "answered"]
"""What cells that were trained on count as, in a true loss."""

Sources = Mapping[str, Any] | Sequence[Any]


def simulate(
    design: Design,
    sources: Sources,
    *,
    rng: int | np.random.Generator | None = None,
    bands: bool = True,
    seen: Seen = "completed",
    progress: bool | None = None,
    compute: Compute | None = None,
    map_of: MapOf | None = None,
) -> Run:
    """Run a whole campaign against sources that answer at once.

    - `sources`: one for each segment, by name or in their order: `Synthetic`, `Replay`, or any
      function of rows and columns.
    - `rng`: the seed of the draws and answers; by default the design's. Runs with one seed see
      the same answers in the same order, whatever their strategy.
    - `bands`: False spares the fits that judge, for strategies that need no judgement; not where
      the design delivers an ensemble, which is made of them.
    - `seen`: what the true losses count at cells that the delivered fit was trained on: their
      "completed" values, or the mean of their answers ("answered"), which some packages give
      back. Bands are of the completion either way.
    - `progress`: a bar on the terminal; by default if there is one.
    - `compute`: where fits are done; by default as the design says.
    - `map_of`: instead, for a segment's name and its numbers of draws before and now, the map
      that runs the fits of that look.

    >>> from malocate import Design, SoftImpute, Synthetic, simulate
    >>> sources = {
    ...     "easy": Synthetic.low_rank((30, 20), rank=1, rng=0),
    ...     "hard": Synthetic.low_rank((30, 20), rank=4, rng=1),
    ... }
    >>> segments = [source.segment(name) for name, source in sources.items()]
    >>> run = simulate(Design(segments, budget=1_500, estimator=SoftImpute()), sources)
    >>> run.stop.why
    'the budget is spent'
    >>> asked = run.frame().iloc[-1]
    >>> bool(asked["n_hard"] > asked["n_easy"])
    True
    """
    design = design if rng is None else replace(design, seed=_seed(rng))
    _check_seen(seen, design)
    panels = [Panel(segment, source) for segment, source in _matched(design, sources)]
    recorder = Recorder(design)
    findings = begin(design)
    errors: list[float | None] = [None] * len(panels)
    with _bar(design.budget, progress) as show:
        while not isinstance(step := plan(design, findings, errors), Stop):
            for batch in step.batches:
                panels[batch.place].ask(design, batch)
            asked = {batch.segment: panels[batch.place] for batch in step.batches}
            findings = close(
                design,
                step,
                findings,
                {name: panel.answers for name, panel in asked.items()},
                judge=bands,
                doubts={name: panel.doubt for name, panel in asked.items()},
                compute=compute,
                map_of=map_of,
            )
            for batch in step.batches:
                found, panel = findings[batch.place], panels[batch.place]
                kept = panel.trained(design).entries if seen == "answered" else None
                errors[batch.place] = panel.error(found, kept)
            recorder.note(step, findings, errors)
            show(spent(design, findings))
    return recorder.run(findings, step)


_RESTARTED = "Recorded answers ran out and served again: repeats are not independent any more."


class Panel:
    """One segment with the people behind it: what it was asked, and what it answered."""

    def __init__(self, segment: Segment, source: Source) -> None:
        self.segment, self.source = segment, source
        self.answers: Observations = segment.observations([], [], [])
        self.restarted = False

    def ask(self, design: Design, batch: Batch) -> None:
        """Ask a batch's draws and keep the answers."""
        asked = questions(design, self.segment, batch.first, batch.stop)
        key = (design.seed, self.segment.name, "answer")
        draws = asked.asked(self._visits(asked))
        values = self.source.answer(draws, *key)
        if isinstance(self.source, Replay) and not self.source.replace:
            self.restarted |= bool(self.source.restarts(draws).any())
        new = self.segment.observations(
            asked.rows, asked.cols, values, draws=asked.draws, repeats=asked.repeats
        )
        self.answers = Observations.concat([self.answers, new])

    @property
    def doubt(self) -> str:
        """Why no band may be called certified: recorded answers ran out and served again."""
        return _RESTARTED if self.restarted else ""

    def trained(self, design: Design) -> Observations:
        """Give the answers that the delivered fit has seen: one part's, or all of them."""
        if design.deliver == "refit":
            return self.answers
        parts = design.scheme.parts(self.answers, design.seed, self.segment.name)
        return parts[0].train if len(parts) == 1 else self.answers

    def error(self, finding: Finding | None, kept: Entries | None = None) -> float | None:
        """Give the true mean squared error of what is delivered, where the truth is known.

        Entries that are `kept` count with the mean of their answers.
        """
        return None if finding is None else self.error_of(finding.completion, kept)

    def error_of(
        self, completion: Completion | Ensemble, kept: Entries | None = None
    ) -> float | None:
        """Give the true mean squared error of a completion, where the truth is known."""
        return true_error(self.source, self.segment, completion, kept)

    def _visits(self, asked: Questions) -> Int64s:
        """Count how often each draw's cell had been asked before."""
        rows = np.concatenate([self.answers.rows, asked.rows]).astype(np.int64)
        cells = rows * self.segment.shape[1] + np.concatenate([self.answers.cols, asked.cols])
        order = np.argsort(cells, kind="stable")
        first = np.flatnonzero(np.diff(cells[order], prepend=-1))
        lengths = np.diff(np.append(first, len(order)))
        visits = np.empty(len(order), dtype=np.int64)
        visits[order] = np.arange(len(order)) - np.repeat(first, lengths)
        return visits[len(self.answers) :]


def _check_seen(seen: Any, design: Design) -> None:
    if seen not in get_args(Seen):
        raise InvalidInput(f"seen is {seen!r}; choose from {', '.join(get_args(Seen))}.")
    if seen == "answered" and (design.keep == "best" or design.schedule.fresh):
        raise InvalidInput(
            'seen is "answered", but this design forgets what its delivered fit was trained on; '
            'choose keep="latest" and a schedule that uses answers again.'
        )


def _matched(design: Design, sources: Any) -> list[tuple[Segment, Source]]:
    """Give each segment its source; refuse what is missing, and what belongs to none."""
    names = [segment.name for segment in design.segments]
    if not isinstance(sources, Mapping):
        if not isinstance(sources, Sequence) or isinstance(sources, str):
            raise InvalidType(f"sources is {a(sources)}; give a dict or a list of sources.")
        if len(sources) != len(names):
            raise InvalidInput(
                f"There are {len(sources)} sources and {len(names)} segments; give each one."
            )
        sources = dict(zip(names, sources, strict=True))
    odd = sorted(set(sources) ^ set(names))
    if odd:
        raise InvalidInput(
            f"sources and segments differ in {', '.join(map(str, odd))}; give each segment one."
        )
    return [(each, as_source(sources[each.name], each.shape)) for each in design.segments]


def _seed(rng: Any) -> int:
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    return rng  # type: ignore[no-any-return]  # checked by the design


@contextmanager
def _bar(budget: float, wanted: bool | None) -> Iterator[Callable[[float], None]]:
    """Show how much of the budget is spent, on a terminal."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    if not wanted:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("asked"), BarColumn(), TextColumn("{task.completed:,.0f}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("asked", total=budget)
        yield lambda now: progress.update(task, completed=now)
