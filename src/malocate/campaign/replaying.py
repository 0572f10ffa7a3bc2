"""A campaign lived through again from its log: the state that the events lead to.

Nothing is read from the tables but the log. Draws come from the plan that the answers give, so a
replay can tell whether what was asked follows from what was answered.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from malocate.campaign import answers as answering
from malocate.campaign.amending import carried_over
from malocate.campaign.importing import brought
from malocate.campaign.presence import Presence
from malocate.campaign.stepping import (
    Caveats,
    Stage,
    Step,
    advance,
    decision,
    draws_of,
    standing,
)
from malocate.compute import Compute
from malocate.design import Design
from malocate.problem import Observations
from malocate.rounds import Batch, Stop
from malocate.rounds.looks import Cells
from malocate.store import Drawn, Event
from malocate.store.draws import COUNTING

CLOSE = 1e-9
"""Relative difference up to which two numbers count as the same."""


class Differs(Exception):
    """The first place where the log does not follow from itself."""


@dataclass
class Replayed:
    """What the events so far have led to."""

    stage: Stage
    draws: dict[int, Drawn]
    state: str = "open"
    why: str = ""
    standing: dict[str, Any] = field(default_factory=dict)
    bodies: dict[int, dict[str, Any]] = field(default_factory=dict)
    rounds: int = 0
    erased: int = 0
    unproven: int = 0
    gone: set[int] = field(default_factory=set)
    next_draw: int = 0
    numbered: dict[int, dict[int, int]] = field(default_factory=dict)
    repeating: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def add(self, drawn: Drawn) -> None:
        """Add a draw, and note where to find it: by segment and number, and what it repeats."""
        self.draws[drawn.id] = drawn
        self.next_draw = max(self.next_draw, drawn.id + 1)
        self.numbered.setdefault(drawn.segment, {})[drawn.number] = drawn.id
        if drawn.repeats >= 0:
            self.repeating.setdefault((drawn.segment, drawn.repeats), []).append(drawn.id)

    def of_segment(self, place: int) -> list[Drawn]:
        """Give the draws of a segment by their numbers."""
        return [self.draws[draw] for _, draw in sorted(self.numbered.get(place, {}).items())]

    def cells(self, place: int, numbers: Sequence[int]) -> dict[int, tuple[int, int, float | None]]:
        """Give row, column and chance of a segment's draws by their numbers."""
        found = [self.draws[self.numbered[place][number]] for number in numbers]
        return {each.number: (each.row, each.col, each.probability) for each in found}


