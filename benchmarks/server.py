"""The HTTP server under load: ask and tell by 32 clients, while a planner fits.

python benchmarks/server.py               # SQLite and PostgreSQL, with and without a dashboard
python benchmarks/server.py --quick       # two seconds on SQLite

A server as `malocate serve` starts it, in a process of its own; the clients share a second
process on the loopback. Beside them another process keeps fitting, as a planner would, at nice 10;
and, in every second run, a dashboard looks for news as its page does, six times as often.
Written to benchmarks/results/server.csv: pairs of ask and tell a second, the time below which 99 of
100 requests stay, and whether every acknowledged answer is in the database, once. Answers are
acknowledged when they are on the disk: beside each run stands the median time of an fdatasync, and
how idle the machine was just before. There are three turns, of which the median counts, because the
disk and the cores of a shared machine are not always as fast.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import campaign as store_rates
import numpy as np
import tables

from malocate import Batches, Campaign, Design, Segment
from malocate.server.access import EVERYWHERE, new_token
from malocate.store import Store, Tokens

CLIENTS, SECONDS, PORT = 32, 8.0, 8790
NAME = "load"
TURNS = 3
LEAST, MOST, CHANGE = 400.0, 100.0, 0.2
"""Pairs a second, milliseconds, and what a dashboard may change of either."""


class Client:
    """Asks and tells until the time is over; keeps how long each request took."""

    def __init__(self, number: int, token: str, until: float) -> None:
        self.number, self.until = number, until
        self.head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        self.times: list[float] = []
        self.told: list[str] = []

    async def run(self) -> None:
        here = f"127.0.0.{2 + self.number}", 0  # requests are limited for each address
        line = await asyncio.open_connection("127.0.0.1", PORT, local_addr=here)
        self.reader, self.writer = line
        while time.monotonic() < self.until:
            asked = (await self.post("ask", {"who": f"client-{self.number}"}))["questions"]
            if not asked:
                await asyncio.sleep(0.05)
                continue
            answer = {"ticket": asked[0]["ticket"], "value": 3}
            if (await self.post("tell", {"answers": [answer]}))["outcomes"] == ["answered"]:
                self.told.append(answer["ticket"])
        self.writer.close()

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        began, text = time.perf_counter(), json.dumps(body)
        about = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        address = f"/api/v1/campaigns/{NAME}/{path}"
        self.writer.write(f"POST {address} HTTP/1.1\r\n{self.head}{about}{text}".encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        found = await self.reader.readexactly(length)
        self.times.append(time.perf_counter() - began)
        assert b" 200 " in head.split(b"\r\n")[0], found
        return json.loads(found)


async def all_of(clients: list[Client]) -> None:
    await asyncio.gather(*(client.run() for client in clients))


def fitting(over: Any) -> None:
    """Keep fitting, as a planner would."""
    os.nice(10)
    from malocate import LowRankLeastSquares, Synthetic

    seen = Synthetic.low_rank(rank=10, rng=0).observe(5_000, rng=1)
    while not over.is_set():
        LowRankLeastSquares().fit(seen)


def polling(token: str, over: Any) -> None:
    """Look for news twice a second, as the page of a campaign does every three seconds."""
    line, tag = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30), ""
    while not over.wait(0.5):
        headers = {"Authorization": f"Bearer {token}"} | ({"If-None-Match": tag} if tag else {})
        line.request("GET", f"/c/{NAME}/live", headers=headers)
        answer = line.getresponse()
        answer.read()
        tag = answer.headers["ETag"] or tag


@contextmanager
def served(url: str) -> Iterator[None]:
    command = [sys.executable, "-m", "malocate", "serve", url, "--port", str(PORT), "--no-planner"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        for _ in range(300):
            try:
                line = http.client.HTTPConnection("127.0.0.1", PORT)
                line.request("GET", "/healthz")
                line.getresponse().read()
                line.close()
                break
            except OSError:
                time.sleep(0.1)
        try:
            yield
        finally:
            process.terminate()


def measured(url: str, seconds: float, dashboard: bool) -> dict[str, object]:
    segment = Segment("north", (200, 200), scale=(1, 5))
    design = Design((segment,), budget=100_000, schedule=Batches(size=30_000, first=30_000))
    with Campaign.create(url, design, name=NAME) as campaign:
        campaign.plan()
        token = new_token(Tokens(campaign.store.database), campaign.id, "load", "asker")
        with served(url):
            clients = crowd(token, seconds, dashboard)
        answered = campaign.status().answered
    told = [ticket for client in clients for ticket in client.told]
    times = np.array([each for client in clients for each in client.times])
    return {
        "dashboard": dashboard,
        "clients": CLIENTS,
        "pairs per second": len(told) / seconds,
        "p99, ms": 1e3 * float(np.percentile(times, 99)),
        "acknowledged": len(told),
        "in the database": answered,
    }


def crowd(token: str, seconds: float, dashboard: bool) -> list[Client]:
    context = multiprocessing.get_context("spawn")
    over = context.Event()
    beside = [context.Process(target=fitting, args=(over,))]
    if dashboard:
        beside.append(context.Process(target=polling, args=(token, over)))
    for each in beside:
        each.start()
    time.sleep(6)  # the planner has loaded its kernels by then
    until = time.monotonic() + seconds
    clients = [Client(number, token, until) for number in range(CLIENTS)]
    try:
        asyncio.run(all_of(clients))
    finally:
        over.set()
    for each in beside:
        each.join()
    return clients


def token_for_all(url: str) -> str:
    """Make a token that opens every campaign to look at."""
    with closing(Store.open(url)) as store:
        return new_token(Tokens(store.database), EVERYWHERE, "benchmark", "viewer")


@contextmanager
def databases(kind: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        if kind == "sqlite":
            yield str(Path(folder) / "load.db")
            return
        sys.path.insert(0, str(tables.HERE.parent / "tests"))
        from databases import database, shared_server

        with shared_server() as server, database(server) as url:
            yield url


def summary(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Give a line for each database, with a dashboard beside and without."""
    kinds = dict.fromkeys((row["database"], row["dashboard"]) for row in rows)
    return [_line(kind, beside == "True", rows) for kind, beside in kinds]


