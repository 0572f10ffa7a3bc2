"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Say how many there are of something.

    >>> counted(1, "answer"), counted(1_200, "answer"), counted(2, "entry")
    ('1 answer', '1,200 answers', '2 entries')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
