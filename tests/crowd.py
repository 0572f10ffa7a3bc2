"""Processes that ask and tell: for tests that kill them, and tests with many at once.

They are forked from a server process that has loaded everything and opened nothing, so that each
begins within milliseconds. What they were acknowledged goes into a file, written past all buffers.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, Pool, event

from malocate import Batches, Campaign, Design, Segment, SoftImpute
from malocate.campaign import planner
from malocate.store import Store, functions

SECONDS = 300
"""How long to wait for a process at most: a busy machine is no failure."""

FASTER = 20.0
"""How many seconds pass on the campaign's clock in one: a dead planner is replaced in 1.5 s."""

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["crowd_warm"])


def clock() -> float:
    return time.time() * FASTER


def design(budget: int = 150) -> Design:
    """Give a small survey whose rounds take milliseconds to plan."""
    return Design(
        [Segment("north", (8, 6), scale=(-9, 9)), Segment("south", (6, 7), scale=(-9, 9))],
        budget,
        estimator=SoftImpute(penalty=1.0, tol=1e-2),
        schedule=Batches(size=20, first=30),
        seed=7,
    )


def answer(segment: str, draw: int) -> float:
    """Give the answer to a draw, whoever is asked and whenever."""
    scale = 3.0 if segment == "north" else 0.5
    return scale * math.sin(draw * 1.7 + len(segment))


@dataclass(frozen=True)
class Death:
    """When a process kills itself: at its n-th boundary, counted from a statement on."""

    at: int
    after: str = ""

    def prepare(self) -> None:
        """Count before and after each statement, commit and transaction."""
        seen = {"begun": not self.after, "count": 0}

        def boundary(*found: Any) -> None:
            statement = next((each for each in found if isinstance(each, str)), "")
            seen["begun"] = seen["begun"] or self.after in statement
            seen["count"] += seen["begun"]
            if seen["count"] >= self.at:
                os.kill(os.getpid(), signal.SIGKILL)

        for target, name in (
            (Engine, "before_cursor_execute"),
            (Engine, "after_cursor_execute"),
            (Engine, "commit"),
            (Pool, "checkout"),
            (Pool, "checkin"),
        ):
            event.listen(target, name, lambda *found: boundary(*found))  # noqa: PLW0108  # any arguments

        def trace(connection: Any, _: Any) -> None:  # statements that SQLAlchemy does not see
            if hasattr(connection, "set_trace_callback"):
                connection.set_trace_callback(boundary)

        event.listen(Pool, "connect", trace)
        functions.run = _between(boundary, functions.run)


def _between(boundary: Callable[[str], None], execute: Callable[..., Any]) -> Callable[..., Any]:
    def watched(connection: Any, name: str, *told: Any) -> Any:
        boundary(name)
        found = execute(connection, name, *told)
        boundary(name)
        return found

    return watched


