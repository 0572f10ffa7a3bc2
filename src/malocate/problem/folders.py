"""The folder in which observations are kept: one `.npy` file per column, and a head in JSON.

A folder is made beside its place and moved there once it is whole, so that it is there with all
of its answers or not at all. Columns are written as they come and mapped when they are read:
neither needs memory for them.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from malocate.errors import InvalidInput
from malocate.problem.arrays import frozen
from malocate.problem.checks import Labels
from malocate.problem.plain import plain_labels

FORMAT, VERSION = "malocate observations", 1
HEAD = "head.json"
DTYPES = {
    "rows": "<i4",
    "cols": "<i4",
    "values": "<f8",
    "probability": "<f8",
    "draws": "<i8",
    "repeats": "<i8",
    "mask": "|b1",
}
NEEDED = ("rows", "cols", "values")
CHECKED_AT_ONCE = 1 << 24  # bytes


@dataclass(frozen=True, eq=False)
class Folder:
    """A folder that was opened: its place, its head and its columns, mapped read-only.

    It is pickled by its place: whoever unpickles it maps the same files.
    """

    place: Path
    head: Mapping[str, Any]
    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def opened(cls, place: str | Path, sums: Mapping[str, int] | None = None) -> Folder:
        """Map what `made` wrote; with `sums`, only if it still is what these are the sums of."""
        path = Path(place).absolute()
        head = _head(path)
        if sums is not None and dict(sums) != head["sums"]:
            raise InvalidInput(
                f"{path} was replaced by other answers since it was opened; open it anew."
            )
        if missing := [name for name in NEEDED if name not in head["sums"]]:
            raise InvalidInput(f"{path} is without {', '.join(missing)}; {_COPY}.")
        sides = {"mask": tuple(head["shape"])}
        shapes = {name: sides.get(name, (head["answers"],)) for name in head["sums"]}
        return cls(path, head, {name: _mapped(path, name, shape) for name, shape in shapes.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return Folder.opened, (str(self.place), dict(self.head["sums"]))

    @property
    def labels(self) -> Labels | None:
        """The labels of rows and columns, where there are any."""
        found = self.head["labels"]
        return None if found is None else (tuple(found[0]), tuple(found[1]))

    def check(self) -> None:
        """Read every column once, and refuse one whose bytes are not those that were written."""
        for name, column in self.columns.items():
            if _sum_of(column) != self.head["sums"][name]:
                raise InvalidInput(f"{self.place / name}.npy is not what was written; {_COPY}.")


class Columns:
    """Columns under way to a folder, a block at a time."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        """Open one file for each."""
        self._files = {name: (folder / f"{name}.npy").open("wb") for name in names}
        self._sums = dict.fromkeys(names, 0)
        self.answers = 0
        for name, file in self._files.items():
            file.write(_header(name, (0,)))

    def add(self, **block: NDArray[Any] | None) -> None:
        """Append one block; columns of one length."""
        for name, file in self._files.items():
            column = np.ascontiguousarray(block[name], dtype=DTYPES[name])
            file.write(column.data)
            self._sums[name] = zlib.crc32(column.data, self._sums[name])
        self.answers += len(np.asarray(block["rows"]))

    def close(self) -> dict[str, int]:
        """Write the lengths, and everything to the disk; give the columns' sums."""
        for name, file in self._files.items():
            file.seek(0)
            file.write(_header(name, (self.answers,)))
            file.flush()
            os.fsync(file.fileno())
            file.close()
        return self._sums

    def __enter__(self) -> Columns:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()


@contextmanager
def made(place: str | Path) -> Iterator[Path]:
    """Give a folder to fill; it is moved to `place` afterwards, or is gone if that failed."""
    path = Path(place).absolute()
    if path.exists():
        raise InvalidInput(
            f"There is something at {path} already; give another folder, or remove it."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}-{uuid4().hex}")
    beside.mkdir()
    try:
        yield beside
        beside.rename(path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def write_mask(folder: Path, mask: NDArray[np.bool_]) -> int:
    """Write the mask; give its sum."""
    np.save(folder / "mask.npy", np.ascontiguousarray(mask))
    return _sum_of(mask)


def write_head(folder: Path, head: Mapping[str, Any]) -> None:
    """Write the head, last of all: without it a folder is none."""
    labels = head["labels"]
    text = json.dumps(
        {"format": FORMAT, "version": VERSION, **head}
        | {"labels": None if labels is None else plain_labels(labels, "a folder")}
    )
    with (folder / HEAD).open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


_COPY = "write or copy the folder anew"


def _head(path: Path) -> dict[str, Any]:
    try:
        head = json.loads((path / HEAD).read_text(encoding="utf-8"))
        ours = head["format"] == FORMAT and isinstance(head["version"], int)
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        there = "is no folder of observations" if path.exists() else "is not there"
        raise InvalidInput(f"{path} {there}; `Observations.save` and `write` make such folders.")
    if head["version"] > VERSION:
        raise InvalidInput(
            f"{path} was written by a later malocate (format {head['version']}; this one reads "
            f"up to {VERSION}); update malocate to read it."
        )
    return dict(head)


def _mapped(path: Path, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map one column; refuse it unless it is whole."""
    file = path / f"{name}.npy"
    expected = len(_header(name, shape)) + math.prod(shape) * np.dtype(DTYPES[name]).itemsize
    try:
        found = file.stat().st_size
        if found < expected:
            raise InvalidInput(f"{file} is cut short: {found:,} of {expected:,} bytes; {_COPY}.")
        column = np.load(file, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read ({error.strerror}); {_COPY}.") from None
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{file} is no column of numbers; {_COPY}.") from None
    if column.dtype != DTYPES[name] or column.shape != shape:
        raise InvalidInput(
            f"{file} holds {column.dtype} of shape {column.shape} where the head promises "
            f"{np.dtype(DTYPES[name])} of shape {shape}; {_COPY}."
        )
    return frozen(np.asarray(column))


def _header(name: str, shape: tuple[int, ...]) -> bytes:
    """Give a file's first bytes: as many for every length, so that it can be written last."""
    made = BytesIO()
    fields = {"descr": DTYPES[name], "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(made, fields)
    return made.getvalue()


def _sum_of(column: NDArray[Any]) -> int:
    """Give the checksum of a column's bytes, reading a bounded number at a time."""
    flat = column.reshape(-1).view(np.uint8)
    total = 0
    for first in range(0, flat.size, CHECKED_AT_ONCE):
        total = zlib.crc32(flat[first : first + CHECKED_AT_ONCE].data, total)
    return total
