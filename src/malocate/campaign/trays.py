"""Trays: the order in which one person is served several things.

Positions and neighbours are balanced by the rows of a Williams square: over as many trays as there
are things, each thing stands once at every place, and (for an even number; over twice as many for
an odd one) follows every other thing once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


def williams_row(size: int, turn: int) -> list[int]:
    """Give the order of `size` things on the tray number `turn`.

    >>> [williams_row(4, turn) for turn in range(4)]
    [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]
    """
    first, low, high = [], 0, size - 1
    for place in range(size):
        if place == 0 or place % 2:
            first.append(low)
            low += 1
        else:
            first.append(high)
            high -= 1
    row = [(each + turn) % size for each in first]
    mirrored = size % 2 and (turn // size) % 2
    return row[::-1] if mirrored else row


def on_tray(things: Sequence[Thing], turn: int) -> list[Thing]:
    """Give things in the order of a tray."""
    return [things[place] for place in williams_row(len(things), turn)] if things else []