class Replay:
    """Takes events in order; raises `Differs` where one does not follow from those before."""

    def __init__(self, compute: Compute | None = None) -> None:
        self._compute = compute or Compute()  # not the design's: anybody can verify
        self._ahead: deque[Event] = deque()
        self._now: Replayed | None = None

    @property
    def now(self) -> Replayed:
        """The state after all events that were taken."""
        self._catch_up(None)
        if self._now is None:
            raise Differs("the log does not begin with the campaign's creation")
        return self._now

    def take(self, event: Event) -> None:
        """Take the next event; most wait until a plan says which of them it had seen."""
        if event.kind in ("planned", "stopped") and event.body is not None:
            self._catch_up(event.told["seen"])
            self._planned(event)
        elif event.kind == "created":
            self._now = Replayed(Stage.first(Design.from_toml(event.told["design"])), {})
        else:
            self._ahead.append(event)

    def _catch_up(self, seen: int | None) -> None:
        while self._ahead and (seen is None or self._ahead[0].id <= seen):
            self._apply(self._ahead.popleft())

    def _apply(self, event: Event) -> None:
        if self._now is None:
            raise Differs(f"event {event.id} comes before the campaign's creation")
        if event.body is None:
            self._now.erased += event.kind in ("told", "corrected", "declined", "imported")
            return
        handler = _HANDLERS.get(event.kind)
        if handler is None:
            raise Differs(f"event {event.id} is of the unknown kind {event.kind!r}")
        try:
            handler(self._now, event.told)
        except KeyError as missing:
            words = (
                f"event {event.id} ({event.kind}) speaks of draw {missing}, which nobody planned"
            )
            raise Differs(words) from None

    def _planned(self, event: Event) -> None:
        now = self.now if self._now is None else self._now
        told = {name: value for name, value in event.told.items() if name not in ("seen", "salt")}
        if "stop" in told:
            now.why = told["stop"]["why"]
        else:
            now.bodies[told["round"]] = told
        if now.erased:
            now.unproven += 1
            self._adopt(now, told)
            return
        step = self._step(now)
        compare(told, decision(now.stage, step), f"round {told['round']}")
        now.rounds += 1
        now.standing = standing(now.stage, step)
        self._follow(now, step)

    def _step(self, now: Replayed) -> Step:
        answers: dict[str, Observations] = {}
        unanswered: dict[str, Cells] = {}
        for batch in now.stage.batches:
            own = now.of_segment(batch.place)
            segment = now.stage.design.segments[batch.place]
            rows = [_answer(each) for each in own if each.state in COUNTING]
            lost = [(each.number, each.row, each.col) for each in own if each.state in _SILENT]
            answers[batch.segment] = answering.observed(segment, rows)
            unanswered[batch.segment] = answering.silent(segment, lost, batch.stop)
        return advance(now.stage, answers, unanswered, self._compute)

    def _follow(self, now: Replayed, step: Step) -> None:
        if isinstance(step.next, Stop):
            now.stage = replace(now.stage, findings=step.findings)
            now.state = "done"
            return
        _begin(now, step.next.batches)
        now.stage = replace(
            now.stage,
            number=now.stage.number + 1,
            batches=step.next.batches,
            findings=step.findings,
        )

    def _adopt(self, now: Replayed, told: dict[str, Any]) -> None:
        """Take a plan as it was recorded, because what it rests on was erased."""
        if "stop" in told:
            now.state = "done"
            return
        places = {each.name: place for place, each in enumerate(now.stage.design.segments)}
        batches = tuple(Batch(places[n], n, first, stop) for n, first, stop in told["batches"])
        _begin(now, batches)
        now.stage = replace(now.stage, number=now.stage.number + 1, batches=batches)


_SILENT = ("refused", "given up", "erased")


def _answer(drawn: Drawn) -> tuple[Any, ...]:
    return (
        drawn.number, drawn.row, drawn.col, drawn.repeats, drawn.probability, drawn.value,
    )  # fmt: skip


def _begin(now: Replayed, batches: tuple[Batch, ...]) -> None:
    for each in draws_of(now.stage, batches, now.next_draw, now.cells):
        now.add(each)


def _lent(now: Replayed, told: dict[str, Any]) -> None:
    moved = {cell[0]: cell for cell in told.get("cells", [])}
    if "present" in told:
        _check_moves(now, told)
    for draw, attempt in told["draws"]:
        drawn = replace(now.draws[draw], state="lent", attempt=attempt)
        if draw in moved:
            _, row, col, repeats, chance = moved[draw]
            drawn = replace(drawn, row=row, col=col, repeats=repeats, probability=chance)
            _take_along(now, drawn)
        now.draws[draw] = drawn


def _check_moves(now: Replayed, told: dict[str, Any]) -> None:
    """Compute anew where fresh draws were moved to."""
    rows: dict[int, tuple[int, ...]] = {}
    for place, row in told["present"]:
        rows[place] = (*rows.get(place, ()), row)
    present = Presence(now.stage.design, rows)
    candidates = [now.draws[cell[0]] for cell in told["cells"]]
    found = [[c.id, c.row, c.col, c.repeats, c.probability] for c in present.redraw(candidates)]
    if found != [list(cell) for cell in told["cells"]]:
        raise Differs("draws for the rows that were present are not at the cells they should be")


