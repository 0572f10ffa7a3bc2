"""Thin QR decompositions by LAPACK directly: of small factors, NumPy's wrapping takes longest."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

Floats = npt.NDArray[np.float64]

BLOCK = 32
"""Columns that LAPACK works on at once where it has the room."""


def orthogonal(vectors: Floats) -> tuple[Floats, Floats]:
    """Give the thin QR decomposition: orthonormal columns, and the triangle that gives them back.

    >>> q, r = orthogonal(np.array([[3.0, 1.0], [4.0, 1.0]]))
    >>> np.allclose(q @ r, [[3, 1], [4, 1]]), np.allclose(q.T @ q, np.eye(2))
    (True, True)
    """
    packed, scales = _reduced(vectors, overwrite=False)
    least = min(vectors.shape)
    triangle = packed[:least] * _upper(least, vectors.shape[1])
    return _columns(packed, scales), triangle


def basis_of(vectors: Floats, *, overwrite: bool = False) -> Floats:
    """Give orthonormal columns that span these."""
    return _columns(*_reduced(vectors, overwrite))


def _reduced(vectors: Floats, overwrite: bool) -> tuple[Floats, Floats]:
    """Give LAPACK's form of the decomposition: the triangle with reflections below it."""
    if vectors.size == 0:
        return vectors, np.zeros(0)
    room = BLOCK * vectors.shape[1]
    packed, scales, _, _ = lapack.dgeqrf(vectors, lwork=room, overwrite_a=overwrite)
    return packed, scales


def _columns(packed: Floats, scales: Floats) -> Floats:
    """Give the orthonormal columns of that form, in its place."""
    least = len(scales)
    if least == 0:
        return np.zeros((len(packed), 0))
    made, _, _ = lapack.dorgqr(packed[:, :least], scales, lwork=BLOCK * least, overwrite_a=True)
    return np.asarray(made)


@lru_cache(maxsize=128)
def _upper(lines: int, count: int) -> npt.NDArray[np.bool_]:
    return np.triu(np.ones((lines, count), bool))
