"""Parts of observations and their joining: which answers belong, without checking them anew."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import checks
from malocate.problem.entries import Bools, Floats, Int64s

if TYPE_CHECKING:
    from malocate.problem.observations import Observations

Index = slice | NDArray[Any]

_FRAME = ("shape", "scale", "labels", "mask")
_COLUMNS = ("rows", "cols", "values", "probability", "_repeats")
_QUICK_TO_COUNT = 10**6  # answers that a repr groups by entry without being noticed


def index_of(index: slice | ArrayLike, length: int) -> Index:
    """Give a slice, a boolean mask or distinct places inside `length` answers."""
    if isinstance(index, slice):
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
    if outside.any():
        place = int(np.argmax(outside))
        raise InvalidInput(
            f"index[{place}] is {array[place]}; there are {length:,} answers, counted from 0."
        )
    times = np.bincount(array.astype(np.int64), minlength=1)
    if times.max() > 1:
        raise InvalidInput(
            f"index names answer {int(np.argmax(times > 1))} more than once; an answer counts once."
        )


def taken(observations: Observations, index: Index) -> dict[str, Any]:
    """Give the state of the answers at `index`."""
    state = dict(observations.__dict__, _numbered=True)
    state.pop("entries", None)
    for name in _COLUMNS:
        if state[name] is not None:
            state[name] = checks.frozen(state[name][index])
    draws = state["_draws"]
    if isinstance(draws, range) and not isinstance(index, slice):
        draws = observations.draws
    state["_draws"] = draws[index] if isinstance(draws, range) else checks.frozen(draws[index])
    return state


def since(observations: Observations, draw: int) -> slice | Bools:
    """Say which answers have a draw number of `draw` or higher."""
    draws = observations._draws
    if isinstance(draws, range) and draws.step > 0:
        return slice(len(range(draws.start, min(draw, draws.stop), draws.step)), None)
    return observations.draws >= draw


def origins(observations: Observations) -> Int64s:
    """Give for each answer the draw that it repeats, or its own draw number."""
    if observations._repeats is None:
        return observations.draws
    return np.where(observations._repeats >= 0, observations._repeats, observations.draws)


def halves(observations: Observations) -> tuple[slice | Bools, slice | Bools]:
    """Say which answers are in the first and in the second half of the draws."""
    draws, size = observations._draws, len(observations)
    if size == 0 or (isinstance(draws, range) and draws.step > 0 and observations._repeats is None):
        middle = (size + 1) // 2
        return slice(0, middle), slice(middle, size)
    origin = origins(observations)
    distinct = np.unique(origin)
    first = origin <= distinct[(distinct.size - 1) // 2]
    return first, ~first


def joined(parts: Sequence[Observations]) -> dict[str, Any]:
    """Give the state of all parts together, in their order."""
    _agree(parts)
    state: dict[str, Any] = {name: parts[0].__dict__[name] for name in _FRAME}
    for name in ("rows", "cols", "values"):
        state[name] = checks.frozen(np.concatenate([part.__dict__[name] for part in parts]))
    state |= {"probability": _joined_probability(parts), **_joined_draws(parts)}
    if state["_repeats"] is not None:
        draws = np.asarray(state["_draws"], dtype=np.int64)
        checks.replicates(state["rows"], state["cols"], draws, state["_repeats"], absent=True)
    return state


def _agree(parts: Sequence[Observations]) -> None:
    if not parts:
        raise InvalidInput("There are no parts to join; give at least one Observations.")
    for place, part in enumerate(parts):
        if not hasattr(part, "_draws"):
            raise InvalidType(f"parts[{place}] is a {type(part).__name__}, not an Observations.")
        for name in _FRAME:
            if not _same(getattr(part, name), getattr(parts[0], name)):
                raise InvalidInput(
                    f"parts[{place}] has another {name} than parts[0]"
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
    return checks.frozen(np.concatenate(known)) if known else None


def _joined_draws(parts: Sequence[Observations]) -> dict[str, Any]:
    """Number the parts that came without draw numbers onwards, and keep the others' numbers."""
    draws: list[range | Int64s] = []
    repeats: list[Int64s] = []
    end = 0
    for part in parts:
        shift = 0 if part._numbered or not draws else end
        numbers, again = part._draws, part.repeats if _any_repeats(parts) else None
        if shift and isinstance(numbers, range):
            numbers = range(shift, shift + len(numbers))
        if again is not None:
            repeats.append(np.where(again >= 0, again + shift, -1))
        draws.append(numbers)
        end = max(end, _end(numbers))
    return {
        "_draws": _merged(draws),
        "_repeats": checks.frozen(np.concatenate(repeats)) if repeats else None,
        "_numbered": any(part._numbered for part in parts),
    }


def _any_repeats(parts: Sequence[Observations]) -> bool:
    return any(part._repeats is not None for part in parts)


def _end(draws: range | Int64s) -> int:
    """Give the number after the highest draw."""
    if isinstance(draws, range):
        return max(draws[0], draws[-1]) + 1 if len(draws) else 0
    return int(draws.max()) + 1


def _merged(draws: Sequence[range | Int64s]) -> range | Int64s:
    filled = [each for each in draws if len(each)]
    if all(isinstance(each, range) and each.step == 1 for each in filled):
        follow = all(one[-1] + 1 == two[0] for one, two in pairwise(filled))
        if follow:
            return range(int(filled[0][0]), int(filled[-1][-1]) + 1) if filled else range(0)
    return checks.compact(
        checks.frozen(np.concatenate([np.asarray(each, dtype=np.int64) for each in filled]))
    )


def equal(one: Observations, two: Observations) -> bool:
    """Tell whether all content is the same, draw numbers and their order included."""
    names = (*_FRAME, "rows", "cols", "values", "probability")
    if not all(_same(getattr(one, name), getattr(two, name)) for name in names):
        return False
    if isinstance(one._draws, range) and isinstance(two._draws, range):
        same_draws = one._draws == two._draws
    else:
        same_draws = _same(one.draws, two.draws)
    return same_draws and (one._repeats is two._repeats or _same(one.repeats, two.repeats))


def _same(one: Any, two: Any) -> bool:
    if one is two:
        return True
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return one is not None and two is not None and np.array_equal(one, two)
    return bool(one == two)


def described(observations: Observations) -> str:
    """Give one line about the answers; entries are counted where that is quick."""
    d1, d2 = observations.shape
    text = f"{d1}×{d2}, {_counted(len(observations), 'answer')}"
    if len(observations) <= _QUICK_TO_COUNT or "entries" in observations.__dict__:
        text += f" on {_counted(observations.n_seen, 'entry')}"
    if observations.scale is not None:
        text += ", scale " + "–".join(checks.shown(end) for end in observations.scale)
    return f"Observations({text})"


def _counted(number: int, noun: str) -> str:
    several = {"answer": "answers", "entry": "entries"}
    return f"{number:,} {noun if number == 1 else several[noun]}"
