"""The desk: requests wait in line for one writer; asks and answers that wait go in together.

One thread writes, so that nobody waits for a lock; what has come in while it was busy is written in
one transaction. A question is lent, and an answer acknowledged, when that is on the disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, ParamSpec, TypeVar

from malocate.campaign import Campaign, Ticket
from malocate.store import Answer, Asked, Outcome

Given = ParamSpec("Given")
Gives = TypeVar("Gives")
Thing = TypeVar("Thing")
Found = TypeVar("Found")

READERS = 4


class Desk:
    """Runs reads beside each other, writes one after the other, asks and answers in bundles."""

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="malocate-writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="malocate-reader")
        self._asks = _Line(Campaign.lend_each, self._writer)
        self._answers = _Line(Campaign.record_each, self._writer)

    async def read(
        self, work: Callable[Given, Gives], *args: Given.args, **kwargs: Given.kwargs
    ) -> Gives:
        """Run something that changes nothing."""
        return await asyncio.wrap_future(self._readers.submit(work, *args, **kwargs))

    async def write(
        self, work: Callable[Given, Gives], *args: Given.args, **kwargs: Given.kwargs
    ) -> Gives:
        """Run something that changes the database, in its turn."""
        return await asyncio.wrap_future(self._writer.submit(work, *args, **kwargs))

    async def ask(self, campaign: Campaign, wanted: Asked) -> list[Ticket]:
        """Lend questions, together with all others that wait for some."""
        (tickets,) = await self._asks.wait(campaign, [wanted])
        return tickets

    async def tell(self, campaign: Campaign, answers: Sequence[Answer]) -> list[Outcome]:
        """Record answers, together with all others that wait."""
        return await self._answers.wait(campaign, answers)

    def close(self) -> None:
        """Finish what is in line, and end."""
        self._writer.shutdown()
        self._readers.shutdown()


class _Line(Generic[Thing, Found]):
    """Things that wait to be done by the writer, those of one campaign in one go."""

    def __init__(
        self,
        work: Callable[[Campaign, Sequence[Thing]], list[Found]],
        writer: ThreadPoolExecutor,
    ) -> None:
        self._work, self._writer = work, writer
        self._waiting: dict[int, list[_Waiting[Thing, Found]]] = {}
        self._lock = threading.Lock()

    async def wait(self, campaign: Campaign, things: Sequence[Thing]) -> list[Found]:
        """Do things, together with all others that wait, and give what came of them."""
        mine = _Waiting[Thing, Found](things)
        with self._lock:
            waiting = self._waiting.setdefault(campaign.id, [])
            waiting.append(mine)
            first = len(waiting) == 1
        if first:  # else somebody has called the writer already
            self._writer.submit(self._serve, campaign)
        return await asyncio.wrap_future(mine.found)

    def _serve(self, campaign: Campaign) -> None:
        """Do all that waits; a bundle that fails is tried one by one: each fails alone."""
        with self._lock:
            waiting = self._waiting.pop(campaign.id, [])
        bundle = [each for each in waiting if each.found.set_running_or_notify_cancel()]
        if not bundle:
            return
        try:
            found = iter(self._work(campaign, [each for one in bundle for each in one.things]))
            for one in bundle:
                one.found.set_result([next(found) for _ in one.things])
        except Exception:  # noqa: BLE001  # whatever it is, each who waits is told of its own
            for one in bundle:
                self._serve_alone(campaign, one)

    def _serve_alone(self, campaign: Campaign, one: _Waiting[Thing, Found]) -> None:
        if one.found.done():
            return
        try:
            one.found.set_result(self._work(campaign, one.things))
        except Exception as problem:  # noqa: BLE001  # it is handed on to who waits
            one.found.set_exception(problem)


class _Waiting(Generic[Thing, Found]):
    """Things that wait together, and what becomes of them."""

    def __init__(self, things: Sequence[Thing]) -> None:
        self.things, self.found = things, Future[list[Found]]()
