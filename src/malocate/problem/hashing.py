"""A keyed hash of numbers, the same on every machine: folds and inner splits come from it."""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from malocate.errors import InvalidInput, InvalidType
from malocate.problem.arrays import Int64s
from malocate.problem.checks import integer, number, shown

_STEP = np.uint64(0x9E3779B97F4A7C15)  # the constants of the splitmix64 generator
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def keyed_hash(numbers: Int64s, *key: int | str) -> NDArray[np.uint64]:
    """Give 64 well-mixed bits for each number, other ones for each key.

    The bits of a number depend on the number and the key alone, not on its neighbours.

    >>> first, second = keyed_hash([3, 4], "a salt")
    >>> first == keyed_hash([3], "a salt")[0], first == keyed_hash([3], "another")[0]
    (np.True_, np.False_)
    """
    bits = np.asarray(numbers, dtype=np.int64).astype(np.uint64)
    bits *= _STEP
    bits += _offset(key)
    bits ^= bits >> np.uint64(30)
    bits *= _MIX_1
    bits ^= bits >> np.uint64(27)
    bits *= _MIX_2
    bits ^= bits >> np.uint64(31)
    return bits


def _offset(key: tuple[int | str, ...]) -> np.uint64:
    """Give the start that a key stands for, from a cryptographic hash of its parts."""
    parts = []
    for part in key:
        if not isinstance(part, str | int | np.integer):
            raise InvalidType(f"{part!r} cannot be part of a hash's key; use integers or text.")
        parts.append(part if isinstance(part, str) else int(part))
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def hashed_folds(
    numbers: Int64s, count: int, *key: int | str, share: float | None = None
) -> Int64s:
    """Give each number one of `count` folds, each a `share` of them on average; -1 is no fold.

    Without `share` the folds split everything evenly. Smaller shares cut the folds short, and
    what is left over is in none.

    >>> hashed_folds([0, 1, 2, 3, 4], 2, "salt").tolist()
    [1, 0, 1, 0, 0]
    """
    if integer(count, "count") < 1:
        raise InvalidInput(f"count is {count}; there must be at least one fold.")
    share = 1 / count if share is None else number(share, "share")
    if not 0 < count * share < 1 + 1e-9:
        raise InvalidInput(f"share is {shown(share)}; {count} folds of it must fit into the whole.")
    place = (keyed_hash(numbers, *key) >> np.uint64(11)) * 2.0**-53  # uniform on [0, 1)
    if count * share > 1 - 1e-9:
        return (place * count).astype(np.int64)
    fold = (place / share).astype(np.int64)
    fold[fold >= count] = -1
    return fold
