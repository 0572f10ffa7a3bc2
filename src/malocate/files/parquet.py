"""Parquet files; the codebook lies in their metadata."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from malocate.errors import InvalidInput
from malocate.files.codebook import Codebook, Variable
from malocate.files.table import Table

if TYPE_CHECKING:
    import pandas as pd

KEY = "malocate"


def read(path: str) -> Table:
    """Read a Parquet file; its lines are counted from 1."""
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror or problem}.") from None
    except ValueError as problem:
        raise InvalidInput(f"{path} is no Parquet file ({problem}).") from None
    kept = frame.attrs.pop(KEY, {})
    frame = _with_labels(frame)
    frame.columns = frame.columns.map(str)
    codebook = {name: Variable.from_plain(plain) for name, plain in kept.items()}
    return Table(frame, np.arange(1, len(frame) + 1), path, "Parquet", codebook)


def _with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Give a frame whose row labels, where it has any but numbers in order, are a column."""
    import pandas as pd

    if isinstance(frame.index, pd.RangeIndex) and frame.index.name is None:
        return frame
    names = ["" if name is None else str(name) for name in frame.index.names]
    return frame.reset_index(names=names)


def write(frame: pd.DataFrame, path: Path, codebook: Codebook) -> None:
    """Write a Parquet file."""
    plain = _of_one_kind(frame)
    plain.attrs = {KEY: {name: variable.to_plain() for name, variable in codebook.items()}}
    plain.to_parquet(path, index=False)


def _of_one_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """Give labels of mixed kinds as text: a column of Parquet holds one kind."""
    mixed = [
        name
        for name in frame.columns
        if frame[name].dtype == object and len(set(frame[name].dropna().map(type))) > 1
    ]
    return frame.astype(dict.fromkeys(mixed, str))
