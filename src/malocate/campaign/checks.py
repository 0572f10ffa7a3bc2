"""Checks of what people and programs hand to a campaign, before anything is written."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from malocate.errors import InvalidInput, InvalidType
from malocate.problem.settings import check_count, check_positive

LONGEST_NAME = 500
"""Characters of a name, at most: databases look askers up by it."""

MOST = 2**31 - 1
"""Questions asked for at once, at most: what a database counts with."""

LONGEST_LEASE = 1e10
"""Seconds for which a ticket may be lent, at most: some 300 years, which dates still reach."""


def checked_request(n: Any, who: Any, lease: Any, capacity: Any) -> int:
    """Give how many questions somebody may have; refuse what is no request."""
    check_count("n", n)
    checked_name("who", who, "name who asks, such as a tablet or a person")
    checked_lease(lease)
    if capacity is None:
        return min(int(n), MOST)
    check_count("capacity", capacity)
    return min(int(n), int(capacity), MOST)


def checked_lease(lease: Any) -> float:
    """Give a lease in seconds."""
    check_positive("lease", lease)
    if lease > LONGEST_LEASE:
        raise InvalidInput(f"lease is {lease:g} seconds; it may be {LONGEST_LEASE:g} at most.")
    return float(lease)


def checked_name(what: str, name: Any, rule: str) -> str:
    """Give the name of an asker or a campaign."""
    if not isinstance(name, str) or not name:
        raise InvalidType(f"{what} is {name!r}; {rule}.")
    if len(name) > LONGEST_NAME:
        start = f"{what} has {len(name):,} characters ({name[:20]!r}…)"
        raise InvalidInput(f"{start}; it may have {LONGEST_NAME} at most.")
    return checked_text(what, name)


def checked_text(what: str, text: Any) -> str:
    """Give a text that every database can keep."""
    if not isinstance(text, str):
        raise InvalidType(f"{what} is {text!r}; it must be a text.")
    if "\x00" in text or any("\ud800" <= each <= "\udfff" for each in text):
        rule = "it may hold no NUL and no half of a character (a surrogate)"
        raise InvalidInput(f"{what} is {text[:60]!r}; {rule}.")
    return text


def checked_number(value: Any, what: str) -> float:
    """Give an answer as a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidType(f"{what} is {value!r}; it must be a number.")
    try:
        number = float(value)
    except OverflowError:  # such an integer may even be too long to be shown
        raise InvalidInput(f"{what} is too large for a number.") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{what} is {value!r}; it must be finite.")
    return number + 0.0  # SQLite keeps no sign of nought


def check_texts(**texts: Any) -> None:
    """Refuse what no database can keep as text."""
    for what, text in texts.items():
        checked_text(what, text)
