"""Whole completed matrices: their average, how far they lie apart, and how far off they can be.

Nothing here holds a dense matrix. Matrices that are not clipped are compared through their
factors; clipped ones, and those with cells that cannot be asked, by blocks of rows; and above
a limit of cells a valid but wider figure takes the place of such a walk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from malocate.errors import InvalidInput
from malocate.estimators.base import BLOCK_CELLS, Completion, factors_above, refuse_dense
from malocate.estimators.engine.blas import pinned
from malocate.problem import checks
from malocate.problem.arrays import Bools, Floats
from malocate.problem.counting import counted

if TYPE_CHECKING:
    import pandas

CELLS_LIMIT = 100_000_000
"""Cells above which no matrix is walked block by block any more, unless it has many answers."""

CELLS_AN_ANSWER = 100
"""Cells whose walk costs less than one answer costs in a fit."""

_WALKED = 1 << 17  # cells of one matrix in a block: several matrices' blocks fit into the cache
_TALL = 1024  # rows of factors that are reduced at a time, at least

Scale = tuple[float, float]


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """The average of completions of one matrix, such as those of the folds.

    It has no `rank`: the average of clipped matrices has no factors, and that of others has
    up to as many as all members together.

    >>> one, two = (Completion(np.full((2, 1), level), np.ones((3, 1))) for level in (1.0, 2.0))
    >>> Ensemble((one, two))
    Ensemble(2×3, average of 2 completions)
    >>> Ensemble((one, two)).predict([0, 1], [2, 0])
    array([1.5, 1.5])
    """

    members: tuple[Completion, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", _alike(self.members))

    def __repr__(self) -> str:
        (d1, d2), count = self.shape, len(self.members)
        return f"Ensemble({d1}×{d2}, average of {counted(count, 'completion')})"

    @property
    def shape(self) -> tuple[int, int]:
        """The completed matrix's sides."""
        return self.members[0].shape

    @property
    def labels(self) -> tuple[Any, Any] | None:
        """The row labels and the column labels, where the members have any."""
        return self.members[0].labels

    def predict(self, rows: npt.ArrayLike, cols: npt.ArrayLike) -> Floats:
        """Give the average values at pairs of row and column numbers (or broadcast ones)."""
        return _average([member.predict(rows, cols) for member in self.members])

    def dense(self, *, force: bool = False) -> Floats:
        """Give the whole matrix; refused above `DENSE_LIMIT` cells unless forced.

        Walk `blocks()` instead where a block of rows at a time will do.
        """
        if not force:
            refuse_dense(self.shape, "walk `blocks()`, ask `predict` for cells, or pass force=True")
        values = np.empty(self.shape)
        for rows, block in self.blocks(_WALKED):
            values[rows] = block
        return values

    def blocks(self, cells: int = BLOCK_CELLS) -> Iterator[tuple[slice, Floats]]:
        """Walk the matrix in blocks of whole rows: pairs of a row slice and its values."""
        return ((rows, _average(values)) for rows, values in _in_step(self.members, cells))

    def to_frame(self) -> pandas.DataFrame:
        """Give one line per cell: row, column and value, with labels where there are any."""
        return self.members[0].to_frame().assign(value=lambda _: self.dense().ravel())


def clipped(completion: Completion, scale: Scale | None) -> Completion:
    """Give the completion with its values clipped to the scale; without a scale, as it is.

    >>> done = Completion(np.full((1, 1), 7.0), np.ones((1, 1)))
    >>> clipped(done, (1, 5)).predict(0, 0).item()
    5.0
    """
    if scale is None:
        return completion
    low, high = (float(np.clip(end, *scale)) for end in completion.clip or scale)
    return completion if completion.clip == (low, high) else replace(completion, clip=(low, high))


def walkable(answers: int) -> int:
    """Give the number of cells up to which it is worth while to walk a matrix with so many answers.

    >>> walkable(1000), walkable(50_000_000)
    (100000000, 5000000000)
    """
    return max(CELLS_LIMIT, CELLS_AN_ANSWER * answers)


