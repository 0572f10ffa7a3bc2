"""Long tables made wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def widened(frame: pd.DataFrame) -> pd.DataFrame:
    """Give one line per segment and row, and one column per item, in the order they come in.

    Where a cell was answered again, the further answers stand in further lines of its row:
    nothing is averaged, and the wide table read again gives the same answers.

    >>> import pandas as pd
    >>> columns = {"segment": "north", "row": ["Al", "Al", "Bo"], "column": ["red", "red", "white"]}
    >>> widened(pd.DataFrame({**columns, "value": [4.0, 5.0, 2.0]}))
      segment row  red  white
    0   north  Al  4.0    NaN
    1   north  Al  5.0    NaN
    2   north  Bo  NaN    2.0
    """
    import pandas as pd

    names = ["segment", "row", "column"]
    again = frame.groupby(names, sort=False, observed=True).cumcount()
    keyed = frame[[*names, "value"]].assign(again=again)
    rows = keyed[["segment", "row"]].drop_duplicates()
    rows = rows.assign(place=range(len(rows)))
    keyed = keyed.merge(rows, on=["segment", "row"])
    values = keyed.set_index(["place", "again", "column"])["value"]
    table = values.unstack("column")  # noqa: PD010  # nothing is to be aggregated
    table = table[list(dict.fromkeys(frame["column"]))]
    labels = rows.set_index("place").loc[table.index.get_level_values("place")]
    table = table.set_axis([str(name) for name in table.columns], axis=1).reset_index(drop=True)
    return pd.concat([labels.reset_index(drop=True), table], axis=1)
