"""Answers from and to other forms of data: frames with labels, dense and sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import checks
from malocate.problem.arrays import Floats, Int64s

if TYPE_CHECKING:
    import pandas

    from malocate.problem.observations import Observations

Scale = tuple[float, float] | None
GivenLabels = tuple[Iterable[Hashable], Iterable[Hashable]] | None


@dataclass(frozen=True)
class FrameReader:
    """Reads answers from a frame: the names of its columns, and what is known beforehand."""

    row: str
    column: str
    value: str
    segment: str | None
    scale: Scale
    labels: tuple[list[Any], list[Any]] | None  # when they are fixed beforehand

    def read(
        self, source: Any, make: Callable[..., Observations]
    ) -> Observations | dict[Any, Observations]:
        """Give the observations of a frame, or a dict of them when it has segments."""
        frame = _pandas_frame(source)
        columns = self._columns(frame)
        segment = self.segment or ("segment" if "segment" in frame else None)
        if segment is None:
            return make(**self._answers(frame, columns, np.arange(len(frame))))
        found = {}
        for name, lines in _lines_by_segment(frame, segment):
            answers = self._answers(frame, columns, lines)
            try:
                found[name] = make(**answers)
            except InvalidInput as error:
                raise InvalidInput(f"Segment {name!r}: {error}") from None
        return found

    def _columns(self, frame: pandas.DataFrame) -> dict[str, NDArray[Any]]:
        """Give the columns that hold numbers, checked line by line."""
        columns = {"values": _values(_column(frame, self.value, "value"), self.value, self.scale)}
        if "draw" in frame:
            columns["draws"] = _counts(_present(_column(frame, "draw", "draw"), "draw"), "draw")
        if "repeats" in frame:
            columns["repeats"] = _repeats(_column(frame, "repeats", "repeats"))
        if "probability" in frame:
            chances = _column(frame, "probability", "probability")
            columns["probability"] = _present(chances, "probability")
        return columns

    def _answers(
        self, frame: pandas.DataFrame, columns: dict[str, NDArray[Any]], lines: Int64s
    ) -> dict[str, Any]:
        """Give the arguments of an Observations made of these lines of the frame."""
        if not lines.size and self.labels is None:
            raise InvalidInput("The frame has no lines; give labels= to say what the matrix is.")
        rows, cols = self.labels or (None, None)
        row_codes, row_labels = _coded(_column(frame, self.row, "row"), lines, rows)
        col_codes, col_labels = _coded(_column(frame, self.column, "column"), lines, cols)
        return {name: array[lines] for name, array in columns.items()} | {
            "rows": row_codes,
            "cols": col_codes,
            "labels": (row_labels, col_labels),
            "shape": (len(row_labels), len(col_labels)),
        }


def _pandas_frame(source: Any) -> pandas.DataFrame:
    import pandas

    if isinstance(source, pandas.DataFrame):
        return source
    readable = isinstance(source, Iterable) or hasattr(source, "to_pandas")
    if not readable or isinstance(source, str | bytes):
        raise InvalidType(
            f"frame is {source!r}; it must be a pandas frame, such as pandas.read_csv gives."
        )
    try:
        return pandas.DataFrame(source.to_pandas() if hasattr(source, "to_pandas") else source)
    except (TypeError, ValueError) as error:
        raise InvalidType(
            f"frame is {checks.a(source)} that pandas makes no frame of ({error}); give a pandas"
            " frame, or a mapping of columns of one length."
        ) from None


def _column(frame: pandas.DataFrame, name: str, role: str) -> pandas.Series[Any]:
    checks.hashable(name, f"{role}=")
    if name not in frame:
        listed = ", ".join(repr(each) for each in frame.columns) or "none"
        raise InvalidInput(
            f"The frame has no column {name!r}; it has {listed}. Name the one to use: {role}=…."
        )
    column = frame[name]
    if column.ndim != 1:
        raise InvalidInput(f"The frame has several columns {name!r}; rename all but one.")
    return column


def _present(column: pandas.Series[Any], name: str) -> NDArray[Any]:
    """Give a column as an array; refuse a missing value."""
    missing = column.isna().to_numpy()
    if missing.any():
        place = int(np.argmax(missing))
        raise InvalidInput(f"frame[{name!r}][{place}] is missing; drop unanswered asks before.")
    return _plain(column)


def _plain(column: pandas.Series[Any]) -> NDArray[Any]:
    """Give a column as an array of what it holds: its categories, the numbers among objects."""
    import pandas

    if isinstance(column.dtype, pandas.CategoricalDtype):
        return np.asarray(column)
    return column.infer_objects().to_numpy()


def _counts(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Give whole numbers, which a column holds as floats when one was missing once."""
    return checks.whole_numbers(array, f"frame[{name!r}]", "it must be a whole number")


def _values(column: pandas.Series[Any], name: str, scale: Scale) -> Floats:
    array = _present(column, name)
    if array.dtype.kind == "O":
        raise InvalidType(
            f"frame[{name!r}] has dtype {column.dtype}; convert it with pandas.to_numeric."
        )
    return checks.answers(array, checks.scale_of(scale), f"frame[{name!r}]")


def _repeats(column: pandas.Series[Any]) -> NDArray[Any]:
    """Give the draws repeated, -1 where none is named."""
    import pandas

    missing = column.isna().to_numpy()
    if missing.any():
        filled = np.where(missing, -1, column.to_numpy(dtype=object))
        column = pandas.Series(filled, dtype=object)
    return _counts(_plain(column), "repeats")


