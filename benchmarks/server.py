"""The HTTP server under load: ask and tell by 32 clients, while a planner fits.

python benchmarks/server.py               # SQLite and PostgreSQL, with and without a dashboard
python benchmarks/server.py --quick       # two seconds on SQLite

A server as `malocate serve` starts it, in a process of its own; the clients are threads of a second
process on the loopback. Beside them another process keeps fitting, as a planner would, at nice 10.
Written to benchmarks/results/server.csv: pairs of ask and tell a second, the time below which 99 of
100 requests stay, and whether every acknowledged answer is in the database, once.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tables

from malocate import Campaign, Design, Segment
from malocate.server.access import new_token
from malocate.store import Tokens

CLIENTS, SECONDS, PORT = 32, 8.0, 8790
NAME = "load"


class Client(threading.Thread):
    """Asks and tells until the time is over; keeps how long each request took."""

    def __init__(self, number: int, token: str, until: float) -> None:
        super().__init__()
        self.number, self.token, self.until = number, token, until
        self.times: list[float] = []
        self.told: list[str] = []

    def run(self) -> None:
        self.line = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
        while time.monotonic() < self.until:
            asked = self.post("ask", {"who": f"client-{self.number}"})["questions"]
            if not asked:
                time.sleep(0.05)
                continue
            answer = {"ticket": asked[0]["ticket"], "value": 3}
            if self.post("tell", {"answers": [answer]})["outcomes"] == ["answered"]:
                self.told.append(answer["ticket"])

    def post(self, path: str, body: dict[str, Any]) -> Any:
        began = time.perf_counter()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        text = json.dumps(body)
        self.line.request("POST", f"/api/v1/campaigns/{NAME}/{path}", text, headers)
        found = json.loads(self.line.getresponse().read())
        self.times.append(time.perf_counter() - began)
        return found


def fitting(over: Any) -> None:
    """Keep fitting, as a planner would."""
    os.nice(10)
    from malocate import LowRankLeastSquares, Synthetic

    seen = Synthetic.low_rank(rank=10, rng=0).observe(5_000, rng=1)
    while not over.is_set():
        LowRankLeastSquares().fit(seen)


def polling(token: str, over: Any) -> None:
    """Look at the campaign twice a second, as a dashboard does."""
    line = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    while not over.wait(0.5):
        headers = {"Authorization": f"Bearer {token}"}
        line.request("GET", f"/api/v1/campaigns/{NAME}", headers=headers)
        line.getresponse().read()


@contextmanager
def served(url: str) -> Iterator[None]:
    command = [sys.executable, "-m", "malocate", "serve", url, "--port", str(PORT), "--no-planner"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        for _ in range(300):
            try:
                http.client.HTTPConnection("127.0.0.1", PORT).request("GET", "/healthz")
                break
            except OSError:
                time.sleep(0.1)
        try:
            yield
        finally:
            process.terminate()


def measured(url: str, seconds: float, dashboard: bool) -> dict[str, object]:
    segment = Segment("north", (200, 200), scale=(1, 5))
    with Campaign.create(url, Design((segment,), budget=100_000), name=NAME) as campaign:
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
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    over.set()
    for each in beside:
        each.join()
    return clients


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows: list[dict[str, object]] = []
    for kind in ("sqlite",) if quick else ("sqlite", "postgresql"):
        for dashboard in (False,) if quick else (False, True):
            with databases(kind) as url:
                row = measured(url, 2.0 if quick else SECONDS, dashboard)
            rows.append({"database": kind, **row})
            print(rows[-1], flush=True)
    tables.write(tables.folder(quick) / "server.csv", rows)


if __name__ == "__main__":
    main()
