"""What opening a campaign takes beside the campaign itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from malocate.store import Store


@contextmanager
def closed_on_error(store: Store) -> Iterator[None]:
    """Leave no store open behind an error."""
    try:
        yield
    except BaseException:
        store.close()
        raise


def usual_name(store: Store) -> str:
    """Give the name of a campaign that got none: that of its file."""
    return Path(str(store.database.url.database)).stem if store.database.is_sqlite else "campaign"
