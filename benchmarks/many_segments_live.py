"""A live campaign of thousands of segments: what planning a round, its status and a page cost.

python benchmarks/many_segments_live.py            # SQLite; some five minutes
python benchmarks/many_segments_live.py --quick

Processor time, apart from the looks themselves: of a planner that has planned before, of one that
comes anew (a command, or another server process), of the status, and of one segment's finding, as
the dashboard and the API read it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import tables
from threadpoolctl import threadpool_limits

from malocate import Campaign, Design, Growing, HoldOut, MALocate, Segment, SoftImpute
from malocate.campaign import stepping

SIZES = (250, 500, 1_000, 2_000)
SHARE, ROUNDS = 40, 3


def design_of(segments: int) -> Design:
    """Give a campaign of many small segments, a fortieth of which is asked at once."""
    return Design(
        [Segment(f"s{place:05}", (10, 10), scale=(1, 5)) for place in range(segments)],
        200 * segments,
        estimator=SoftImpute(2.0),
        validation=HoldOut(0.2),
        schedule=Growing(1.5, per_side=1, least=20),
        strategy=MALocate(parallel_segments=max(1, segments // SHARE)),
    )


def answer(campaign: Campaign) -> None:
    """Answer everything that the round which is out asks."""
    while tickets := campaign.ask(10_000, who="w"):
        values = [float(1 + (ticket.draw + len(ticket.segment)) % 5) for ticket in tickets]
        campaign.tell_many(list(zip(tickets, values, strict=True)))
        if not any(campaign.store.waiting(campaign.id)):
            return


def seconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def planned(campaign: Campaign) -> float:
    """Plan a round and give its processor time without the looks."""
    looks, usual = [], stepping.close

    def close(*given: Any, **named: Any) -> Any:
        found: list[Any] = []
        looks.append(seconds(lambda: found.append(usual(*given, **named))))
        return found[0]

    with patch.object(stepping, "close", close):
        whole = seconds(campaign.plan)
    return whole - sum(looks)


def measure(segments: int) -> dict[str, float]:
    """Run a campaign's first rounds."""
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        path = Path(folder) / "many.db"
        with Campaign.create(path, design_of(segments)) as campaign:
            warm = []
            for _ in range(2 + ROUNDS):
                warm.append(planned(campaign))
                answer(campaign)
            status = median(seconds(campaign.status) for _ in range(5))
        with Campaign.open(path) as campaign:
            cold = planned(campaign)
            one = seconds(lambda: campaign.findings()[segments // 2])
    return {"warm": median(warm[2:]), "cold": cold, "status": status, "finding": one}


def jobs(quick: bool) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, float]]]]:
    for segments in (40, 80) if quick else SIZES:
        yield {"segments": segments}, lambda told=segments: measure(told)


def summary(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """One line for each number of segments, in milliseconds."""
    names = {
        "warm": "plan a round, ms",
        "cold": "the same, anew, ms",
        "status": "status, ms",
        "finding": "one segment's finding, ms",
    }
    return [
        {"segments": f"{int(row['segments']):,}"}
        | {name: f"{1e3 * float(row[key]):,.0f}" for key, name in names.items()}
        for row in sorted(rows, key=lambda row: int(row["segments"]))
    ]


def main() -> None:
    chosen = tables.arguments(__doc__)
    path = tables.folder(chosen.quick) / "many_segments_live.csv"
    rows = tables.fill(path, jobs(chosen.quick), chosen.anew)
    print(tables.markdown(summary(rows)))


if __name__ == "__main__":
    main()
