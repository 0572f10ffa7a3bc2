"""Whether everything in a campaign follows from its answers, or the first place where it does not.

Three things are checked: that the log is as it was sealed; that lived through again it gives the
same rounds, bounds and bands; and that the tables hold what the log says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from malocate.campaign.comparing import compare_tables
from malocate.campaign.replaying import Differs, Replay, Replayed
from malocate.compute import Compute
from malocate.problem.counting import counted
from malocate.store import Look, Seal, Store
from malocate.store.draws import COUNTING

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Verification:
    """What a check of a whole campaign found; `broken` is empty where all is well."""

    name: str
    events: int
    blocks: int
    unsealed: int
    rounds: int
    unproven: int
    answers: int
    digest: str
    broken: str

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.broken

    def to_plain(self) -> dict[str, Any]:
        """Give it as a table that JSON can hold."""
        return asdict(self) | {"ok": self.ok, "words": str(self)}

    def __str__(self) -> str:
        if self.broken:
            return f"{self.name}: BROKEN: {self.broken}."
        words = (
            f"{self.name}: the log of {counted(self.events, 'event')} is as it was sealed, and all "
            f"plans ({self.rounds:,}) and bands follow from {counted(self.answers, 'answer')}."
        )
        if self.unproven:
            words += f" Answers that were erased since carry {self.unproven:,} more."
        if self.unsealed:
            words += f" Not sealed yet: {counted(self.unsealed, 'event')}."
        return f"{words} Digest {self.digest[:16]}."


def verify(
    store: Store,
    campaign: int,
    progress: Progress = lambda *_: None,
    compute: Compute | None = None,
) -> Verification:
    """Check the chain, live through the log again, and compare the tables with it."""
    with store.looking(campaign) as look:
        seal, replay = look.check(), Replay(compute)
        broken = seal.broken
        try:
            if not broken:
                _live_through(look, replay, seal.events, progress)
                compare_tables(look, replay.now)
        except Differs as difference:
            broken = str(difference)
        return _verification(look, seal, replay, broken)


def _live_through(look: Look, replay: Replay, count: int, progress: Progress) -> None:
    """Take every event, and see that all that was changed is owned up to."""
    changed: set[int] = set()
    for number, event in enumerate(look.events(), start=1):
        replay.take(event)
        if event.digest is not None:
            changed.add(event.id)
        if event.kind == "erased":
            changed -= set(event.told["events"])
        progress(number, count)
    if changed:
        raise Differs(f"event {min(changed)} was rewritten, and no erasure tells of it")


def _verification(look: Look, seal: Seal, replay: Replay, broken: str) -> Verification:
    found: Replayed | None = None if broken else replay.now
    draws = [] if found is None else list(found.draws.values())
    return Verification(
        name=look.held.name,
        events=seal.events,
        blocks=seal.blocks,
        unsealed=seal.unsealed,
        rounds=0 if found is None else found.rounds,
        unproven=0 if found is None else found.unproven,
        answers=sum(each.state in COUNTING for each in draws),
        digest=look.digest,
        broken=broken,
    )
