"""The planner: one at a time closes a round and begins the next, outside of any transaction.

The lease on planning is renewed while the fits run; when its holder dies, it runs out and another
takes over. A plan is written in one transaction, and only if the round that it follows is still
the last one: nothing is planned twice.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from malocate.campaign import answers as answering
from malocate.campaign import memory
from malocate.campaign.beating import repeated
from malocate.campaign.stepping import Caveats, Stage, Step, advance, decision, draws_of, standing
from malocate.compute import Compute
from malocate.design import Design
from malocate.errors import ComputeError
from malocate.problem import Observations
from malocate.rounds import Batch, Finding, Stop
from malocate.rounds.looks import Cells
from malocate.store import Held, Planned, Store

LEASE = 30.0
"""Seconds after which a planner that has died may be replaced."""

WITHOUT_CLUSTER = 300.0
"""Seconds to plan without a cluster that is away, before it is tried again."""

HERE = f"Planning goes on here, one fit at a time, for {WITHOUT_CLUSTER / 60:g} minutes."

Result = Literal["planned", "ended", "waiting", "closed", "elsewhere"]


class Planner:
    """Closes rounds and begins them, for one campaign."""

    def __init__(
        self,
        store: Store,
        campaign: int,
        clock: Callable[[], float],
        *,
        lease: float = LEASE,
        compute: Compute | None = None,
    ) -> None:
        self._store, self._campaign, self._clock = store, campaign, clock
        self._lease, self.compute, self._alone_until = lease, compute, 0.0
        self._latest: tuple[tuple[int, int], list[Finding | None]] | None = None
        self._read: tuple[str, Design] | None = None
        self._me = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"

    def step(self) -> Result:
        """Plan the next round, if it is time and nobody else does."""
        held = self._store.held(self._campaign)
        if held.state != "open":
            return "closed"
        if any(self._store.waiting(self._campaign)):
            return "waiting"
        if not self._claim(held.round):
            return "elsewhere"
        try:
            with repeated(lambda: self._claim(held.round), self._lease / 3):
                return self._plan()
        finally:
            self._store.unclaim(self._campaign, self._me)

    def _plan(self) -> Result:
        with self._store.looking(self._campaign) as look:
            if look.held.state != "open":
                return "closed"
            if any(look.waiting):
                return "waiting"
            stage = self._stage(look.held)
            answers, unanswered, first = {}, {}, look.next_draw
            for batch in stage.batches:
                segment = stage.design.segments[batch.place]
                seen = answering.of_segment(look, segment, batch.place, batch.stop)
                answers[batch.segment], unanswered[batch.segment] = seen
            position = look.position
        step = self._advanced(stage, answers, unanswered)
        return self._written(stage, step, first, position)

    def _advanced(
        self,
        stage: Stage,
        answers: Mapping[str, Observations],
        unanswered: Mapping[str, Cells],
    ) -> Step:
        """Close the round and plan the next; here, where the cluster that should is away."""
        if time.monotonic() >= self._alone_until:
            try:
                return advance(stage, answers, unanswered, self.compute)
            except ComputeError as problem:
                logging.getLogger(__name__).warning("%s %s", problem, HERE)
                self._alone_until = time.monotonic() + WITHOUT_CLUSTER
        return advance(stage, answers, unanswered, Compute())

    def _written(self, stage: Stage, step: Step, first: int, position: int) -> Result:
        told = decision(stage, step)
        batches = () if isinstance(step.next, Stop) else step.next.batches
        planned = Planned(
            number=stage.number + 1,
            version=stage.version,
            body=json.dumps(told, ensure_ascii=False),
            standing=json.dumps(standing(stage, step), ensure_ascii=False),
            event=told | {"seen": position},
            draws=draws_of(stage, batches, first, self._cells_asked),
            memories={each.place: _packed(step, each.place) for each in stage.batches},
        )
        now = self._clock()
        if isinstance(step.next, Stop):
            done = self._store.end(self._campaign, planned, step.next.why, now=now)
        else:
            done = self._store.begin(self._campaign, planned, now=now)
        if not done:
            return "elsewhere"
        self._latest = (planned.number, stage.version), step.findings
        while self._store.seal(self._campaign):
            pass
        return "ended" if isinstance(step.next, Stop) else "planned"

    def _stage(self, held: Held) -> Stage:
        design, caveats = self._design(held.design), Caveats.read(held.caveats)
        batches = _batches(self._store, held, design)
        if self._latest is not None and self._latest[0] == (held.round, held.version):
            findings = self._latest[1]
        else:
            kept = self._store.memories(self._campaign)
            findings = memory.unpack_all(kept, design, memory.outline)
        for batch in batches:
            findings[batch.place] = memory.whole(findings[batch.place], design, batch.place)
        return Stage(design, caveats, held.round, batches, findings, held.version)

    def _design(self, text: str) -> Design:
        """Read the design, unless it is the one that was read last."""
        if self._read is None or self._read[0] != text:
            self._read = text, Design.from_toml(text)
        return self._read[1]

    def findings(self, design: Design) -> Sequence[Finding | None]:
        """Give what the last look of every segment found, read from the store as it is wanted."""
        return memory.Kept(self._store.memories(self._campaign), design)

    def _cells_asked(
        self, segment: int, numbers: Sequence[int]
    ) -> dict[int, tuple[int, int, float | None]]:
        return self._store.cells(self._campaign, segment, numbers)

    def _claim(self, after: int) -> bool:
        now = self._clock()
        return self._store.claim(
            self._campaign, self._me, after=after, now=now, until=now + self._lease
        )


def _packed(step: Step, place: int) -> bytes:
    finding = step.findings[place]
    assert finding is not None  # noqa: S101  # it was just looked at
    return memory.pack(finding)


def _batches(store: Store, held: Held, design: Design) -> tuple[Batch, ...]:
    """Give the batches of the round that is out."""
    if held.round == 0:
        return ()
    (_, _, body), *_ = store.rounds(held.id, after=held.round - 1)
    places = {segment.name: place for place, segment in enumerate(design.segments)}
    return tuple(
        Batch(places[name], name, first, stop) for name, first, stop in json.loads(body)["batches"]
    )
