"""Numbers as people read them."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """Give a number as people read it; a dash where there is none.

    >>> number(1234.0), number(0.12345), number(float("inf"))
    ('1,234', '0.123', '–')
    """
    if not math.isfinite(value):
        return "–"
    if value == int(value) or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
