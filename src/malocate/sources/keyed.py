"""Chance from a hash: numbers that depend on what they are for and on a key, on nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from malocate.problem.arrays import Floats, Int64s
from malocate.problem.hashing import keyed_hash

Key = int | str


def pair_hash(first: Int64s, second: Int64s, *key: Key) -> NDArray[np.uint64]:
    """Give 64 well-mixed bits for each pair of numbers, other ones for each key.

    >>> one, two = pair_hash(np.array([3, 4]), np.array([7, 7]), "a key")
    >>> bool(one == pair_hash(np.array([3]), np.array([7]), "a key")[0]), bool(one == two)
    (True, False)
    """
    bits = keyed_hash(first, *key) + np.asarray(second, dtype=np.int64).astype(np.uint64)
    return keyed_hash(bits.view(np.int64), *key, "second")


def uniforms(first: Int64s, second: Int64s, *key: Key) -> Floats:
    """Give a number strictly between 0 and 1 for each pair of numbers.

    52 bits of the hash are used, so that neither end is reached.

    >>> bool(0 < uniforms(np.array([3]), np.array([7]), "a key")[0] < 1)
    True
    """
    bits = pair_hash(first, second, *key) >> np.uint64(12)
    return (bits.astype(np.float64) + 0.5) * 2.0**-52


def normals(first: Int64s, second: Int64s, *key: Key) -> Floats:
    """Give a standard normal number for each pair of numbers.

    >>> round(float(normals(np.arange(10_000), np.zeros(10_000), "a key").std()), 1)
    1.0
    """
    from scipy.special import ndtri

    return np.asarray(ndtri(uniforms(first, second, *key)), dtype=np.float64)
