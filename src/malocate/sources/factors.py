"""Factors of made-up matrices: random ones, the lower bound's hard ones, families that share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malocate.errors import InvalidInput
from malocate.problem.arrays import Floats
from malocate.problem.settings import check_share

Shape = tuple[int, int]
Factors = tuple[Floats, Floats]
Rng = int | np.random.Generator | np.random.SeedSequence
_GATHERED = 1 << 22  # numbers gathered from the factors at a time


def check_rank(shape: Shape, rank: int) -> None:
    """Refuse an empty shape, and a rank that a matrix of this shape cannot have."""
    if min(shape) < 1:
        raise InvalidInput(f"`shape` is {shape}; both sides must be at least 1.")
    if not 1 <= rank <= min(shape):
        raise InvalidInput(f"`rank` is {rank}; for shape {shape} it must be 1 to {min(shape)}.")


def new_seed(rng: np.random.Generator) -> int:
    """Draw a seed for later, so that a source answers the same whenever it is asked."""
    return int(rng.integers(2**63))


def random_factors(shape: Shape, rank: int, rng: Rng) -> tuple[Floats, Floats, int]:
    """Give factors of a matrix of unit variance, their entries normal of variance rank^(−1/2)."""
    check_rank(shape, rank)
    rng = np.random.default_rng(rng)
    left, right = (rank**-0.25 * rng.standard_normal((side, rank)) for side in shape)
    return left, right, new_seed(rng)


def hard_factors(shape: Shape, rank: int, level: float, rng: np.random.Generator) -> Factors:
    """Give factors of a random block of 0 and `level`, repeated along the shorter side.

    The block is as long as the longer side and `rank` wide: every number in it is a bit to be
    learnt, so the longer side makes the matrix hardest. What is left over at the end is 0.

    >>> left, right = hard_factors((3, 5), 2, 1.0, np.random.default_rng(0))
    >>> (left @ right.T).tolist()[:2] == right.T.tolist(), (left @ right.T)[2].tolist()
    (True, [0.0, 0.0, 0.0, 0.0, 0.0])
    """
    check_rank(shape, rank)
    shorter, longer = sorted(shape)
    block = level * rng.integers(2, size=(longer, rank)).astype(np.float64)
    copies = np.zeros((shorter, rank))
    filled = np.arange(shorter - shorter % rank)
    copies[filled, filled % rank] = 1.0
    return (block, copies) if shape[0] == longer else (copies, block)


def family_factors(
    shapes: list[Shape], ranks: list[int], shared: float, rng: np.random.Generator
) -> list[Factors]:
    """Give factors of matrices of unit variance whose first column factors are common to all.

    Of a matrix's rank, the share `shared` (rounded) comes from the common factors.
    """
    if len({shape[1] for shape in shapes}) > 1:
        raise InvalidInput(f"The shapes are {shapes}; who shares column factors has equal columns.")
    if shared not in (0, 1):
        check_share("shared", shared)
    common = rng.standard_normal((shapes[0][1], max(ranks)))
    made = []
    for shape, rank in zip(shapes, ranks, strict=True):
        check_rank(shape, rank)
        left, own = (rng.standard_normal((side, rank)) for side in shape)
        n_shared = round(shared * rank)
        own[:, :n_shared] = common[:, :n_shared]
        made.append((rank**-0.25 * left, rank**-0.25 * own))
    return made


def products_at(
    left: Floats, right: Floats, rows: NDArray[np.integer], cols: NDArray[np.integer]
) -> Floats:
    """Give `left @ right.T` at some cells alone."""
    step = max(1, _GATHERED // left.shape[1])
    parts = (slice(start, start + step) for start in range(0, len(rows), step))
    sums = [np.einsum("ij,ij->i", left[rows[p]], right[cols[p]]) for p in parts]
    return np.concatenate([np.empty(0), *sums])


def one_each(name: str, given: Any, members: Sequence[str], depth: int = 0) -> list[Any]:
    """Give one setting for each member; a single one, an array of `depth` axes, is for all.

    >>> one_each("rank", 3, ["north", "south"]), one_each("rank", [1, 2], ["north", "south"])
    ([3, 3], [1, 2])
    """
    listed = [given] * len(members) if np.ndim(given) == depth else list(given)
    if not members or len(listed) != len(members):
        raise InvalidInput(
            f"`{name}` has {len(listed)} for {len(members)} members; there must be one for each,"
            " and at least one member."
        )
    return listed
