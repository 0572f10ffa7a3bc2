"""Values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from malocate.errors import InvalidType
from malocate.problem.checks import Labels


def finite(value: Any, instead: Callable[[float], Any] = str) -> Any:
    """Give nested values with `instead` of each number that JSON does not know; as text, usually.

    >>> finite({"p": float("inf"), "weights": [0.5, float("nan")]})
    {'p': 'inf', 'weights': [0.5, 'nan']}
    """
    if isinstance(value, dict):
        return {name: finite(each, instead) for name, each in value.items()}
    if isinstance(value, list):
        return [finite(each, instead) for each in value]
    return instead(value) if isinstance(value, float) and not math.isfinite(value) else value


def plain_labels(labels: Labels, kept_in: str) -> list[list[str | int | float]]:
    """Give the labels of rows and columns as lists; refuse what is neither text nor a number."""
    sides = zip(("row", "column"), labels, strict=True)
    return [[_plain(label, side, kept_in) for label in each] for side, each in sides]


def _plain(label: Any, side: str, kept_in: str) -> str | int | float:
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, str | int | float):
        return plain
    raise InvalidType(
        f"The {side} label {label!r} is a {type(label).__name__}; {kept_in} keeps labels that are "
        "text or numbers. Take such labels, or pickle it instead."
    )