def _lines_by_segment(frame: pandas.DataFrame, segment: str) -> list[tuple[Any, Int64s]]:
    codes, segments = _coded(_column(frame, segment, "segment"), np.arange(len(frame)), None)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(1, len(segments)))
    return list(zip(segments, np.split(order, starts), strict=False))


def _coded(
    column: pandas.Series[Any], lines: Int64s, given: Iterable[Hashable] | None
) -> tuple[Int64s, list[Any]]:
    """Give the number of each line's label, and the labels that are numbered."""
    codes, appeared = _appeared(column, lines)
    labels = _in_order(appeared, column) if given is None else list(given)
    number = {label: place for place, label in enumerate(labels)}
    for label in appeared:
        if label not in number:
            place = lines[int(np.argmax(codes == appeared.index(label)))]
            raise InvalidInput(
                f"frame[{column.name!r}][{place}] is {label!r}, which is not among the labels."
            )
    numbers = np.fromiter((number[label] for label in appeared), np.int64, len(appeared))
    return numbers[codes], labels


def _appeared(column: pandas.Series[Any], lines: Int64s) -> tuple[Int64s, list[Any]]:
    """Give each line's label as a number, in order of first appearance, and those labels."""
    import pandas

    try:
        codes, found = pandas.factorize(column.take(lines))
    except TypeError:  # from here on only to find the line
        for place in lines:
            checks.hashable(column.iloc[place], f"frame[{column.name!r}][{place}]")
        raise
    if (codes < 0).any():
        place = lines[int(np.argmax(codes < 0))]
        raise InvalidInput(f"frame[{column.name!r}][{place}] is missing; each line needs a label.")
    return codes, list(found.tolist())


def _in_order(labels: list[Any], column: pandas.Series[Any]) -> list[Any]:
    """Give labels as their ordered categories stand, else sorted if they can be."""
    if getattr(column.dtype, "ordered", False):
        seen = set(labels)
        return [label for label in column.cat.categories.tolist() if label in seen]
    try:
        return sorted(labels)
    except TypeError:
        return labels


def read_dense(matrix: ArrayLike, scale: Scale) -> dict[str, Any]:
    """Give the arguments of an Observations with one answer per cell that is not NaN."""
    if hasattr(matrix, "tocoo"):
        raise InvalidType("The matrix is sparse; read it with Observations.from_sparse.")
    array, labels = _dense_with_labels(matrix)
    if array.ndim != 2:
        raise InvalidInput(f"The matrix has {array.ndim} dimensions; it must have two.")
    checks.real(array, "matrix")
    rows, cols = np.nonzero(~np.isnan(array))
    values = _matrix_answers(array[rows, cols], rows, cols, scale)
    return {"rows": rows, "cols": cols, "values": values, "shape": array.shape, "labels": labels}


def _dense_with_labels(matrix: Any) -> tuple[NDArray[Any], GivenLabels]:
    if isinstance(matrix, np.ma.MaskedArray):
        raise InvalidType("The matrix is a masked array; give matrix.filled(numpy.nan).")
    if not (hasattr(matrix, "columns") and hasattr(matrix, "index")):
        return checks.array_of(matrix, "matrix", "all of its rows must have one length"), None
    for name, dtype in matrix.dtypes.items():
        if dtype.kind not in "iuf":
            raise InvalidType(f"column {name!r} has dtype {dtype}; it must hold real numbers.")
    labels = matrix.index.tolist(), matrix.columns.tolist()
    return matrix.to_numpy(dtype=np.float64, na_value=np.nan), labels


def read_sparse(matrix: Any, scale: Scale) -> dict[str, Any]:
    """Give the arguments of an Observations with one answer per stored entry."""
    if not hasattr(matrix, "tocoo"):
        raise InvalidType(
            f"The matrix is a {type(matrix).__name__}, not a SciPy sparse matrix;"
            " read a dense one with Observations.from_dense."
        )
    if matrix.ndim != 2:
        raise InvalidInput(f"The matrix has {matrix.ndim} dimensions; it must have two.")
    stored = matrix.tocoo()
    rows, cols = stored.row, stored.col
    values = _matrix_answers(stored.data, rows, cols, scale)
    return {"rows": rows, "cols": cols, "values": values, "shape": matrix.shape}


def _matrix_answers(
    values: NDArray[Any], rows: NDArray[Any], cols: NDArray[Any], scale: Scale
) -> Floats:
    """Give the answers of a matrix; a refusal names the cell."""
    return checks.answers(
        values,
        checks.scale_of(scale),
        "matrix",
        lambda place: f"matrix[{rows[place]}, {cols[place]}]",
    )


def write_frame(observations: Observations) -> pandas.DataFrame:
    """Give one line per answer, with labels, and what else is set."""
    import pandas

    rows, cols = (
        places if labels is None else pandas.Index(list(labels), tupleize_cols=False)[places]
        for places, labels in zip(
            (observations.rows, observations.cols), observations.labels or (None, None), strict=True
        )
    )
    columns = {"row": rows, "column": cols, "value": observations.values}
    if not np.array_equal(observations.draws, np.arange(len(observations))):
        columns["draw"] = observations.draws
    if (observations.repeats >= 0).any():
        columns["repeats"] = observations.repeats
    if observations.probability is not None:
        columns["probability"] = observations.probability
    return pandas.DataFrame(columns)
