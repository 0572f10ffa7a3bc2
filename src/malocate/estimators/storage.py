"""The file a `Completion` is kept in: arrays in an `.npz`, everything else as JSON inside it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from malocate.errors import InvalidInput
from malocate.problem.plain import plain_labels

if TYPE_CHECKING:
    from malocate.estimators.base import Completion

Place = str | Path | IO[bytes]
"""A file's path, or a binary file that is open."""

FORMAT = "malocate completion"
VERSION = 1
_MEMORY = "memory:"


def write(done: Completion, path: Place) -> None:
    """Write a completion to `path`, exactly that name, or into an open file."""
    arrays = {k: v for k, v in done.memory.items() if isinstance(v, np.ndarray)}
    head = {
        "format": FORMAT,
        "version": VERSION,
        "status": done.status.name,
        "gap": done.gap,
        "clip": done.clip,
        "labels": None if done.labels is None else plain_labels(done.labels, "a file"),
        "offset": done.centre.offset,
        "memory": {k: v for k, v in done.memory.items() if k not in arrays},
    }
    columns: dict[str, Any] = {
        "head": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8),
        "left": done.left,
        "right": done.right,
        "row_effects": done.centre.rows,
        "col_effects": done.centre.cols,
        **{_MEMORY + key: value for key, value in arrays.items()},
    }
    with _opened(path, "wb") as file:
        np.savez(file, **columns)


def read(path: Place) -> dict[str, Any]:
    """Read what `write` wrote, as the arguments of a `Completion`; the centre is a dict too."""
    with _opened(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise _not_ours(path)
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            head = _head(stored, path)
            if missing := {"left", "right", "row_effects", "col_effects"} - set(stored):
                raise InvalidInput(
                    f"{path} is a saved completion without {', '.join(sorted(missing))}."
                )
            arrays = {k.removeprefix(_MEMORY): stored[k] for k in stored if k.startswith(_MEMORY)}
            effects = {"rows": stored["row_effects"], "cols": stored["col_effects"]}
            found = {key: head[key] for key in ("status", "gap")}
            pairs = {key: _tuples(head[key]) for key in ("clip", "labels")}
            sides = {key: stored[key] for key in ("left", "right")}
    centre = {"offset": head["offset"], **effects}
    return {**found, **pairs, **sides, "centre": centre, "memory": head["memory"] | arrays}


@contextmanager
def _opened(path: Place, mode: str) -> Iterator[IO[bytes]]:
    if not isinstance(path, str | Path):
        yield path
        return
    with Path(path).open(mode) as file:
        yield file


def _head(stored: Mapping[str, Any], path: Place) -> dict[str, Any]:
    try:
        head = json.loads(stored["head"].tobytes())
        ours = head["format"] == FORMAT and "version" in head
    except (KeyError, TypeError, ValueError):
        ours = False
    if not ours:
        raise _not_ours(path)
    if head["version"] > VERSION:
        raise InvalidInput(
            f"{path} was written by a later malocate (format {head['version']}; this one reads "
            f"up to {VERSION}); update malocate to read it."
        )
    return dict(head)


def _tuples(pair: Any) -> Any:
    if pair is None:
        return None
    return tuple(tuple(each) if isinstance(each, list) else each for each in pair)


def _not_ours(path: Place) -> InvalidInput:
    return InvalidInput(f"{path} is not a saved completion; `Completion.save` writes such files.")
