"""How fast a campaign takes asks and answers, on SQLite and on PostgreSQL, each commit on the disk.

python benchmarks/campaign.py            # about seven minutes
python benchmarks/campaign.py --quick

32 processes ask for one ticket and tell one answer, over and over; one process tells 1,000 answers
at once; the chain of the log is checked; and a campaign of a million answers is opened and asked
how it stands. A durable rate is mostly that of the disk: beside each stands the median time of an
fdatasync on the same disk, and how idle the machine was just before. PostgreSQL is a server of its
own, or that of MALOCATE_TEST_URL. Rates are measured in three turns, of which the median counts,
because the disk and the cores of a shared machine are not always as fast. Written to
benchmarks/results/campaign.csv.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import tables

from malocate import Campaign, Design, Segment
from malocate.store import Answer, Drawn, Planned, Store

sys.path.insert(0, str(tables.HERE.parent / "tests"))
from databases import database, shared_server

LEASE = 10_000.0
BATCH = 1_000
TURNS = {"pairs": 3, "batches": 3, "large": 1}
TARGETS = {  # at least, but for waits and times
    ("pairs per second", "sqlite"): 500,
    ("pairs per second", "postgresql"): 1_200,
    ("longest wait, s", "sqlite"): 1.0,
    ("answers per second, told by 1,000", "sqlite"): 30_000,
    ("answers per second, told by 1,000", "postgresql"): 10_000,
    ("log rows checked per second", "sqlite"): 100_000,
    ("log rows checked per second", "postgresql"): 100_000,
    ("open, s", "sqlite"): 2.0,
    ("open, s", "postgresql"): 2.0,
    ("status, ms", "sqlite"): 200.0,
    ("status, ms", "postgresql"): 200.0,
}
AT_MOST = ("longest wait, s", "open, s", "status, ms")
Row = dict[str, Any]


def draws(count: int, first: int = 0) -> list[Drawn]:
    """Give open draws, of two segments in turn."""
    none = (None, "open", 0, None, None, None, None, False)
    numbers = range(first, first + count)
    return [Drawn(k, 1, k % 2, k // 2, k % 1999, k % 1997, -1, *none) for k in numbers]


def begun(url: str, count: int) -> int:
    """Make a campaign with so many open draws, and give its number."""
    segments = [Segment("north", (2_000, 2_000)), Segment("south", (2_000, 2_000))]
    with Campaign.create(url, Design(segments, 10**7), name=f"of {time.time()}") as campaign:
        told = {"body": "{}", "standing": "{}", "event": {}, "memories": {}}
        campaign.store.begin(campaign.id, Planned(1, 0, draws=draws(count), **told), now=0.0)
        return campaign.id


def fdatasync(folder: Path) -> float:
    """Give the median milliseconds that a small write takes to the disk."""
    times = []
    with (folder / "synced").open("wb") as file:
        for _ in range(200):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(1000 * (time.perf_counter() - began))
    return median(times)


def idle() -> float:
    """Give the share of a second for which the processors had nothing to do."""

    def read() -> tuple[int, int]:
        ticks = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)

    before = read()
    time.sleep(1.0)
    after = read()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def ask_and_tell(url: str, campaign: int, me: int, seconds: float, start: Any, out: Any) -> None:
    with closing(Store.open(url)) as store:
        store.held(campaign)
        start.wait()
        count, longest, end = 0, 0.0, time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            now = time.time()
            lent = store.lend(campaign, 1, f"worker {me}", now=now, until=now + LEASE).fresh
            asked = time.monotonic()
            told = [Answer(each.id, each.attempt, 2.5) for each in lent]
            assert store.tell(campaign, told, now=time.time()) == ["answered"]
            count += 1
            longest = max(longest, asked - began, time.monotonic() - asked)
        out.put((count, longest))


def pairs(url: str, workers: int, seconds: float) -> Row:
    """Let many processes ask and tell one by one."""
    campaign = begun(url, int(5_000 * seconds))
    forked = multiprocessing.get_context("fork")
    start, out = forked.Barrier(workers), forked.Queue()
    crowd = [
        forked.Process(target=ask_and_tell, args=(url, campaign, me, seconds, start, out))
        for me in range(workers)
    ]
    for each in crowd:
        each.start()
    found = [out.get(timeout=60 + 10 * seconds) for _ in crowd]
    for each in crowd:
        each.join()
    counts = [count for count, _ in found]
    return {
        "pairs per second": sum(counts) / seconds,
        "longest wait, s": max(longest for _, longest in found),
        "fewest pairs of a worker": min(counts),
        "most pairs of a worker": max(counts),
    }


def batches(url: str, count: int) -> Row:
    """Tell many answers at once, after lending as many at once."""
    campaign = begun(url, count)
    lending = telling = 0.0
    with closing(Store.open(url)) as store:
        for turn in range(count // BATCH):
            began = time.perf_counter()
            lent = store.lend(campaign, BATCH, f"{turn}", now=1.0, until=LEASE).fresh
            asked = time.perf_counter()
            told = [Answer(each.id, each.attempt, 0.5) for each in lent]
            assert set(store.tell(campaign, told, now=2.0)) == {"answered"}
            lending, telling = lending + asked - began, telling + time.perf_counter() - asked
        store.seal(campaign)
        while store.seal(campaign):
            pass
        began = time.perf_counter()
        found = store.check(campaign)
        checking = time.perf_counter() - began
        assert (found.broken, found.unsealed) == ("", 0)
    return {
        "answers per second, told by 1,000": count / telling,
        "tickets per second, lent by 1,000": count / lending,
        "log rows checked per second": found.events / checking,
    }


def large(url: str, count: int) -> Row:
    """Open a campaign of many answers, and ask how it stands."""
    campaign = begun(url, count)
    with closing(Store.open(url)) as store:
        name = store.held(campaign).name
        for turn in range(0, count, 10_000):
            lent = store.lend(campaign, 10_000, f"{turn}", now=1.0, until=LEASE).fresh
            told = [Answer(each.id, each.attempt, 0.5) for each in lent]
            store.tell(campaign, told, now=2.0)
    began = time.perf_counter()
    with Campaign.open(url, name) as opened:
        opening = time.perf_counter() - began
        times = []
        for _ in range(5):
            began = time.perf_counter()
            assert opened.status().answered == count
            times.append(1000 * (time.perf_counter() - began))
    return {
        "answers": count,
        "open, s": opening,
        "status, ms": median(times),
        "bytes an answer": size_of(url) / count,
    }


def size_of(url: str) -> float:
    """Give the bytes that a database takes on the disk."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        return float(sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*")))
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return float(found[0])


