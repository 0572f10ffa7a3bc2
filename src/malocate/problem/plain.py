"""Values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


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
