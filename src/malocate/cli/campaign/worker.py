"""`malocate worker`: plans rounds beside those who ask, and takes overdue tickets back."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from malocate.cli.campaign.finding import Name, Where, opened
from malocate.cli.computing import Dask, computing
from malocate.cli.showing import say
from malocate.errors import StoreError
from malocate.problem.counting import counted

if TYPE_CHECKING:
    from malocate.campaign import Campaign

BEAT = 5.0
"""Seconds between two signs of life; after three of them without one, `ask` plans again."""

LONGEST_WAIT = 60.0
"""Seconds, at most, between two tries when the database is away."""


class Terminated(KeyboardInterrupt):
    """The system asked the worker to stop."""


def worker(
    where: Where = None,
    every: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two looks whether it is time.")
    ] = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="Do what is to be done now, and end.")
    ] = False,
    nice: Annotated[
        int, typer.Option(min=0, max=19, help="How far to step back for other programs.")
    ] = 10,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="How many fits at a time; by default as the design says."),
    ] = None,
    dask: Dask = None,
    attached: Annotated[
        bool,
        typer.Option("--attached", hidden=True, help="End when standard input does."),
    ] = False,
    name: Name = None,
) -> None:
    """Plan rounds beside the front doors, so that no `ask` has to wait for it.

    It takes overdue questions back, plans the next round when one is answered, and waits where
    another planner is at it. It survives a database that goes away for a while. Ctrl-C stops it
    at once, and so does SIGTERM, with exit code 0: what it was planning is left to the next one.
    With --dask the fits are done by a cluster; if it goes away, they are done here.
    """
    if nice and hasattr(os, "nice"):
        os.nice(nice)
    given = {}
    if jobs is not None or dask is not None:  # attached, it is started again and again
        given["compute"] = computing(jobs, dask, at_once=not attached)
    with opened(where, name, **given) as campaign, _stoppable():
        if attached:
            threading.Thread(target=_end_with_parent, daemon=True).start()
        if once:
            _step(campaign)
            return
        say(f"Planning for {campaign.name} in {campaign.store}; Ctrl-C stops it.")
        with _beating(campaign):
            _work(campaign, every)


def _work(campaign: Campaign, every: float) -> None:
    """Step until the campaign is finished; wait longer and longer while the database is away."""
    away = every
    while True:
        try:
            if _step(campaign) == "finished":
                return
            away = every
        except StoreError as problem:
            away = min(2 * away, LONGEST_WAIT)
            typer.echo(f"{_clock()} {problem} Trying again in {away:.0f} s.", err=True)
        time.sleep(away)


def _step(campaign: Campaign) -> str:
    """Take overdue tickets back, plan if it is time, and give the campaign's state."""
    back = campaign.store.reclaim(campaign.id, now=time.time())
    if back:
        say(f"{_clock()} {counted(back, 'overdue question')} taken back.")
    result = campaign.plan()
    if result in ("planned", "ended"):
        say(f"{_clock()} {campaign.status().words}")
    if result != "closed":
        return "open"
    found = campaign.status()
    if found.state == "finished":
        say(f"{_clock()} {found.words}")
    return found.state


@contextmanager
def _beating(campaign: Campaign) -> Iterator[None]:
    """Give signs of life from a thread of its own, also while a plan is made."""
    from malocate.campaign.beating import repeated

    def beat() -> None:
        with suppress(StoreError):  # the loop tells of it
            campaign.store.beat(campaign.id, until=time.time() + 3 * BEAT)

    try:
        with repeated(beat, BEAT, at_once=True):
            yield
    finally:
        with suppress(StoreError):  # it runs out by itself
            campaign.store.beat(campaign.id, until=0.0)


def _end_with_parent() -> None:
    """Stop when whoever started this is gone, however it went."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does, but with exit code 0."""

    def stop(_: int, __: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except Terminated:
        say("Stopped.")
    finally:
        signal.signal(signal.SIGTERM, before)


def _clock() -> str:
    return f"{datetime.now().astimezone():%H:%M:%S}"