def _line(kind: str, beside: bool, rows: list[dict[str, str]]) -> dict[str, str]:
    def of(name: str, dashboard: bool = beside) -> list[float]:
        about = kind, str(dashboard)
        return [float(row[name]) for row in rows if (row["database"], row["dashboard"]) == about]

    pairs, slow = of("pairs per second"), of("p99, ms")
    told = sum(of("acknowledged"))
    lost = told - sum(of("in the database"))
    change = [
        median(of(name)) / median(of(name, dashboard=False)) - 1
        for name in ("pairs per second", "p99, ms")
    ]
    met = median(pairs) >= LEAST and median(slow) < MOST and lost == 0
    met = met and change[0] >= -CHANGE and change[1] <= CHANGE
    return {
        "database": kind,
        "a dashboard beside": "yes" if beside else "no",
        "pairs a second": store_rates.shown(pairs) + f", {change[0]:+.0%}" * beside,
        "p99, ms": store_rates.shown(slow) + f", {change[1]:+.0%}" * beside,
        "acknowledged and lost": f"{told:,.0f} and {lost:.0f}",
        "target": f"≥ {LEAST:g}, < {MOST:g} ms, 0" + f", within {CHANGE:.0%}" * beside,
        "met": "yes" if met else "**no**",
        "fdatasync, ms": store_rates.shown(of("fdatasync, ms")),
        "idle before": f"{median(of('idle before')):.0%}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows: list[dict[str, object]] = []
    path, machine = tables.folder(quick) / "server.csv", tables.machine()
    kinds, turns = (("sqlite",), 1) if quick else (("sqlite", "postgresql"), TURNS)
    for turn, kind, dashboard in product(range(turns), kinds, (False, True)):
        with databases(kind) as url, tempfile.TemporaryDirectory() as folder:
            before = {"fdatasync, ms": store_rates.fdatasync(Path(folder))}
            before["idle before"] = store_rates.idle()
            row = measured(url, 2.0 if quick else SECONDS, dashboard) | before
        rows.append({"database": kind, "turn": turn, **row, **machine})
        print(rows[-1], flush=True)
        tables.write(path, rows)
    print(tables.markdown(summary(tables.read(path))))


if __name__ == "__main__":
    main()
