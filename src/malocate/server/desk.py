"""The desk: requests wait in line for one writer, and answers that wait together go in together.

One thread writes, so that nobody waits for a lock; what has come in while it was busy is recorded
in one transaction. An answer is acknowledged when that transaction is on the disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from malocate.campaign import Campaign
from malocate.store import Answer, Outcome

Given = ParamSpec("Given")
Gives = TypeVar("Gives")

READERS = 4


class Desk:
    """Runs reads beside each other, writes one after the other, and answers in bundles."""

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="malocate-writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="malocate-reader")
        self._waiting: dict[int, deque[_Told]] = {}
        self._lock = threading.Lock()

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

    async def tell(self, campaign: Campaign, answers: Sequence[Answer]) -> list[Outcome]:
        """Record answers, together with all others that wait."""
        told = _Told(answers)
        with self._lock:
            self._waiting.setdefault(campaign.id, deque()).append(told)
        self._writer.submit(self._record, campaign)
        return await asyncio.wrap_future(told.outcomes)

    def close(self) -> None:
        """Finish what is in line, and end."""
        self._writer.shutdown()
        self._readers.shutdown()

    def _record(self, campaign: Campaign) -> None:
        """Record all that waits; a bundle that fails is tried one by one: each fails alone."""
        with self._lock:
            bundle = list(self._waiting.pop(campaign.id, ()))
        if not bundle:
            return
        try:
            outcomes = iter(campaign.record([each for told in bundle for each in told.answers]))
            for told in bundle:
                told.outcomes.set_result([next(outcomes) for _ in told.answers])
        except Exception:  # noqa: BLE001  # whatever it is, each asker is told of its own
            for told in bundle:
                told.record_alone(campaign)


class _Told:
    """Answers that wait to be recorded, and what becomes of them."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers, self.outcomes = answers, Future[list[Outcome]]()

    def record_alone(self, campaign: Campaign) -> None:
        if self.outcomes.done():
            return
        try:
            self.outcomes.set_result(campaign.record(self.answers))
        except Exception as problem:  # noqa: BLE001  # it is handed on to who waits
            self.outcomes.set_exception(problem)