def _take_along(now: Replayed, moved: Drawn) -> None:
    """Let the open replicates of a draw follow it to its new cell."""
    for draw in now.repeating.get((moved.segment, moved.number), []):
        each = now.draws[draw]
        if each.state == "open":
            now.draws[draw] = replace(
                each, row=moved.row, col=moved.col, probability=moved.probability
            )


def _told(now: Replayed, told: dict[str, Any]) -> None:
    drawn = now.draws[told["draw"]]
    if drawn.state == "answered":
        raise Differs(f"draw {drawn.id} is answered twice")
    now.draws[drawn.id] = replace(
        drawn,
        state="answered",
        value=told["value"],
        told_attempt=told["try"],
        late=told.get("late", False),
    )


def _corrected(now: Replayed, told: dict[str, Any]) -> None:
    drawn = now.draws[told["draw"]]
    if drawn.value != told["was"]:
        words = f"draw {drawn.id} was corrected from {told['was']}, and it was {drawn.value}"
        raise Differs(words)
    now.draws[drawn.id] = replace(drawn, value=told["value"])


def _to(state: str) -> Callable[[Replayed, dict[str, Any]], None]:
    def handle(now: Replayed, told: dict[str, Any]) -> None:
        for draw in told["draws"] if "draws" in told else [told["draw"]]:
            now.draws[draw] = replace(now.draws[draw], state=state)

    return handle


def _expired(now: Replayed, told: dict[str, Any]) -> None:
    lost = set(told["given up"])
    for draw, _ in told["draws"]:
        state = "given up" if draw in lost else "open"
        now.draws[draw] = replace(now.draws[draw], state=state)


def _erased(now: Replayed, told: dict[str, Any]) -> None:
    for draw in told["draws"]:
        if draw in now.draws:
            now.draws[draw] = replace(now.draws[draw], state="erased", value=None)
        else:  # it was imported, and the event that told of it is erased
            now.gone.add(draw)


def _turned(now: Replayed, told: dict[str, Any]) -> None:
    now.state, now.why = told["to"], told["why"]


def _imported(now: Replayed, told: dict[str, Any]) -> None:
    for each in brought(told["segment"], told["row"], told["first"], told["answers"]):
        now.add(each)
    now.stage = replace(now.stage, caveats=Caveats.read(json.dumps(told["caveats"])))


def _amended(now: Replayed, told: dict[str, Any]) -> None:
    design = Design.from_toml(told["design"])
    now.stage = replace(
        now.stage,
        design=design,
        caveats=Caveats.read(json.dumps(told["caveats"])),
        findings=carried_over(now.stage.design, design, now.stage.findings),
    )
    now.state = told["state"]


def _nothing(_: Replayed, __: dict[str, Any]) -> None:
    return None


_HANDLERS: dict[str, Callable[[Replayed, dict[str, Any]], None]] = {
    "lent": _lent,
    "told": _told,
    "corrected": _corrected,
    "declined": _to("refused"),
    "released": _to("open"),
    "given up": _to("given up"),
    "expired": _expired,
    "erased": _erased,
    "turned": _turned,
    "imported": _imported,
    "amended": _amended,
    "renewed": _nothing,
    "extra": _nothing,
    "conflict": _nothing,
}


def compare(recorded: Any, computed: Any, where: str) -> None:
    """Refuse a difference, naming its place."""
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for name in sorted(recorded.keys() | computed.keys()):
            compare(recorded.get(name), computed.get(name), f"{where}, {name}")
    elif (
        isinstance(recorded, list) and isinstance(computed, list) and len(recorded) == len(computed)
    ):
        for place, pair in enumerate(zip(recorded, computed, strict=True)):
            compare(*pair, f"{where}[{place}]")
    elif not _same(recorded, computed):
        raise Differs(f"{where} is recorded as {recorded!r}, and the answers give {computed!r}")


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float | int):
        return bool(np.isclose(one, two, rtol=CLOSE, atol=CLOSE))
    return bool(one == two)