@dataclass(frozen=True)
class DeathInFit:
    """Kills the process when it has the lease on planning and is about to fit."""

    def prepare(self) -> None:
        planner.advance = lambda *_: os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Worker:
    """Asks and tells until the campaign is over, and notes what it was acknowledged.

    One that `stays` waits at the end until it is killed. One of several begins when as many as
    `together` have opened the campaign.
    """

    url: str
    acknowledged: Path
    who: str = "tablet"
    batch: int = 5
    death: Death | DeathInFit | None = None
    most: int | None = None
    stays: bool = False
    together: int = 1

    def __call__(self) -> None:
        if self.death is not None:
            self.death.prepare()
        with Campaign.open(self.url, clock=clock) as campaign:
            self.acknowledged.with_suffix(".ready").touch()
            while len(list(self.acknowledged.parent.glob("*.ready"))) < self.together:
                time.sleep(0.005)
            self.run(campaign)

    def run(self, campaign: Campaign) -> None:
        note = os.open(self.acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            told = 0
            while self.most is None or told < self.most:
                tickets = campaign.ask(self.batch, who=self.who, lease=3600 * FASTER)
                for ticket in tickets:
                    os.write(note, f"lent {ticket.segment} {ticket.draw} {self.who}\n".encode())
                    value = answer(ticket.segment, ticket.draw)
                    outcome = campaign.tell(ticket, value)
                    line = f"{outcome} {ticket.segment} {ticket.draw} {value!r}\n"
                    os.write(note, line.encode())
                    told += 1
                if not tickets and campaign.status().state == "done":
                    os.write(note, b"over . . .\n")
                    if not self.stays:
                        return
                    time.sleep(SECONDS)
                if not tickets:
                    time.sleep(0.05)
        finally:
            os.close(note)


@cache
def start_server() -> None:
    """Start the process that others are forked from; it finds this module by its folder."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), before]))
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def process(work: Callable[[], None]) -> Any:
    """Start a process."""
    start_server()
    started = forked.Process(target=work, daemon=True)
    started.start()
    return started


def lines_of(file: Path) -> list[str]:
    """Give what was noted in a file, one line for each ticket and each answer."""
    return file.read_text().splitlines() if file.exists() else []


def acknowledged(*files: Path) -> dict[tuple[str, int], float]:
    """Give the answers whose receipt was acknowledged, each once."""
    found: dict[tuple[str, int], float] = {}
    for file in files:
        for line in lines_of(file):
            outcome, segment, draw, value = line.split()
            if outcome in ("answered", "late", "same"):
                assert found.setdefault((segment, int(draw)), float(value)) == float(value)
    return found


def lent(*files: Path) -> list[tuple[str, int]]:
    """Give the draws that were lent, one for each ticket that somebody got."""
    lines = [line.split() for file in files for line in lines_of(file)]
    return [(line[1], int(line[2])) for line in lines if line[0] == "lent"]


def kept(url: str) -> dict[tuple[str, int], float]:
    """Give the answers that the database holds, once the log tells the same and checks."""
    store = Store.open(url)
    try:
        (name,) = store.names()
        campaign = store.find(name).id
        assert store.check(campaign).broken == ""
        names = [segment.name for segment in design().segments]
        with store.looking(campaign) as look:
            found = {
                (names[place], row[0]): row[-1] for place in (0, 1) for row in look.answered(place)
            }
            told = [each.told["draw"] for each in look.events() if each.kind == "told"]
        assert len(told) == len(set(told)) == len(found)
        return found
    finally:
        store.close()


def decisions(url: str) -> list[str]:
    """Give what was found and decided after each round, to the byte."""
    store = Store.open(url)
    try:
        (name,) = store.names()
        campaign = store.find(name).id
        rounds = [body for _, _, body in store.rounds(campaign)]
        *_, last = store.events(campaign)
        found = {each: value for each, value in last.told.items() if each not in ("seen", "salt")}
        assert last.kind == "stopped"
        return [*rounds, repr(found), store.held(campaign).standing]
    finally:
        store.close()


def create(url: str, budget: int = 150) -> None:
    """Begin the campaign."""
    Campaign.create(url, design(budget), name="crowd", clock=clock).close()


def undisturbed(folder: Path, budget: int = 150) -> list[str]:
    """Give the decisions of one process that nobody disturbs."""
    url = f"sqlite:///{folder}/undisturbed.db"
    create(url, budget)
    Worker(url, folder / "undisturbed")()
    return decisions(url)


class Poller(threading.Thread):
    """Reads the status over and over; keeps what went wrong."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.over, self.problem = url, threading.Event(), ""
        self.looking = threading.Event()

    def run(self) -> None:
        try:
            with Campaign.open(self.url, clock=clock) as campaign:
                while not self.over.wait(0.02):
                    campaign.status()
                    self.looking.set()
        except Exception as problem:  # noqa: BLE001  # whatever it is, the test tells it
            self.problem = repr(problem)

    def stop(self) -> None:
        """End it, and say whether anything went wrong."""
        self.over.set()
        self.join()
        assert self.problem == ""
