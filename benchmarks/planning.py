"""What deciding costs beyond the fits: time of a round among many segments, memory over rounds.

python benchmarks/planning.py

A campaign of 1,000 segments of 200 × 200, with a stand-in for the estimator that costs nothing:
what is left of a round is planning, asking and judging. Then 100 and 1,000 rounds of one campaign
with the memory that Python holds after each. Written to benchmarks/results/planning.csv.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tables

from malocate import Batches, Completion, Design, HoldOut, Observations, Segment, SoftImpute
from malocate.rounds import Round, begin, close, plan, questions

SIDE, SEGMENTS, ROUNDS = 200, 1_000, 15


@dataclass(frozen=True)
class Means:
    """An estimator that costs next to nothing: every cell is the mean answer."""

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        del start
        left, right = (np.ones((side, 1)) for side in observations.shape)
        return Completion(left * float(observations.values.mean()), right)


class People:
    """Answer every draw at once, the same for all cells but for some noise."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.answers = {each.name: each.observations([], [], []) for each in design.segments}

    def answer(self, step: Round) -> None:
        for batch in step.batches:
            segment = self.design.segments[batch.place]
            asked = questions(self.design, segment, batch.first, batch.stop)
            values = np.sin(asked.draws * (1.0 + batch.place))
            new = segment.observations(
                asked.rows, asked.cols, values, draws=asked.draws, repeats=asked.repeats
            )
            self.answers[segment.name] = Observations.concat([self.answers[segment.name], new])


def timed(work: Callable[[], object]) -> tuple[float, object]:
    begun = time.process_time()
    done = work()
    return time.process_time() - begun, done


def planning() -> dict[str, object]:
    """Time rounds among many segments, apart from their fits."""
    segments = [Segment(f"s{k}", (SIDE, SIDE)) for k in range(SEGMENTS)]
    design = Design(segments, 10**9, estimator=Means())
    people, findings, plans, looks = People(design), begin(design), [], []
    for number in range(ROUNDS + 1):
        spent, step = timed(lambda findings=findings: plan(design, findings))
        assert isinstance(step, Round)
        people.answer(step)
        looked, findings = timed(
            lambda step=step, findings=findings: close(design, step, findings, people.answers)
        )
        if number:  # the first round is of all segments
            plans.append(1000 * spent)
            looks.append(1000 * looked)
    return {
        "what": f"a round among {SEGMENTS:,} segments of {SIDE} × {SIDE}",
        "planning, ms": float(np.median(plans)),
        "judging without fits, ms": float(np.median(looks)),
    }


def memory() -> list[dict[str, object]]:
    """Give the memory held after some rounds of a campaign that looks at every answer."""
    from malocate import Synthetic, simulate

    sources = {name: Synthetic.ratings((12, 10), rank=1, rng=k) for k, name in enumerate("abc")}
    segments = [source.segment(name, cap=4_000) for name, source in sources.items()]
    lines: list[dict[str, object]] = []
    for rounds in (10, 100, 1_000):  # the first warms up and is not counted
        design = Design(
            segments,
            3 * 60 + rounds,
            estimator=SoftImpute(penalty=2.0, tol=1e-2),
            validation=HoldOut(0.2),
            schedule=Batches(size=1, first=60),
        )
        tracemalloc.start()
        run = simulate(design, sources, progress=False)
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        lines.append(
            {
                "what": f"{len(run.records):,} rounds of three segments, 12 × 10",
                "memory held, MB": held / 1e6,
                "peak, MB": peak / 1e6,
                "per round, kB": peak / 1e3 / len(run.records),
            }
        )
    return lines[1:]


def main() -> None:
    machine = tables.machine()
    rows = [planning(), *memory()]
    for row in rows:
        print(row)
    names = dict.fromkeys(name for row in rows for name in row)
    filled = [{name: row.get(name, "") for name in names} | machine for row in rows]
    tables.write(tables.RESULTS / "planning.csv", filled)


if __name__ == "__main__":
    main()
