"""Thin QR decompositions by LAPACK directly: of small factors, NumPy's wrapping takes longest."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

Floats = npt.NDArray[np.float64]

BLOCK = 32
"""Columns that LAPACK works on at once where it has the room."""


def orthogonal(vectors: Floats, *, overwrite: bool = False) -> tuple[Floats, Floats]:
    """Give the thin QR decomposition: orthonormal columns, and the triangle that gives them back.

    >>> q, r = orthogonal(np.array([[3.0, 1.0], [4.0, 1.0]]))
    >>> np.allclose(q @ r, [[3, 1], [4, 1]]), np.allclose(q.T @ q, np.eye(2))
    (True, True)
    """
    lines, count = vectors.shape
    least = min(lines, count)
    if least == 0:
        return np.zeros((lines, 0)), np.zeros((0, count))
    room = BLOCK * count
    packed, scales, _, _ = lapack.dgeqrf(vectors, lwork=room, overwrite_a=overwrite)
    triangle = packed[:least] * _upper(least, count)
    q, _, _ = lapack.dorgqr(packed[:, :least], scales, lwork=room, overwrite_a=True)
    return q, triangle


def basis_of(vectors: Floats, *, overwrite: bool = False) -> Floats:
    """Give orthonormal columns that span these."""
    return orthogonal(vectors, overwrite=overwrite)[0]


@cache
def _upper(lines: int, count: int) -> npt.NDArray[np.bool_]:
    return np.triu(np.ones((lines, count), bool))