def ambiguity(
    members: Sequence[Completion], mask: Bools | None = None, *, limit: int | None = None
) -> float:
    """Give the mean over cells of the members' variance about their average.

    By this much the error of the average is below the average of the errors, whatever the truth.
    `mask` is true where a cell cannot be asked; such cells do not count. Above `limit` cells,
    `CELLS_LIMIT` unless told, it is 0 for clipped members and masked matrices: valid, for the
    error of the average is then taken for larger than it is.

    >>> pair = [Completion(np.full((2, 1), level), np.ones((3, 1))) for level in (1.0, 2.0)]
    >>> round(ambiguity(pair), 12)
    0.25
    """
    members = _alike(members)
    _check_mask(mask, members[0].shape)
    return 0.0 if _too_many(members, mask, limit) else _mean(members, mask, _spread)


def distance(
    completion: Completion,
    members: Sequence[Completion],
    mask: Bools | None = None,
    *,
    limit: int | None = None,
) -> float:
    """Give the root mean square difference of a completion and the average of the members.

    `mask` is true where a cell cannot be asked; such cells do not count. Above `limit` cells,
    `CELLS_LIMIT` unless told, the result may be larger than the difference, never smaller:
    matrices clipped to one scale lie no further apart than before, nor further than the scale is
    long, and the sum of squares over all cells bounds that over the askable ones.

    >>> one, two = (Completion(np.full((2, 1), level), np.ones((3, 1))) for level in (1.0, 2.0))
    >>> round(distance(one, [one, two]), 12)
    0.5
    """
    everyone = _alike([completion, *_alike(members)])
    _check_mask(mask, completion.shape)
    alike = len({each.clip for each in everyone}) == 1
    if alike and _too_many(everyone, mask, limit):
        return _at_most(everyone, mask)
    return math.sqrt(_mean(everyone, mask, _apart))


def largest_miss(
    completion: Completion, scale: Scale, mask: Bools | None = None, *, limit: int | None = None
) -> float:
    """Give the largest squared difference that an answer on the scale can have from its cell.

    `mask` is true where a cell cannot be asked; such cells do not count. Above `limit` cells,
    `CELLS_LIMIT` unless told, it is the square of the scale's length, for which the completion
    must be clipped.

    >>> done = Completion(np.full((1, 1), 2.0), np.ones((1, 1)))
    >>> largest_miss(done, (1.0, 5.0))
    9.0
    """
    _check_mask(mask, completion.shape)
    limit = limit or CELLS_LIMIT
    low, high = scale
    least = largest = low + (high - low) / 2  # no miss is smaller than the one from there
    if math.prod(completion.shape) > limit:
        _check_clipped(completion, scale, limit)
        least, largest = low, high
    else:
        for part in _extremes(completion, mask):
            least, largest = min(least, part[0]), max(largest, part[1])
    return max(largest - low, high - least) ** 2


def _extremes(completion: Completion, mask: Bools | None) -> Iterator[tuple[float, float]]:
    """Give the least and the largest askable value of each block."""
    with pinned():
        for rows, block in completion.blocks(_WALKED):
            counted = _counted(mask, rows)
            least = float(block.min(where=counted, initial=math.inf))
            yield least, float(block.max(where=counted, initial=-math.inf))


def _mean(
    everyone: Sequence[Completion], mask: Bools | None, square: Callable[[list[Floats]], Floats]
) -> float:
    """Give the mean over the askable cells of `square` of the matrices."""
    if mask is None and _unclipped(everyone):
        return float(square(_cores(everyone)).sum()) / math.prod(everyone[0].shape)
    total = 0.0
    with pinned():
        for rows, values in _in_step(everyone, _WALKED):
            total += float(square(values).sum(where=_counted(mask, rows)))
    return total / max(1, checks.count_askable(everyone[0].shape, mask))


def _at_most(everyone: Sequence[Completion], mask: Bools | None) -> float:
    """Bound the distance of the first to the others' average by the unclipped matrices."""
    first, *others = _cores(everyone)
    shape, clip = everyone[0].shape, everyone[0].clip
    if clip is None:
        frobenius = float(np.linalg.norm(first - _average(others)))
    else:
        frobenius = float(np.mean([np.linalg.norm(first - other) for other in others]))
    bound = frobenius / math.sqrt(max(1, checks.count_askable(shape, mask)))
    return bound if clip is None else min(bound, clip[1] - clip[0])


