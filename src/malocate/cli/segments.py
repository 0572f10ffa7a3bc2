"""Numbers of segments on the command line: one for all, or some by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from malocate.errors import InvalidInput

if TYPE_CHECKING:
    from malocate.design import Design

Number = TypeVar("Number", int, float)


def by_segment(
    design: Design, given: Sequence[str], read: Callable[[str], Number], option: str, noun: str
) -> dict[str, Number]:
    """Read numbers: "3" is for all segments, "north=8" for one; the later wins.

    >>> from malocate import Design, Segment
    >>> design = Design([Segment("north", (4, 3)), Segment("south", (4, 3))], budget=40)
    >>> by_segment(design, ["3", "north=8"], int, "--rank", "rank")
    {'north': 8, 'south': 3}
    """
    found: dict[str, Number] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            value = read(number)
        except ValueError:
            words = "write a number, or a segment's name, = and a number"
            raise InvalidInput(f"{option} {text} is no {noun}; {words}.") from None
        names = [name] if equals else [segment.name for segment in design.segments]
        found |= dict.fromkeys(names, value)
    return found
