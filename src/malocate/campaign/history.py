"""What past rounds found, read once and then only as it grows, thinned where it is long."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

from malocate.store import Held, Store

MOST = 200
"""Points of a line that are kept; twice as many are thinned to half."""

PATIENCE = 0.4
"""Seconds that a page waits for a long history; later it shows what there is, and says so."""

RECENT = 12
"""Rounds whose reasons are shown."""

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Loss:
    """The bound on the loss before a round, and what had been spent."""

    round: int
    spent: float
    bound: float
    label: str


@dataclass(frozen=True)
class Look:
    """What a look at a segment found: mean squared errors."""

    asked: int
    estimate: float
    upper: float
    label: str


@dataclass(frozen=True)
class Decision:
    """What a round asks, and why."""

    round: int
    planned: float
    asks: dict[str, int]
    why: str


@dataclass
class History:
    """A campaign's past: the loss, each segment's looks, and the latest decisions."""

    last: int = 0
    losses: list[Loss] = field(default_factory=list)
    looks: dict[str, list[Look]] = field(default_factory=dict)
    recent: list[Decision] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    reading: Future[None] | None = None

    def read(self, store: Store, campaign: int, patience: float | None = PATIENCE) -> bool:
        """Read what has been added; tell whether that was all done while one waited.

        None waits for as long as it takes.
        """
        with self.lock:
            if self.reading is None or self.reading.done():
                self.reading = Future()
                work = (self.reading, store, campaign)
                threading.Thread(target=self._read, args=work, daemon=True).start()
            reading = self.reading
        if not wait([reading], patience).done:
            return False
        reading.result()  # raises what went wrong
        return True

    def _read(self, reading: Future[None], store: Store, campaign: int) -> None:
        try:
            for number, planned, body in store.rounds(campaign, self.last):
                told = json.loads(body)
                with self.lock:
                    self._add(number, planned, told)
            reading.set_result(None)
        except Exception as problem:  # noqa: BLE001  # it is handed on to who waits
            reading.set_exception(problem)

    def losses_until(self, held: Held) -> list[Loss]:
        """Give the losses, and the one at the end where there was no further round."""
        with self.lock:
            losses = list(self.losses)
        told = json.loads(held.standing)
        if held.state == "done" and "bound" in told:
            end = (told["spent"], float(told["bound"]), told["label"])
            losses.append(Loss(held.round + 1, *end))
        return losses

    def looks_until(self, held: Held, name: str) -> list[Look]:
        """Give a segment's looks, and the one at the end where there was no further round."""
        with self.lock:
            looks = list(self.looks.get(name, ()))
        told = json.loads(held.standing).get("segments", {}).get(name)
        if told is not None:
            last = _look(told)
            if not looks or looks[-1].asked < last.asked:
                looks.append(last)
        return looks

    def latest(self) -> list[Decision]:
        """Give the latest decisions, the newest first."""
        with self.lock:
            return self.recent[::-1]

    def _add(self, number: int, planned: float, told: dict[str, Any]) -> None:
        self.last = number
        if number > 1:
            bound = (float(told["bound"]), told["label"])
            _append(self.losses, Loss(number, told["spent"], *bound))
        for name, found in told["found"].items():
            if found:
                _append(self.looks.setdefault(name, []), _look(found))
        asks = {name: stop - first for name, first, stop in told.get("batches", ())}
        self.recent = [*self.recent, Decision(number, planned, asks, told.get("why", ""))][-RECENT:]


def _look(told: dict[str, Any]) -> Look:
    estimate, upper = float(told["estimate"]), float(told["upper"])
    return Look(told["asked"], estimate, upper, told.get("label", "approximate"))


def _append(line: list[Thing], point: Thing) -> None:
    line.append(point)
    if len(line) >= 2 * MOST:
        line[:] = thinned(line, MOST)


def thinned(line: Sequence[Thing], most: int) -> list[Thing]:
    """Give about `most` points of a line, the first and the last among them.

    >>> thinned(range(10), 5)
    [0, 2, 4, 6, 8, 9]
    """
    step = max(1, len(line) // most)
    kept = list(line[::step])
    return kept if not line or (len(line) - 1) % step == 0 else [*kept, line[-1]]
