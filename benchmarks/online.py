"""OnlineLeastSquares at the end of a stream against a batch fit of all answers, and its cost.

python benchmarks/online.py            # a few minutes; goes on where it was stopped
python benchmarks/online.py --quick    # one stream and one small update

The stream begins with a batch fit and then reads the rest in equal updates. The batch fit that it
is held against is `LowRankLeastSquares` with all answers and the same rank setting. Errors are mean
squared per entry, seconds are processor time on one thread, with the answers grouped on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numba
import numpy as np
import tables

from malocate import Completion, LowRankLeastSquares, Observations, OnlineLeastSquares, Synthetic

Row = dict[str, Any]
Job = tuple[Row, Callable[[], Row]]

SEEDS = 5
FIRST_SEED = 910_000
REPEATS = 5


@dataclass(frozen=True)
class Stream:
    """A hidden matrix, the answers of the first fit, those of the end and the updates between."""

    name: str
    make: Callable[..., Synthetic]
    first: int
    last: int
    rank: int | Literal["auto"]
    updates: int = 30

    @property
    def key(self) -> Row:
        numbers = {"first": self.first, "last": self.last, "updates": self.updates}
        return {"problem": self.name, "rank": self.rank} | numbers


def low_rank(
    shape: tuple[int, int], rank: int, noise: float, first: int, last: int, updates: int = 30
) -> Stream:
    """A stream that is told the true rank."""
    name = f"{shape[0]} × {shape[1]}, rank {rank}, noise {noise:g}"
    make = partial(Synthetic.low_rank, shape, rank, noise)
    return Stream(name, make, first, last, rank, updates)


def automatic(stream: Stream) -> Stream:
    """The same stream, which finds its rank by itself."""
    return replace(stream, rank="auto")


STREAMS = (
    low_rank((100, 100), 5, 0.1, 4_000, 16_000),
    low_rank((100, 100), 5, 1.0, 4_000, 16_000),
    low_rank((60, 150), 3, 0.3, 3_000, 12_000),
    low_rank((200, 200), 10, 0.1, 12_000, 40_000),
    low_rank((100, 100), 5, 0.1, 1_500, 16_000),
    low_rank((100, 100), 5, 0.1, 1_500, 16_000, updates=300),
    low_rank((100, 100), 5, 0.1, 500, 16_000),
    automatic(low_rank((60, 60), 3, 0.1, 1_500, 6_000)),
    automatic(low_rank((60, 60), 3, 1.0, 2_000, 6_000)),
    automatic(low_rank((40, 100), 2, 0.3, 1_500, 6_000)),
    Stream(
        "60 × 50, ratings 1–5", partial(Synthetic.ratings, (60, 50), 3), 1_500, 6_000, rank="auto"
    ),
)


def error(source: Synthetic, done: Completion) -> float:
    return float(np.mean((done.dense() - source.truth) ** 2))


def streamed(stream: Stream, seed: int) -> Row:
    """Errors of the first fit, of the stream's end and of the batch fit of all answers."""
    source = stream.make(rng=seed)
    answers = source.observe(stream.last, rng=seed + 1)
    online = OnlineLeastSquares(rank=stream.rank)
    done = begun = online.fit(answers.take(slice(0, stream.first)))
    for end in np.linspace(stream.first, stream.last, stream.updates + 1).round().astype(int)[1:]:
        done = online.fit(answers.take(slice(0, end)), start=done)
    batch = LowRankLeastSquares(rank=stream.rank).fit(answers)
    return {
        "first_error": error(source, begun),
        "stream_error": error(source, done),
        "batch_error": error(source, batch),
        "first_rank": begun.rank,
        "batch_rank": batch.rank,
    }


def stream_jobs(quick: bool) -> Iterator[Job]:
    for number in range(1, 2 if quick else SEEDS + 1):
        for stream in STREAMS[:1] if quick else STREAMS:
            yield (
                stream.key | {"seed": number},
                partial(streamed, stream, FIRST_SEED + 100 * number),
            )


@dataclass(frozen=True)
class Past:
    """A stream that has read many answers of a large matrix, about to read new ones."""

    shape: tuple[int, int]
    answers: int
    rank: int = 10

    @cached_property
    def source(self) -> Synthetic:
        return Synthetic.low_rank(self.shape, rank=self.rank, noise=0.1, rng=FIRST_SEED)

    @cached_property
    def all_answers(self) -> Observations:
        return self.source.observe(self.answers + 100_000, rng=FIRST_SEED + 1)

    @cached_property
    def begun(self) -> Completion:
        ridge = 0.1 * self.answers / (self.shape[0] * self.shape[1] * self.rank) ** 0.5
        batch = LowRankLeastSquares(rank=self.rank, ridge=ridge, centre="none")
        return OnlineLeastSquares(batch=batch).fit(self.all_answers.take(slice(0, self.answers)))

    def update(self, new: int) -> Row:
        """Seconds of one update, the median of several."""
        fresh = self.all_answers.take(slice(self.answers, self.answers + new))
        times = []
        for _ in range(REPEATS):
            began = time.process_time()
            OnlineLeastSquares().fit(fresh.take(slice(None)), start=self.begun)
            times.append(time.process_time() - began)
        return {"seconds": tables.median(times)}


def cost_jobs(quick: bool) -> Iterator[Job]:
    shape = (2_000, 500) if quick else (20_000, 5_000)
    for answers in (100_000,) if quick else (500_000, 1_900_000):
        past = Past(shape, answers)
        for new in (1_000,) if quick else (1, 10_000, 90_000):
            problem = f"{shape[0]:,} × {shape[1]:,}, rank {past.rank}"
            yield {"problem": problem, "past": answers, "new": new}, partial(past.update, new)


def summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each stream: errors over that of the batch fit, mean and worst of the seeds."""
    lines = []
    for stream in STREAMS:
        mine = tables.matching(rows, stream.key)
        if not mine:
            continue
        begun, ended = (
            [float(row[f"{which}_error"]) / float(row["batch_error"]) for row in mine]
            for which in ("first", "stream")
        )
        lines.append(
            {
                "problem": stream.name,
                "rank setting": stream.rank,
                "first fit on": f"{stream.first:,}",
                "then up to": f"{stream.last:,}",
                "updates": stream.updates,
                "first fit / batch": tables.number(float(np.mean(begun))),
                "stream / batch": f"**{tables.number(float(np.mean(ended)))}**",
                "worst": tables.number(max(ended)),
                "seeds": len(mine),
            }
        )
    return lines


def cost_summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each number of answers in the past: seconds of an update by its new answers."""
    lines: dict[tuple[str, str], Row] = {}
    for row in rows:
        line = lines.setdefault(
            (row["problem"], row["past"]),
            {"problem": row["problem"], "answers in the past": f"{int(row['past']):,}"},
        )
        line[f"{int(row['new']):,} new"] = f"{float(row['seconds']):.2f} s"
    return list(lines.values())


def main() -> None:
    chosen = tables.arguments(__doc__)
    numba.set_num_threads(1)
    anew, folder = chosen.anew or chosen.quick, tables.folder(chosen.quick)
    small = Synthetic.low_rank((30, 30), rank=2).observe(300)
    OnlineLeastSquares().fit(small, start=OnlineLeastSquares().fit(small))  # compiles
    rows = tables.fill(folder / "online.csv", stream_jobs(chosen.quick), anew)
    print(tables.markdown(summary(rows)))
    rows = tables.fill(folder / "online_cost.csv", cost_jobs(chosen.quick), anew)
    print(tables.markdown(cost_summary(rows)))


if __name__ == "__main__":
    main()