def _spread(values: list[Floats]) -> Floats:
    """Give the variance of the matrices about their average, place by place."""
    average = _average(values)
    total = np.zeros_like(average)
    for each in values:
        apart = each - average
        total += np.square(apart, out=apart)
    return np.divide(total, len(values), out=total)


def _apart(values: list[Floats]) -> Floats:
    """Give the squared difference of the first matrix and the others' average."""
    return np.square(values[0] - _average(values[1:]))


def _average(values: list[Floats]) -> Floats:
    total = values[0].copy()
    for each in values[1:]:
        total += each
    return np.divide(total, len(values), out=total)


def _in_step(everyone: Sequence[Completion], cells: int) -> Iterator[tuple[slice, list[Floats]]]:
    """Walk several matrices together by blocks of the same rows."""
    for together in zip(*(each.blocks(cells) for each in everyone), strict=True):
        yield together[0][0], [block for _, block in together]


def _cores(everyone: Sequence[Completion]) -> list[Floats]:
    """Give small matrices that are as far from one another as the unclipped completions.

    All are taken above the first one's centre and seen in an orthonormal basis of all rows and
    of all columns, so that a difference is taken before it is squared.
    """
    pairs = [factors_above(everyone[0].centre, each) for each in everyone]
    ends = np.cumsum([left.shape[1] for left, _ in pairs])[:-1]
    left = np.split(_triangle([left for left, _ in pairs]), ends, axis=1)
    right = np.split(_triangle([right for _, right in pairs]), ends, axis=1)
    return [one @ two.T for one, two in zip(left, right, strict=True)]


def _triangle(factors: list[Floats]) -> Floats:
    """Give the triangular factor of the factors side by side, some rows at a time."""
    width = sum(factor.shape[1] for factor in factors)
    height = max(_TALL, 4 * width)
    reduced = np.zeros((0, width))
    for first in range(0, len(factors[0]), height):
        part = np.hstack([factor[first : first + height] for factor in factors])
        reduced = np.asarray(np.linalg.qr(np.vstack([reduced, part]), mode="r"))
    return reduced


def _too_many(everyone: Sequence[Completion], mask: Bools | None, limit: int | None) -> bool:
    """Tell whether the matrices would have to be walked, and have too many cells for that."""
    walked = mask is not None or not _unclipped(everyone)
    return walked and math.prod(everyone[0].shape) > (limit or CELLS_LIMIT)


def _unclipped(everyone: Sequence[Completion]) -> bool:
    return all(each.clip is None for each in everyone)


def _counted(mask: Bools | None, rows: slice) -> Bools | bool:
    return True if mask is None else ~mask[rows]


def _alike(completions: Sequence[Completion]) -> tuple[Completion, ...]:
    """Give the completions as a tuple; refuse none, and such of different matrices."""
    found = tuple(checks.list_of(completions, Completion, "members"))
    if not found:
        raise InvalidInput("members is empty; an average needs at least one completion.")
    for place, each in enumerate(found):
        if each.shape != found[0].shape:
            raise InvalidInput(
                f"members[{place}] has shape {each.shape} and the first has {found[0].shape}; "
                "all must complete the same matrix."
            )
    return found


def _check_mask(mask: Bools | None, shape: tuple[int, int]) -> None:
    if mask is not None and (mask.shape != shape or mask.dtype != np.bool_):
        raise InvalidInput(
            f"mask has shape {mask.shape} and dtype {mask.dtype}; it must be boolean, of the "
            f"matrix's shape {shape}, and true where a cell cannot be asked."
        )


def _check_clipped(completion: Completion, scale: Scale, limit: int) -> None:
    low, high = completion.clip or (-math.inf, math.inf)
    if not scale[0] <= low <= high <= scale[1]:
        raise InvalidInput(
            f"The completion of shape {completion.shape} is not clipped to the scale {scale} and "
            f"has more than {limit:,} cells, too many to look for its largest miss; "
            "clip it first, by clipped(completion, scale)."
        )
