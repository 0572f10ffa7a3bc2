"""Thin QR decompositions: by LAPACK directly, and of tall matrices by their Gram matrix.

Of small factors NumPy's wrapping would take longest. Reflections read a tall matrix once for every
column; products with its Gram matrix read it two or four times in all.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from malocate.estimators.engine.tall import across, along, beside

Floats = npt.NDArray[np.float64]

TALL = 500
"""Rows from which the Gram matrix is the faster way."""

LEANING = 100.0
"""How far columns may lean towards each other before they are straightened twice."""

FALLING = 1e6
"""The same for columns that need be orthonormal to few digits only."""

SMALLEST, LARGEST = 1e-60, 1e60
"""Largest entries whose squares are far from the ends of double precision."""

DEPENDENT = 1e-12
"""Share of a Gram matrix's largest eigenvalue up to which others are put down to rounding."""

OUTSIDE, ASKEW = 0.1, 1e-9
"""Least length outside a basis that is worth a column; the most that it may share with it then."""

BLOCK = 32
"""Columns that LAPACK works on at once where it has the room."""


def orthogonal(vectors: Floats) -> tuple[Floats, Floats]:
    """Give the thin QR decomposition: orthonormal columns, and the triangle that gives them back.

    >>> q, r = orthogonal(np.array([[3.0, 1.0], [4.0, 1.0]]))
    >>> np.allclose(q @ r, [[3, 1], [4, 1]]), np.allclose(q.T @ q, np.eye(2))
    (True, True)
    """
    if (found := _by_gram(vectors)) is not None:
        return found
    packed, scales = _reduced(vectors, overwrite=False)
    least = min(vectors.shape)
    triangle = packed[:least] * _upper(least, vectors.shape[1])
    return _columns(packed, scales), triangle


def basis_of(vectors: Floats, *, overwrite: bool = False) -> Floats:
    """Give orthonormal columns that span these: fewer where tall ones depend to six digits."""
    if (found := _by_gram(vectors)) is not None:
        return found[0]
    if (spanning := _by_spectrum(vectors)) is not None:
        return spanning
    return _columns(*_reduced(vectors, overwrite))


def nearly_basis_of(vectors: Floats) -> Floats:
    """Give columns that span these, orthonormal to ten digits, in half the time if tall."""
    found = _divided(vectors, across(vectors, vectors)) if _is_tall(vectors) else None
    leaning = math.inf if found is None else found.leaning
    return basis_of(vectors) if found is None or leaning > FALLING else found.columns


def basis_beside(vectors: Floats, basis: Floats) -> Floats:
    """Give orthonormal columns outside an orthonormal basis for what unit vectors have out there.

    Vectors that lie inside but for a little give none.

    >>> np.abs(basis_beside(np.eye(3)[:, :2], np.eye(3)[:, 1:])).tolist()
    [[1.0], [0.0], [0.0]]
    """
    rest, _ = beside(vectors, basis)
    made = basis_of(np.compress(np.linalg.norm(rest, axis=0) > OUTSIDE, rest, axis=1))
    inside = np.abs(across(basis, made)).max(axis=0, initial=0.0)
    return np.compress(inside < ASKEW, made, axis=1)  # what came of rounding may lie anywhere


def _is_tall(vectors: Floats) -> bool:
    """Tell whether the Gram matrix is the faster way, and far from the ends of the numbers."""
    length, count = vectors.shape
    if not (0 < count <= length // 4 and length >= TALL):
        return False
    return bool(SMALLEST < max(vectors.max(), -vectors.min()) < LARGEST)


def _by_gram(vectors: Floats) -> tuple[Floats, Floats] | None:
    """Decompose a tall matrix by Cholesky's triangle of its Gram matrix.

    Where columns lean towards each other, rounding leaves the result a little askew; what a second
    time makes of that is orthonormal to the last digits. None where they are nearly dependent.
    """
    if not _is_tall(vectors):
        return None
    gram = across(vectors, vectors)
    first = _divided(vectors, gram)
    if first is None:
        return None
    if first.leaning <= LEANING:
        return first.columns, first.triangle
    gram = across(first.columns, first.columns)
    if not np.abs(gram - np.eye(len(gram))).max() < 1e-3:
        return None
    second = _divided(first.columns, gram)
    return None if second is None else (second.columns, second.triangle @ first.triangle)


def _by_spectrum(vectors: Floats) -> Floats | None:
    """Give orthonormal columns that span tall vectors, by their Gram matrix's eigenvectors."""
    if not _is_tall(vectors):
        return None
    gram = across(vectors, vectors)
    lengths = np.sqrt(np.diag(gram))
    lengths[lengths == 0.0] = 1.0
    squares, turns = np.linalg.eigh(gram / lengths / lengths[:, None])
    kept = squares > DEPENDENT * squares[-1]
    askew = along(vectors, turns[:, kept] / lengths[:, None] / np.sqrt(squares[kept]))
    straight = _divided(askew, across(askew, askew))
    return None if straight is None else straight.columns


class _Divided(NamedTuple):
    """Columns made nearly orthonormal, the triangle that gives the vectors back, how they leant.

    `leaning` is one for orthogonal vectors of any lengths, and grows without end towards dependent
    ones: it is the mean eigenvalue of the inverse Gram matrix of the vectors at length one. The
    rounding depends on it alone, for Cholesky's triangle does not mind the lengths.
    """

    columns: Floats
    triangle: Floats
    leaning: float


def _divided(vectors: Floats, gram: Floats) -> _Divided | None:
    triangle, failed = lapack.dpotrf(gram)
    if failed:
        return None
    inverse, singular = lapack.dtrtri(triangle)
    if singular:
        return None
    scaled = np.sqrt(np.diag(gram))[:, None] * inverse
    leaning = float(np.square(scaled).sum()) / len(gram)
    return _Divided(along(vectors, inverse), triangle, leaning)


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
