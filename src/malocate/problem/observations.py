"""One segment's answers: columnar, immutable, repeats welcome."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from malocate.problem import checks, convert, mapped, views
from malocate.problem.arrays import Bools, Floats, Int32s, Int64s, restore
from malocate.problem.checks import Labels
from malocate.problem.draws import Draws
from malocate.problem.entries import Entries
from malocate.problem.grouping import Map, number_answers

if TYPE_CHECKING:
    import pandas


class Observations:
    """The answers of one segment: which cells were asked, and what was answered.

    Answer `i` says `values[i]` about the cell (`rows[i]`, `cols[i]`). A cell may be asked any
    number of times. Bad input is refused with a sentence that names the place; the arrays are
    copied and closed to writing.

    Parameters
    ----------
    rows, cols : the cell of each answer, counted from 0.
    values : the answers; finite.
    shape : (rows, columns) of the hidden matrix.
    scale : (least, largest) answer that can be given, when there is such a scale.
    labels : (row labels, column labels), kept for output.
    mask : boolean array of `shape`, true where a cell cannot be asked; such cells count in no
        loss.
    draws : a number of its own for each answer, in the order of asking; 0, 1, 2, … when left out.
    repeats : the draw that an answer repeats on purpose (a designed replicate), -1 for none.
    probability : the chance that the draw had to land on its cell, when it was not uniform.

    >>> ratings = Observations([0, 0, 2], [1, 1, 0], [4, 5, 2], shape=(3, 2), scale=(1, 5))
    >>> ratings
    Observations(3×2, 3 answers on 2 entries, scale 1–5)
    >>> ratings.entries.means.tolist()
    [4.5, 2.0]
    """

    shape: tuple[int, int]
    scale: tuple[float, float] | None
    labels: Labels | None
    mask: Bools | None
    rows: Int32s
    cols: Int32s
    values: Floats
    probability: Floats | None
    numbering: Draws  # `draws` and `repeats`, kept compactly
    home: mapped.Home | None = None  # the folder that answers are read from

    def __init__(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        *,
        shape: tuple[int, int],
        scale: tuple[float, float] | None = None,
        labels: tuple[Iterable[Hashable], Iterable[Hashable]] | None = None,
        mask: ArrayLike | None = None,
        draws: ArrayLike | None = None,
        repeats: ArrayLike | None = None,
        probability: ArrayLike | None = None,
    ) -> None:
        state = checks.frame_of(shape, scale, labels, mask)
        optional = {"draws": draws, "repeats": repeats, "probability": probability}
        columns = checks.columns_of(optional, rows=rows, cols=cols, values=values)
        state["rows"] = checks.indices(columns["rows"], "rows", state["shape"])
        state["cols"] = checks.indices(columns["cols"], "cols", state["shape"])
        state["values"] = checks.answers(columns["values"], state["scale"])
        state["probability"] = checks.probability_of(columns["probability"])
        checks.askable(state["rows"], state["cols"], state["mask"])
        numbering = Draws.checked(state["rows"].size, columns["draws"], columns["repeats"])
        numbering.check_replicates(state["rows"], state["cols"])
        self.__dict__.update(state, numbering=numbering)

    @classmethod
    def _of(cls, **state: Any) -> Observations:
        """Make observations of columns that were checked before."""
        made = cls.__new__(cls)
        made.__dict__.update(state)
        return made

    @classmethod
    def from_frame(
        cls,
        frame: pandas.DataFrame,
        *,
        row: str = "row",
        column: str = "column",
        value: str = "value",
        segment: str | None = None,
        scale: tuple[float, float] | None = None,
        labels: tuple[Iterable[Hashable], Iterable[Hashable]] | None = None,
        mask: ArrayLike | None = None,
    ) -> Observations | dict[Any, Observations]:
        """Read answers from a frame with one line per answer, by the labels of row and column.

        Labels that are ordered categories keep that order; others are sorted when they can be,
        else in order of first appearance. `labels` fixes them beforehand, and so makes room for
        rows and columns without answers. The columns `draw`, `repeats` and `probability` are
        read when the frame has them, whole floats as integers. When it has a column
        `segment` (or the one named), the result is a dict: one Observations per segment, each
        with the labels that appear in it.

        >>> import pandas
        >>> tasting = pandas.DataFrame(
        ...     {"who": ["Bo", "Al", "Bo"], "wine": ["red", "red", "white"], "value": [4, 5, 2]}
        ... )
        >>> Observations.from_frame(tasting, row="who", column="wine").labels
        (('Al', 'Bo'), ('red', 'white'))
        """
        fixed = checks.label_lists(labels)
        reader = convert.FrameReader(row, column, value, segment, scale, fixed)
        return reader.read(frame, lambda **made: cls(**made, scale=scale, mask=mask))

    @classmethod
    def from_dense(
        cls,
        matrix: ArrayLike,
        *,
        scale: tuple[float, float] | None = None,
        labels: tuple[Iterable[Hashable], Iterable[Hashable]] | None = None,
        mask: ArrayLike | None = None,
    ) -> Observations:
        """Read one answer from every cell of a matrix that is not NaN.

        A pandas frame lends the labels of its index and columns.

        >>> Observations.from_dense([[5.0, float("nan")], [3.0, 4.0]])
        Observations(2×2, 3 answers on 3 entries)
        """
        made = convert.read_dense(matrix, scale)
        made["labels"] = made["labels"] if labels is None else labels
        return cls(**made, scale=scale, mask=mask)

    @classmethod
    def from_sparse(
        cls,
        matrix: Any,
        *,
        scale: tuple[float, float] | None = None,
        labels: tuple[Iterable[Hashable], Iterable[Hashable]] | None = None,
        mask: ArrayLike | None = None,
    ) -> Observations:
        """Read one answer from every stored entry of a SciPy sparse matrix or array.

        A stored zero is an answer; entries stored twice are two answers and are not summed.

        >>> from scipy.sparse import coo_array
        >>> Observations.from_sparse(coo_array(([4, 2], ([0, 0], [1, 1])), shape=(2, 2)))
        Observations(2×2, 2 answers on 1 entry)
        """
        return cls(**convert.read_sparse(matrix, scale), scale=scale, labels=labels, mask=mask)

    @classmethod
    def concat(cls, parts: Iterable[Observations]) -> Observations:
        """Join answers about the same matrix, in the order given.

        All parts must agree in shape, scale, labels and mask. A part that was made without draw
        numbers continues after the highest draw so far; any other keeps its numbers, which must
        not occur twice. A replicate may name a draw of an earlier part.

        >>> monday = Observations([0], [1], [4.0], shape=(2, 2))
        >>> tuesday = Observations([0, 1], [1, 1], [5.0, 2.0], shape=(2, 2))
        >>> Observations.concat([monday, tuesday]).draws.tolist()
        [0, 1, 2]
        """
        return cls._of(**views.joined(checks.list_of(parts, Observations, "parts")))

    @classmethod
    def open(cls, folder: str | Path, *, check: bool = False) -> Observations:
        """Open answers that `save` or `write` put into a folder, however many: they stay there.

        Columns are mapped read-only, a part is gathered when it is worked on, and a pickle holds
        the folder's place alone. With `check` every byte is compared with what was written.

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> Observations([0, 1], [1, 1], [4.0, 5.0], shape=(2, 2)).save(f"{folder}/ratings")
        >>> Observations.open(f"{folder}/ratings", check=True)
        Observations(2×2, 2 answers on 2 entries)
        """
        return cls._of(**mapped.opened(folder, check=check))

    @classmethod
    def write(
        cls,
        folder: str | Path,
        blocks: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike]],
        *,
        shape: tuple[int, int],
        scale: tuple[float, float] | None = None,
        labels: tuple[Iterable[Hashable], Iterable[Hashable]] | None = None,
        mask: ArrayLike | None = None,
    ) -> Observations:
        """Write more answers than memory holds to a folder, and open it.

        `blocks` gives (rows, cols, values) of some answers at a time, checked like those of the
        constructor; draws are numbered through. The folder is there with all or not at all.

        >>> import tempfile
        >>> days = (([day], [0], [4.0 + day]) for day in range(2))
        >>> kept = Observations.write(f"{tempfile.mkdtemp()}/days", days, shape=(2, 1))
        >>> kept.values.tolist()
        [4.0, 5.0]
        """
        frame = {"shape": shape, "scale": scale, "labels": labels, "mask": mask}
        mapped.write(cls, folder, blocks, frame)
        return cls.open(folder)

    def save(self, folder: str | Path) -> None:
        """Write the answers to a new folder, from which `open` maps them; see there."""
        mapped.save(self, folder)

    @property
    def draws(self) -> Int64s:
        """The draw number of each answer."""
        return self.numbering.numbers

    @property
    def repeats(self) -> Int64s:
        """The draw that each answer repeats on purpose, -1 for none."""
        return self.numbering.repeats

    @property
    def entries(self) -> Entries:
        """The distinct cells seen, with visits, mean and scatter; computed once."""
        return self.grouped(map)

    def grouped(self, map: Map) -> Entries:  # noqa: A002
        """Give `entries`, which `map` makes of blocks of the answers if they are not yet known.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> answers = Observations([0, 1, 1], [0, 0, 0], [3, 4, 5], shape=(2, 1))
        >>> with ThreadPoolExecutor(2) as threads:
        ...     answers.grouped(threads.map).means.tolist()
        [3.0, 4.5]
        """
        if "_entries" not in self.__dict__:
            made = self._entries_by(map)
            self.__dict__.setdefault("_entries", made)  # who is first, if several make them
        known: Entries = self.__dict__["_entries"]
        return known

    def _entries_by(self, map: Map) -> Entries:  # noqa: A002
        if self.home is not None:
            return Entries.from_pieces(self.home.pieces, len(self), self.shape, map)
        return Entries.from_answers(self.rows, self.cols, self.values, self.shape, map)

    @property
    def entry_numbers(self) -> Int64s:
        """For each answer, the place of its cell in `entries`.

        >>> Observations([1, 0, 1], [0, 0, 0], [1, 2, 3], shape=(2, 1)).entry_numbers.tolist()
        [1, 0, 1]
        """
        return number_answers(self.rows, self.cols, self.shape)

    @property
    def n_seen(self) -> int:
        """How many distinct cells have an answer."""
        return len(self.entries)

    @property
    def n_askable(self) -> int:
        """How many cells can be asked: all but the masked ones."""
        return checks.count_askable(self.shape, self.mask)

    @property
    def share_seen(self) -> float:
        """The share of the askable cells that have an answer; nan when none can be asked."""
        return self.n_seen / self.n_askable if self.n_askable else float("nan")

    def take(self, index: slice | ArrayLike) -> Observations:
        """Give the answers at a slice, a boolean mask or a list of places; they keep their draws.

        A slice shares memory with these observations.

        >>> first = Observations([0, 1], [0, 1], [3, 4], shape=(2, 2))
        >>> first.take([False, True]).draws.tolist()
        [1]
        """
        return self._of(**views.taken(self, views.index_of(index, len(self))))

    def since(self, draw: int) -> Observations:
        """Give the answers whose draw number is `draw` or higher.

        >>> Observations([0, 1], [0, 1], [3, 4], shape=(2, 2)).since(1).values.tolist()
        [4.0]
        """
        return self.take(self.numbering.since(checks.integer(draw, "draw")))

    def halves(self) -> tuple[Observations, Observations]:
        """Give the first and the second half of the draws, by draw number.

        The middle one of an odd number goes to the first half, and a designed replicate goes
        where the draw that it repeats goes.

        >>> first, second = Observations([0] * 5, [0] * 5, [1, 2, 3, 4, 5], shape=(1, 1)).halves()
        >>> first.values.tolist(), second.values.tolist()
        ([1.0, 2.0, 3.0], [4.0, 5.0])
        """
        first, second = self.numbering.halves()
        return self.take(first), self.take(second)

    def once(self) -> Observations:
        """Give the answers at cells that were seen once."""
        return self.take(self.entries.visits[self.entry_numbers] == 1)

    def multi(self) -> Observations:
        """Give the answers at cells that were seen at least twice.

        >>> answers = Observations([0, 0, 1], [0, 0, 0], [1, 2, 3], shape=(2, 1))
        >>> answers.once().values.tolist(), answers.multi().values.tolist()
        ([3.0], [1.0, 2.0])
        """
        return self.take(self.entries.visits[self.entry_numbers] >= 2)

    def fold_numbers(
        self, count: int, *, salt: int | str = 0, segment: str = "", share: float | None = None
    ) -> Int64s:
        """Give the fold of each answer, 0 to `count - 1`, or -1 for none.

        A draw's fold comes from a hash of salt, segment and draw number alone: it is the same for
        ever, in every view and however many answers follow. A designed replicate takes the fold
        of the draw that it repeats. With a `share` below `1 / count` the folds are that small,
        and the rest of the answers are in none.

        >>> answers = Observations([0] * 6, [0] * 6, range(6), shape=(1, 1))
        >>> answers.fold_numbers(2, salt="a survey").tolist()
        [1, 1, 1, 0, 0, 1]
        """
        return views.fold_numbers(self, count, (salt, segment), share, np.dtype(np.int64))

    def folds(
        self, count: int, *, salt: int | str = 0, segment: str = "", share: float | None = None
    ) -> Iterator[tuple[Observations, Observations]]:
        """Give, fold by fold, the answers to train on (all others) and those to judge on.

        >>> answers = Observations([0] * 6, [0] * 6, range(6), shape=(1, 1))
        >>> [len(judge) for train, judge in answers.folds(2, salt="a survey")]
        [2, 4]
        """
        least = np.min_scalar_type(-checks.integer(count, "count"))
        numbers = views.fold_numbers(self, count, (salt, segment), share, least)
        for fold in range(count):
            yield self.take(numbers != fold), self.take(numbers == fold)

    def to_frame(self) -> pandas.DataFrame:
        """Give one line per answer: row, column, value and, where set, draw, repeats, probability.

        Rows and columns stand with their labels, if there are any. `from_frame` reads it back.

        >>> Observations([0], [1], [4], shape=(1, 2), labels=(["Al"], ["red", "white"])).to_frame()
          row column  value
        0  Al  white    4.0
        """
        return convert.write_frame(self)

    def __len__(self) -> int:
        return self.values.size if self.home is None else self.home.count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Observations):
            return NotImplemented
        return self is other or views.equal(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return views.described(self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Observations are immutable; {name} cannot be set.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Observations are immutable; {name} cannot be deleted.")

    if not TYPE_CHECKING:  # or every misspelt name would pass for an attribute

        def __getattr__(self, name: str) -> Any:
            """Gather what a part of a folder has not read yet."""
            return mapped.gathered(self, name)

    def __getstate__(self) -> dict[str, Any]:
        if self.home is not None:
            return {"home": self.home}
        return {name: value for name, value in self.__dict__.items() if name != "_entries"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state["home"].state() if "home" in state else state)
