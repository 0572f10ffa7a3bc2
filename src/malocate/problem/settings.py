"""Checks of settings: one sentence for each way to go wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from malocate.errors import InvalidInput, InvalidType


def check_positive(name: str, value: Any, rule: str = "it must be a positive number") -> None:
    """Refuse what is not a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidType(f"{name} is {value!r}; {rule}.")
    if not 0 < float(value) < math.inf:
        raise InvalidInput(f"{name} is {value!r}; {rule}.")


def check_share(name: str, value: Any) -> None:
    """Refuse what does not lie strictly between zero and one."""
    rule = "it must lie between 0 and 1"
    check_positive(name, value, rule)
    if not value < 1:
        raise InvalidInput(f"{name} is {value!r}; {rule}.")


def check_count(name: str, value: Any, *, least: int = 1, instead: str = "") -> None:
    """Refuse what is not a whole number of at least `least`; `instead` names a word it may be."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        words = f" or {instead}" if instead else ""
        raise InvalidType(f"{name} is {value!r}; it must be a whole number{words}.")
    if int(value) < least:
        words = f", or {instead}" if instead else ""
        raise InvalidInput(f"{name} is {value}; it must be at least {least}{words}.")


def check_switch(name: str, value: Any, *, instead: str = "") -> None:
    """Refuse what is neither True nor False, numpy's included, nor the word `instead`."""
    if isinstance(value, bool | np.bool_) or (isinstance(value, str) and value == instead != ""):
        return
    words = f"True, False or {instead!r}" if instead else "True or False"
    raise InvalidInput(f"{name} is {value!r}; it must be {words}.")


def check_several(name: str, values: Any, rule: str) -> None:
    """Refuse what is not a list of settings to try in turn, such as one of them alone."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidType(f"{name} is {values!r}; {rule}.")


def check_word(name: str, value: Any, words: Iterable[str]) -> None:
    """Refuse what is not one of the words."""
    known = tuple(words)
    if not isinstance(value, str) or value not in known:
        *others, last = (repr(word) for word in known)
        raise InvalidInput(f"{name} is {value!r}; it must be {', '.join(others)} or {last}.")
