"""Waves: how many questions to send next, and to which segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from malocate.campaign.status import Status
from malocate.design import Design

Counts = dict[str, int]


@dataclass(frozen=True)
class Wave:
    """Counts by segment of what to send next, out of the round that is planned.

    >>> print(Wave(40, 2, {"North": 25, "South": 15}).words)
    Send next 40: North 25, South 15.
    """

    wanted: int
    round: int
    quotas: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many there are, all in all."""
        return sum(self.quotas.values())

    @property
    def words(self) -> str:
        """What to send, and what to do where it is fewer than wanted."""
        if not self.total:
            return "Nothing waits to be sent."
        counts = ", ".join(f"{name} {count:,}" for name, count in self.quotas.items() if count)
        told = f"Send next {self.total:,}: {counts}."
        if self.total < self.wanted:
            told += (
                f" That is all that waits of round {self.round}, and "
                f"{self.wanted - self.total:,} fewer than wanted: the next round is planned when "
                "this one is answered, or given up."
            )
        return told

    def to_plain(self) -> dict[str, Any]:
        """Give it as a table that JSON can hold."""
        quotas = dict(self.quotas)
        return {"wanted": self.wanted, "total": self.total, "quotas": quotas, "words": self.words}


def wave_of(design: Design, status: Status, wanted: int) -> Wave:
    """Share what is wanted among the segments, as the round that is out has questions waiting."""
    waiting = {each.name: each.open if status.state == "open" else 0 for each in status.segments}
    short = {
        each.name: max(0, segment.floor - (each.planned - each.open))
        for segment, each in zip(design.segments, status.segments, strict=True)
    }
    return Wave(wanted, status.round, quotas(wanted, waiting, short))


def quotas(wanted: int, waiting: Mapping[str, int], short: Mapping[str, int]) -> Counts:
    """Share `wanted` in proportion to what waits, in whole numbers by largest remainders.

    A segment that is short of its floor gets what it lacks first; none gets more than waits.

    >>> quotas(40, {"north": 250, "south": 150}, {})
    {'north': 25, 'south': 15}
    >>> quotas(40, {"north": 250, "south": 150}, {"south": 30})
    {'north': 7, 'south': 33}
    """
    total = min(wanted, sum(waiting.values()))
    least = {name: min(short.get(name, 0), count) for name, count in waiting.items()}
    if sum(least.values()) >= total:
        return _shared(total, least)
    rest = {name: count - least[name] for name, count in waiting.items()}
    more = _shared(total - sum(least.values()), rest)
    return {name: least[name] + more[name] for name in waiting}


def _shared(total: int, weights: Mapping[str, int]) -> Counts:
    """Share a total that is at most the sum of the weights; no share is above its weight."""
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    parts = {name: divmod(total * weight, whole) for name, weight in weights.items()}
    counts = {name: count for name, (count, _) in parts.items()}
    left = total - sum(counts.values())
    for name in sorted(parts, key=lambda name: -parts[name][1])[:left]:
        counts[name] += 1
    return counts
