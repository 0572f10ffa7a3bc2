"""How long the pages take where there is much to show.

python benchmarks/dashboard.py            # a minute
python benchmarks/dashboard.py --quick

One campaign has a past of 10⁵ rounds, another a segment of 2,000 × 500 cells that has been looked
at. Each page is asked for over HTTP, first when the server has just started, and then again: the
slowest counts. Written to benchmarks/results/dashboard.csv.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import server
import tables
from sqlalchemy import insert, update

from malocate import Campaign, Design, LowRankLeastSquares, Segment, Synthetic
from malocate.store import schema

LONGEST = 1.0
"""Seconds that a page may take."""

NAMES = ("north", "south")
Row = dict[str, Any]


def past(url: str, rounds: int) -> None:
    """Make a campaign with so many rounds behind it, written at once."""
    segments = [Segment(name, (200, 200), scale=(1, 5)) for name in NAMES]
    with Campaign.create(url, Design(segments, 10**8), name="past") as campaign:
        told = [_round(campaign.id, number) for number in range(1, rounds + 1)]
        with campaign.store.database.writing() as connection:
            connection.execute(insert(schema.rounds), told)
            connection.execute(
                update(schema.campaigns).where(schema.campaigns.c.id == campaign.id)
                .values(round=rounds)
            )  # fmt: skip


def _round(campaign: int, number: int) -> Row:
    """Give what a round says of itself."""
    name, asked = NAMES[number % 2], 50 * (number // 2 + 1)
    found = {"asked": asked, "estimate": 1 / number, "upper": 2 / number**0.5}
    told = {"round": number, "spent": 100.0 * number, "bound": 4 / number**0.5}
    told |= {"label": "certified", "why": f"{name}: largest error still expected, 0.42 per cell"}
    told |= {
        "found": {name: found | {"label": "certified"}},
        "batches": [[name, asked, asked + 50]],
    }
    return {"campaign": campaign, "number": number, "planned": 1.0, "body": json.dumps(told)}


def wide(url: str, shape: tuple[int, int]) -> None:
    """Make a campaign whose segment has been looked at."""
    truth = Synthetic.ratings(shape, 5, rng=0)
    rows = [f"person {number}" for number in range(shape[0])]
    columns = [f"wine {number}" for number in range(shape[1])]
    segment = Segment("all", labels=(rows, columns), scale=(1, 5))
    design = Design([segment], 10**6, estimator=LowRankLeastSquares(rank=5))
    with Campaign.create(url, design, name="wide") as campaign:
        tickets = campaign.ask(100_000, who="field")
        values = [(t, _rating(truth, t)) for t in tickets]
        campaign.tell_many(values)
        campaign.plan()


def _rating(truth: Synthetic, ticket: Any) -> float:
    row, column = (int(str(label).split(" ")[1]) for label in (ticket.row, ticket.column))
    return float(min(5, max(1, round(truth.truth[row, column]))))


PAGES = {
    "campaign of many rounds": "/c/past",
    "its live part": "/c/past/live",
    "campaigns": "/",
    "campaign of a wide segment": "/c/wide",
    "heat map": "/c/wide/s/all",
    "heat map, sorted, page 30 × 15": "/c/wide/s/all?rows=high&columns=low&r=30&c=15",
}


def timed(path: str, token: str) -> tuple[float, int]:
    """Give the seconds that a page takes, and its bytes."""
    began = time.perf_counter()
    line = http.client.HTTPConnection("127.0.0.1", server.PORT, timeout=60)
    line.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = line.getresponse()
    text = answer.read()
    line.close()
    assert answer.status == 200, answer.status
    return time.perf_counter() - began, len(text)


def measured(url: str, token: str, what: str, size: str) -> Row:
    """Ask for a page first of a server that has just started, then again."""
    with server.served(url):
        first, length = timed(PAGES[what], token)
        again = [timed(PAGES[what], token)[0] for _ in range(5)]
    figures = {"first, s": first, "again, s": median(again), "slowest, s": max(first, *again)}
    return {"page": what, "of": size} | figures | {"bytes": length}


def summary(rows: list[dict[str, str]]) -> list[Row]:
    """Give a line for each page."""
    return [
        {
            "page": row["page"],
            "of": row["of"],
            "first, after a start": f"{float(row['first, s']):.2f} s",
            "again": f"{float(row['again, s']):.3f} s",
            "kB": f"{int(row['bytes']) / 1e3:.0f}",
            "target": f"< {LONGEST:g} s",
            "met": "yes" if float(row["slowest, s"]) < LONGEST else "**no**",
        }
        for row in rows
    ]


def main() -> None:
    chosen = tables.arguments(__doc__)
    rounds, shape = (2_000, (200, 50)) if chosen.quick else (100_000, (2_000, 500))
    sizes = {"past": f"{rounds:,} rounds", "wide": f"{shape[0]:,} × {shape[1]:,} cells"}
    with tempfile.TemporaryDirectory() as folder:
        url = str(Path(folder) / "pages.db")
        past(url, rounds)
        wide(url, shape)
        token = server.token_for_all(url)
        machine, rows = tables.machine(), []
        for what, path in PAGES.items():
            size = next((size for name, size in sizes.items() if name in path), "both")
            rows.append(measured(url, token, what, size))
            print(rows[-1], flush=True)
    found = [row | machine for row in rows]
    tables.write(tables.folder(chosen.quick) / "dashboard.csv", found)
    print(tables.markdown(summary(tables.read(tables.folder(chosen.quick) / "dashboard.csv"))))


if __name__ == "__main__":
    main()
