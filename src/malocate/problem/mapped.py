"""Observations whose answers stay in a folder: which of its answers they are, and how to read them.

A part that was taken by a mask keeps one bit for each answer of the folder and gathers a column
when it is wanted. So the training sets of ten folds take no more than ten bits an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import checks, folders
from malocate.problem.arrays import Bools, Floats, Index, Int32s, Int64s, frozen
from malocate.problem.draws import Draws
from malocate.problem.folders import Folder

if TYPE_CHECKING:
    from malocate.problem.observations import Observations

BLOCK = 1 << 20
"""Answers that are read or written at a time."""

HELD = 1 << 20
"""Answers up to which a part keeps a column that it has gathered."""

LAZY = ("rows", "cols", "values", "probability", "numbering")
"""What a part gathers when it is asked for it."""

Columns = tuple[Int32s, Int32s, Floats]


@dataclass(frozen=True, eq=False)
class Home:
    """Where answers are kept: those from `first` to `last` of a folder, or some of them.

    `chosen` has a bit for each from `first` on; without it all are meant.
    """

    folder: Folder
    first: int
    last: int
    count: int
    chosen: NDArray[np.uint8] | None = None
    taken: bool = True  # from all of the answers, so that they keep their draw numbers

    @classmethod
    def of(cls, folder: Folder) -> Home:
        """Give the home of all answers of a folder."""
        return cls(folder, 0, folder.head["answers"], folder.head["answers"], taken=False)

    def take(self, index: Index) -> Home | None:
        """Give the home of the answers at `index`; none if their order is another."""
        places = range(self.count)[index] if isinstance(index, slice) else index
        if isinstance(places, range):
            if places.step != 1 and len(places) > 1:
                return self._of_places(np.asarray(places)) if places.step > 0 else None
            first = places.start if len(places) else 0
            return self._cut(first, first + len(places))
        if places.dtype == np.bool_:
            return self._masked(places)
        rising = bool((places[1:] > places[:-1]).all())
        return self._of_places(places) if rising else None

    def column(self, name: str) -> NDArray[Any] | None:
        """Give one column: mapped where the answers stand in a row, else gathered from there."""
        if name not in self.folder.columns:
            return None
        kept = self.folder.columns[name][self.first : self.last]
        if self.chosen is None:
            return kept
        made = np.empty(self.count, kept.dtype)
        at = 0
        for first, mask in self._masks():
            part = kept[first : first + mask.size][mask]
            made[at : at + part.size] = part
            at += part.size
        return frozen(made)

    @property
    def numbering(self) -> Draws:
        """The draw numbers and replicates."""
        told = self.folder.head["draws"]
        compact: range | Int64s = self.folder.columns["draws"] if told is None else range(*told)
        given, rising = self.folder.head["given"], self.folder.head["rising"]
        whole = Draws(compact, self.folder.columns.get("repeats"), given, rising)
        if not self.taken:
            return whole
        part = whole.take(slice(self.first, self.last))
        return part if self.chosen is None else Draws(*self._chosen_draws(part), True, rising)

    def pieces(self) -> Iterator[Columns]:
        """Walk rows, columns and values of the answers, a bounded number at a time."""
        rows, cols, values = (self.folder.columns[name] for name in folders.NEEDED)
        for first, mask in self._masks():
            part = slice(self.first + first, self.first + first + mask.size)
            kept = slice(None) if self.chosen is None else mask
            yield rows[part][kept], cols[part][kept], values[part][kept]

    @property
    def frame(self) -> dict[str, Any]:
        """What all answers of the folder share."""
        head, mask = self.folder.head, self.folder.columns.get("mask")
        scale = None if head["scale"] is None else tuple(head["scale"])
        return {
            "shape": tuple(head["shape"]),
            "scale": scale,
            "labels": self.folder.labels,
            "mask": mask,
        }

    def state(self, frame: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Give what observations with this home are made of; a part's columns are left out."""
        kept = {name: self.lazily(name) for name in LAZY if self.chosen is None}
        return {**(self.frame if frame is None else frame), **kept, "home": self}

    def lazily(self, name: str) -> Any:
        """Give what is gathered when it is asked for."""
        return self.numbering if name == "numbering" else self.column(name)

    def _masks(self) -> Iterator[tuple[int, Bools]]:
        """Give, block by block from `first` on, where it begins and which answers are meant."""
        for first in range(0, self.last - self.first, BLOCK):
            size = min(BLOCK, self.last - self.first - first)
            if self.chosen is None:
                yield first, np.ones(size, np.bool_)
            else:
                bits = self.chosen[first // 8 : (first + size + 7) // 8]
                yield first, np.unpackbits(bits, count=size).view(np.bool_)

    def _chosen_draws(self, part: Draws) -> tuple[Int64s, Int64s | None]:
        compact = part.compact
        if not isinstance(compact, range):
            return np.asarray(self.column("draws")), self.column("repeats")
        numbers = np.empty(self.count, np.int64)
        at = 0
        for first, mask in self._masks():
            found = np.flatnonzero(mask)
            found += first
            numbers[at : at + found.size] = found * compact.step + compact.start
            at += found.size
        return frozen(numbers), self.column("repeats")

    def _cut(self, first: int, last: int) -> Home:
        """Give the answers from one place to another."""
        if self.chosen is None:
            return Home(self.folder, self.first + first, self.first + last, last - first)
        mask = np.zeros(self.count, np.bool_)
        mask[first:last] = True
        return self._masked(mask)

    def _of_places(self, places: NDArray[Any]) -> Home:
        mask = np.zeros(self.count, np.bool_)
        mask[places] = True
        return self._masked(mask)

    def _masked(self, mask: Bools) -> Home:
        """Give the answers of this home where the mask is true."""
        chosen = []
        at = 0
        for _, ours in self._masks():
            size = int(np.count_nonzero(ours))
            made = np.zeros(ours.size, np.bool_)
            made[ours] = mask[at : at + size]
            chosen.append(np.packbits(made))
            at += size
        bits = np.concatenate([np.empty(0, np.uint8), *chosen])
        return Home(self.folder, self.first, self.last, int(np.count_nonzero(mask)), bits)


def gathered(observations: Observations, name: str) -> Any:
    """Give what a part of a folder was asked for; a small part keeps it."""
    home = vars(observations).get("home")
    if home is None or name not in LAZY:
        raise AttributeError(f"'Observations' object has no attribute {name!r}", name=name)
    found = home.lazily(name)
    if home.count <= HELD:
        vars(observations)[name] = found
    return found


def opened(place: str | Path, *, check: bool = False) -> dict[str, Any]:
    """Give the state of the observations in a folder."""
    folder = Folder.opened(place)
    if check:
        folder.check()
    return Home.of(folder).state()


def save(observations: Observations, place: str | Path) -> None:
    """Write observations to a folder, a bounded number of answers at a time."""
    numbering = observations.numbering
    columns = {name: getattr(observations, name) for name in ("rows", "cols", "values")}
    columns |= {"probability": observations.probability, "repeats": numbering.replicated}
    columns |= {"draws": None if isinstance(numbering.compact, range) else numbering.compact}
    kept = {name: column for name, column in columns.items() if column is not None}
    with folders.made(place) as folder, folders.Columns(folder, tuple(kept)) as files:
        for first in range(0, len(observations), BLOCK):
            files.add(**{name: column[first : first + BLOCK] for name, column in kept.items()})
        _finish(folder, files, vars(observations), numbering)


def write(
    observed: type[Observations],
    place: str | Path,
    blocks: Iterable[Any],
    frame: Mapping[str, Any],
) -> None:
    """Write blocks of answers to a folder, each checked as `observed` checks its arguments."""
    shared = checks.frame_of(**frame)
    names = folders.NEEDED
    with folders.made(place) as folder, folders.Columns(folder, names) as files:
        for number, block in enumerate(_walked(blocks)):
            part = _checked(observed, _columns(block, number), shared, number, files.answers)
            files.add(rows=part.rows, cols=part.cols, values=part.values)
        _finish(folder, files, shared, Draws(range(files.answers)))


def _walked(blocks: Any) -> Iterable[Any]:
    if not isinstance(blocks, Iterable):
        raise InvalidType(
            f"blocks is {checks.a(blocks)}; it must give blocks of answers, (rows, cols, values)."
        )
    return blocks


def _columns(block: Any, number: int) -> dict[str, Any]:
    if not isinstance(block, tuple | list) or len(block) != len(folders.NEEDED):
        raise InvalidType(
            f"Block {number} is {checks.a(block)}; each block must be (rows, cols, values)."
        )
    return dict(zip(folders.NEEDED, block, strict=True))


def _checked(
    observed: type[Observations],
    columns: dict[str, Any],
    shared: Mapping[str, Any],
    number: int,
    before: int,
) -> Observations:
    """Check one block; a refusal says which it is, and how many answers were before it."""
    frame = {name: shared[name] for name in ("shape", "scale")}
    try:
        part = observed(**columns, **frame)
        checks.askable(part.rows, part.cols, shared["mask"])
    except (InvalidInput, InvalidType) as error:
        words = f"Block {number}, after {before:,} answers: {error}"
        raise type(error)(words) from None
    return part


def _finish(
    folder: Path, files: folders.Columns, frame: Mapping[str, Any], numbering: Draws
) -> None:
    """Write what is left: the mask, and the head once everything else is on the disk."""
    sums = files.close()
    if frame["mask"] is not None:
        sums["mask"] = folders.write_mask(folder, frame["mask"])
    compact = numbering.compact
    numbers = [compact.start, compact.stop, compact.step] if isinstance(compact, range) else None
    told = {"draws": numbers, "given": numbering.given, "rising": numbering.rising, "sums": sums}
    shared = {name: frame[name] for name in ("shape", "scale", "labels")}
    folders.write_head(folder, {"answers": files.answers, **shared, **told})