@contextmanager
def address(kind: str, folder: Path) -> Iterator[str]:
    """Give an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/campaign.db"
        return
    with shared_server() as url, database(url) as found:
        yield found


def measured(kind: str, what: str, quick: bool) -> Row:
    jobs = {
        "pairs": lambda url: pairs(url, 32, 2.0 if quick else 8.0),
        "batches": lambda url: batches(url, 5_000 if quick else 100_000),
        "large": lambda url: large(url, 20_000 if quick else 1_000_000),
    }
    with tempfile.TemporaryDirectory() as made, address(kind, Path(made)) as url:
        before = {"fdatasync, ms": fdatasync(Path(made)), "idle before": idle()}
        return jobs[what](url) | before


def summary(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    """Give a line for each figure that has a target."""
    by_figure: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for row in rows:
        by_figure.setdefault((row["figure"], row["database"]), []).append(row)
    return [_line(figure, turns) for figure, turns in by_figure.items() if figure in TARGETS]


def _line(figure: tuple[str, str], turns: Sequence[Mapping[str, str]]) -> Row:
    values, target = [float(row["value"]) for row in turns], TARGETS[figure]
    at_most = figure[0] in AT_MOST
    met = median(values) <= target if at_most else median(values) >= target
    return {
        "figure": figure[0],
        "database": figure[1],
        "measured": shown(values),
        "target": f"{'≤' if at_most else '≥'} {target:,g}",
        "met": "yes" if met else "**no**",
        "fdatasync, ms": shown([float(row["fdatasync, ms"]) for row in turns]),
        "idle before": f"{median(float(row['idle before']) for row in turns):.0%}",
    }


def shown(values: Sequence[float]) -> str:
    """Give the median, with the least and the most where there are several."""
    middle, *ends = (
        f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
        for value in (median(values), min(values), max(values))
    )
    return f"{middle} ({ends[0]}–{ends[1]})" if len(values) > 1 else middle


def main() -> None:
    chosen = tables.arguments(__doc__)
    path = tables.folder(chosen.quick) / "campaign.csv"
    machine, rows = tables.machine(), []
    for what, turns in TURNS.items():
        for turn, kind in product(range(1 if chosen.quick else turns), ("sqlite", "postgresql")):
            found = measured(kind, what, chosen.quick)
            about = {name: found.pop(name) for name in ("fdatasync, ms", "idle before")}
            for figure, value in found.items():
                row = {"figure": figure, "database": kind, "turn": turn, "value": value} | about
                print(row, flush=True)
                rows.append(row | machine)
            tables.write(path, rows)
    print(tables.markdown(summary(tables.read(path))))


if __name__ == "__main__":
    main()
