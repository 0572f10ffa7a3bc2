"""What pages show, put together from the campaign: nothing here writes or plans."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from malocate.campaign import Campaign, SegmentStatus, Status
from malocate.campaign.history import Decision, History, Look, thinned
from malocate.campaign.picturing import (
    COUNTS,
    counts_bar,
    counts_of,
    looks_chart,
    loss_chart,
    verdict_of,
)
from malocate.drawing.heat import Means, means_of
from malocate.errors import NotFound
from malocate.rounds import Finding
from malocate.store import Held

FRESH = 1.0
"""Seconds for which a status is shown to all who look, so that a crowd of pages costs one."""

PER_PAGE = 12
"""Segments on one page."""

RARE = ("given_up", "erased", "imported")
"""What became of questions that is shown where there is something to count."""

LISTED = 40
"""Lines of a table behind a chart."""


@dataclass(frozen=True)
class SegmentView:
    """A segment as the campaign's page shows it."""

    status: SegmentStatus
    counts: dict[str, int]
    next: int
    left: int | None
    goal: float | None
    bar: Markup
    verdict: str
    chart: Markup
    looks: Sequence[Look]


@dataclass(frozen=True)
class CampaignView:
    """A campaign as its page shows it."""

    status: Status
    held: Held
    segments: Sequence[SegmentView]
    totals: dict[str, int]
    costs: dict[str, float]
    page: int
    pages: int
    left: int | None
    complete: bool

    @property
    def affordable(self) -> bool:
        """Whether the budget leaves as much as the goal is foretold to take."""
        left = self.status.answers_left or {}
        cost = math.fsum(self.costs[name] * more for name, more in left.items())
        return self.status.spent + cost <= self.status.budget

    @property
    def counts(self) -> dict[str, str]:
        """What is counted, in words."""
        return {
            name: words for name, words in COUNTS.items() if name not in RARE or self.totals[name]
        }

    @property
    def look(self) -> str:
        """What changes when there is more to show than counts."""
        reading = "" if self.complete else ".reading"
        return f"{self.held.round}.{self.held.version}.{self.held.state}{reading}"


@dataclass(frozen=True)
class PastView:
    """What has happened so far: the loss, as charts and as a table, and the latest reasons."""

    wide: Markup
    narrow: Markup
    losses: Sequence[Any]
    latest: Sequence[Decision]


class Watch:
    """One campaign, looked at by many: it remembers what was read while that is fresh."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign, self.history = campaign, History()
        self._lock = threading.Lock()
        self._status: tuple[float, Status, Held] | None = None
        self._found: tuple[tuple[Any, ...], Sequence[Finding | None]] | None = None
        self._means: dict[int, tuple[Finding, Means]] = {}

    def status(self) -> tuple[Status, Held]:
        """Give how the campaign stands, a second old at most."""
        with self._lock:
            now = time.monotonic()
            if self._status is None or self._status[0] < now:
                held = self.campaign.store.held(self.campaign.id)
                self._status = now + FRESH, self.campaign.status(), held
            return self._status[1], self._status[2]

    def finding(self, place: int) -> Finding | None:
        """Give what the last look at a segment found."""
        _, held = self.status()
        key = (held.round, held.version, held.state, held.standing)
        with self._lock:
            if self._found is None or self._found[0] != key:
                self._found = key, self.campaign.findings()
                self._means = {}
            return self._found[1][place]

    def means(self, place: int, finding: Finding) -> Means:
        """Give the means of a completion's rows and columns."""
        with self._lock:
            known = self._means.get(place)
        if known is None or known[0] is not finding:
            known = finding, means_of(finding)
            with self._lock:
                self._means[place] = known
        return known[1]

    def place_of(self, name: str) -> int:
        """Give a segment's place by its name."""
        names = [each.name for each in self.campaign.design.segments]
        if name not in names:
            raise NotFound(f"There is no segment {name!r} in campaign {self.campaign.name!r}.")
        return names.index(name)

    def view(self, page: int = 1, *, charts: bool = True) -> CampaignView:
        """Give the campaign as its page shows it, some segments at a time."""
        status, held = self.status()
        complete = not charts or self.history.read(self.campaign.store, self.campaign.id)
        pages = max(1, math.ceil(len(status.segments) / PER_PAGE))
        page = min(max(page, 1), pages)
        most = max((each.planned for each in status.segments), default=0)
        shown = status.segments[(page - 1) * PER_PAGE : page * PER_PAGE]
        segments = [self._segment(each, status, held, most, charts) for each in shown]
        counted = [counts_of(each) for each in status.segments]
        totals = {name: sum(each[name] for each in counted) for name in COUNTS}
        left = None if status.answers_left is None else sum(status.answers_left.values())
        costs = {each.name: each.cost for each in self.campaign.design.segments}
        return CampaignView(status, held, segments, totals, costs, page, pages, left, complete)

    def past(self) -> PastView:
        """Give what has happened so far."""
        _, held = self.status()
        losses = self.history.losses_until(held)
        shared = {"goal": self.campaign.design.epsilon, "until": self.campaign.design.budget}
        wide, narrow = (
            loss_chart(losses, width=w, height=h, **shared) for w, h in ((760, 260), (340, 220))
        )
        return PastView(wide, narrow, thinned(losses, LISTED), self.history.latest())

    def _segment(
        self, each: SegmentStatus, status: Status, held: Held, most: int, charts: bool
    ) -> SegmentView:
        goal = self.goal(each.name)
        looks = self.history.looks_until(held, each.name) if charts else []
        left = None if status.answers_left is None else status.answers_left.get(each.name)
        return SegmentView(
            status=each,
            counts=counts_of(each),
            next=each.open + each.lent,
            left=left,
            goal=goal,
            bar=counts_bar(each, most),
            verdict=verdict_of(each.audit),
            chart=looks_chart(each.name, looks, goal),
            looks=thinned(looks, LISTED),
        )

    def goal(self, name: str) -> float | None:
        """Give the root mean squared error that a segment is to reach, if there is one."""
        targets = self.campaign.design.targets
        goal = None if targets is None else targets[self.place_of(name)]
        return goal if goal is not None and math.isfinite(goal) else None
