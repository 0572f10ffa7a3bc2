"""How a campaign stands: what was asked and answered, and how sure one can be."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from malocate.design import Design
from malocate.problem.counting import counted
from malocate.problem.plain import finite
from malocate.store import Held
from malocate.store.counting import Count


@dataclass(frozen=True)
class SegmentStatus:
    """One segment: its draws by what became of them, and its last look.

    `planned` counts all draws of rounds that have begun; of these, `open` wait for somebody,
    `lent` are out, and the others are settled. `late` answers are among the `answered`; `expired`
    counts leases that ran out. `imported` answers were there before the campaign.
    """

    name: str
    planned: int
    open: int
    lent: int
    answered: int
    late: int
    refused: int
    given_up: int
    erased: int
    expired: int
    imported: int
    estimate: float
    upper: float
    label: str
    reason: str
    audit: str

    @property
    def rmse(self) -> float:
        """The estimated root mean squared error; infinite before the first look."""
        return math.sqrt(max(0.0, self.estimate))

    @property
    def rmse_upper(self) -> float:
        """The bound on the root mean squared error."""
        return math.sqrt(self.upper)


@dataclass(frozen=True)
class Status:
    """A campaign at one moment; `str` says it in a few lines."""

    name: str
    state: str
    why: str
    round: int
    planning: bool
    budget: float
    spent: float
    bound: float
    label: str
    answers_left: dict[str, int] | None
    segments: tuple[SegmentStatus, ...]

    @property
    def answered(self) -> int:
        """How many answers there are."""
        return sum(each.answered for each in self.segments)

    @property
    def words(self) -> str:
        """What is going on, in a sentence."""
        if self.state == "done":
            return f"It has ended: {self.why}."
        if self.state in ("finished", "paused"):
            return f"It is {self.state}{': ' + self.why if self.why else ''}."
        waiting = sum(each.open for each in self.segments)
        lent = sum(each.lent for each in self.segments)
        are = "is" if lent == 1 else "are"
        if waiting:
            wait = "waits" if waiting == 1 else "wait"
            questions = f"{counted(waiting, 'question')} of round {self.round}"
            return f"{questions} {wait} to be asked; {lent:,} {are} out."
        if lent:
            return f"Round {self.round} waits for {counted(lent, 'question')} that {are} out."
        if not self.round:
            when = "is being planned" if self.planning else "is planned when somebody asks for it"
            return f"Nothing has been asked yet; the first round {when}."
        if self.planning:
            return f"Round {self.round} is answered; the next is being planned."
        return f"Round {self.round} is answered; the next is planned when somebody asks for it."

    def to_plain(self) -> dict[str, Any]:
        """Give it as a table that JSON can hold."""
        told = asdict(self) | {"words": self.words, "answered": self.answered}
        told["segments"] = [
            asdict(each) | {"rmse": each.rmse, "rmse_upper": each.rmse_upper}
            for each in self.segments
        ]
        plain: dict[str, Any] = finite(told)
        return plain

    def __str__(self) -> str:
        cost = f"{self.spent:,g} of {self.budget:,g} of the budget"
        lines = [f"{self.name}: {self.words} {counted(self.answered, 'answer')}, {cost}."]
        for each in self.segments:
            said = "no look yet"
            if math.isfinite(each.upper):
                said = f"error at most {each.rmse_upper:.3g} ({each.label})"
            lines.append(f"  {each.name}: {each.answered:,} answered of {each.planned:,}; {said}")
        return "\n".join(lines)


def status_of(design: Design, held: Held, counts: Sequence[Count], now: float) -> Status:
    """Give the status from the store's counts and the last plan's record."""
    told = json.loads(held.standing)
    looked = told.get("segments", {})
    by_place: dict[int, list[Count]] = {}
    for each in counts:
        by_place.setdefault(each.segment, []).append(each)
    segments = tuple(
        _segment(segment.name, by_place.get(place, []), looked)
        for place, segment in enumerate(design.segments)
    )
    pairs = zip(design.segments, segments, strict=True)
    return Status(
        name=held.name,
        state=held.state,
        why=held.why,
        round=held.round,
        planning=held.planner_until >= now,
        budget=design.budget,
        spent=math.fsum(segment.cost * each.planned for segment, each in pairs),
        bound=float(told.get("bound", math.inf)),
        label=told.get("label", "approximate"),
        answers_left=told.get("left"),
        segments=segments,
    )


def _segment(name: str, counts: Sequence[Count], looked: dict[str, Any]) -> SegmentStatus:
    def of(*states: str) -> int:
        return sum(each.draws for each in counts if each.state in states)

    found = looked.get(name, {})
    return SegmentStatus(
        name=name,
        planned=sum(each.draws for each in counts if not each.before),
        open=of("open"),
        lent=of("lent"),
        answered=of("answered"),
        late=sum(each.draws for each in counts if each.late and each.state == "answered"),
        refused=of("refused"),
        given_up=of("given up"),
        erased=of("erased"),
        expired=sum(each.expired for each in counts),
        imported=of("imported"),
        estimate=float(found.get("estimate", math.inf)),
        upper=float(found.get("upper", math.inf)),
        label=found.get("label", "approximate"),
        reason=found.get("reason", ""),
        audit=found.get("audit", ""),
    )
