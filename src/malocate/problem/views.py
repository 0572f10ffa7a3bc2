"""Parts of observations and their joining: which answers belong, without checking them anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malocate.errors import InvalidInput
from malocate.problem import checks, draws
from malocate.problem.arrays import Floats, Index, frozen
from malocate.problem.counting import counted
from malocate.problem.hashing import hashed_folds

if TYPE_CHECKING:
    from malocate.problem.observations import Observations

FRAME = ("shape", "scale", "labels", "mask")  # what all answers share
COLUMNS = ("rows", "cols", "values", "probability")  # what each has of its own
_QUICK_TO_COUNT = 10**6  # answers that a repr groups by entry without being noticed


def index_of(index: slice | ArrayLike, length: int) -> Index:
    """Give a slice, a boolean mask or distinct places inside `length` answers."""
    if isinstance(index, slice):
        for name in ("start", "stop", "step"):
            if getattr(index, name) is not None:
                checks.integer(getattr(index, name), f"index.{name}")
        if index.step == 0:
            raise InvalidInput("index.step is 0; it must be above or below.")
        return index
    array = checks.column(index, "index")
    if array.dtype == np.bool_:
        if array.size != length:
            raise InvalidInput(f"index marks {array.size:,} answers; there are {length:,}.")
        return array
    checks.whole(array, "index")
    _distinct_places(array, length)
    return array.astype(np.int64)


def _distinct_places(array: NDArray[Any], length: int) -> None:
    outside = (array < 0) | (array >= length)
    checks.refuse_where(outside, array, "index", f"there are {length:,} answers, counted from 0")
    times = np.bincount(array.astype(np.int64), minlength=1)
    if times.max() > 1:
        raise InvalidInput(
            f"index names answer {int(np.argmax(times > 1))} more than once; an answer counts once."
        )


def taken(observations: Observations, index: Index) -> dict[str, Any]:
    """Give the state of the answers at `index`."""
    state: dict[str, Any] = {name: getattr(observations, name) for name in FRAME}
    home = observations.home.take(index) if observations.home is not None else None
    if home is not None:
        return home.state(state)
    for name in COLUMNS:
        column = getattr(observations, name)
        state[name] = None if column is None else frozen(column[index])
    return state | {"numbering": observations.numbering.take(index)}


def fold_numbers(
    observations: Observations,
    count: int,
    key: tuple[int | str, ...],
    share: float | None,
    kind: np.dtype[Any],
) -> NDArray[Any]:
    """Give the fold of each answer as integers of a kind, computed block by block."""
    hashed_folds(np.empty(0, np.int64), count, *key, share=share)  # refuses what it must
    numbers = np.empty(len(observations), kind)
    for part, origins in observations.numbering.blocks():
        numbers[part] = hashed_folds(origins, count, *key, share=share)
    return numbers


def joined(parts: Sequence[Observations]) -> dict[str, Any]:
    """Give the state of all parts together, in their order."""
    _agree(parts)
    state: dict[str, Any] = {name: getattr(parts[0], name) for name in FRAME}
    for name in ("rows", "cols", "values"):
        state[name] = frozen(np.concatenate([getattr(part, name) for part in parts]))
    numbering = draws.joined([part.numbering for part in parts])
    numbering.check_replicates(state["rows"], state["cols"], absent=True)
    return state | {"probability": _joined_probability(parts), "numbering": numbering}


def _agree(parts: Sequence[Observations]) -> None:
    if not parts:
        raise InvalidInput("There are no parts to join; give at least one Observations.")
    for place, part in enumerate(parts):
        for name in FRAME:
            if not _same(getattr(part, name), getattr(parts[0], name)):
                raise InvalidInput(
                    f"parts[{place}] differs from parts[0] in {name}"
                    f"{_difference(part, parts[0], name)}; only answers about the same matrix"
                    " can be joined."
                )


def _difference(part: Observations, first: Observations, name: str) -> str:
    if name in ("labels", "mask"):
        return ""
    return f", {getattr(part, name)} instead of {getattr(first, name)}"


def _joined_probability(parts: Sequence[Observations]) -> Floats | None:
    filled = [(place, part) for place, part in enumerate(parts) if len(part)]
    known = [part.probability for _, part in filled if part.probability is not None]
    if known and len(known) < len(filled):
        place = next(place for place, part in filled if part.probability is None)
        raise InvalidInput(
            f"parts[{place}] has no draw probabilities, others have; give them for all or none."
        )
    return frozen(np.concatenate(known)) if known else None


def equal(one: Observations, two: Observations) -> bool:
    """Tell whether all content is the same, draw numbers and their order included."""
    same = all(_same(getattr(one, name), getattr(two, name)) for name in FRAME + COLUMNS)
    return same and one.numbering.same(two.numbering)


def _same(one: Any, two: Any) -> bool:
    if one is two:
        return True
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return one is not None and two is not None and np.array_equal(one, two)
    return bool(one == two)


def described(observations: Observations) -> str:
    """Give one line about the answers; entries are counted where that is quick."""
    d1, d2 = observations.shape
    text = f"{d1}×{d2}, {counted(len(observations), 'answer')}"
    if max(len(observations), d1) <= _QUICK_TO_COUNT or "entries" in vars(observations):
        text += f" on {counted(observations.n_seen, 'entry')}"
    if observations.scale is not None:
        text += ", scale " + "–".join(checks.shown(end) for end in observations.scale)
    return f"Observations({text})"
