"""What the checks of a store share: a campaign whose first round has begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from malocate.store import Drawn, Planned, Store

HOUR = 3600.0


def fresh(count: int, *, number: int = 1, first: int = 0, segments: int = 2) -> list[Drawn]:
    """Give open draws of a round, their segments in turn."""
    nothing = (None, "open", 0, None, None, None, None, False)
    return [
        Drawn(each, number, each % segments, each // segments, each % 5, each % 3, -1, *nothing)
        for each in range(first, first + count)
    ]


def planned(number: int, draws: list[Drawn], memory: bytes = b"\x00memory") -> Planned:
    """Give a round to begin."""
    return Planned(
        number=number,
        version=0,
        body=f'{{"round": {number}}}',
        standing="{}",
        event={"round": number},
        draws=draws,
        memories={0: memory},
    )


class StoreBase:
    """A database, and a campaign in it."""

    url: str

    @contextmanager
    def begun(self, count: int = 6) -> Iterator[tuple[Store, int]]:
        """Give a store, and a campaign in it whose first round of so many draws has begun."""
        with self.opened() as store:
            campaign = store.create("tasting", "the design", now=0.0).id
            assert store.begin(campaign, planned(1, fresh(count)), now=1.0)
            yield store, campaign

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Give a store on the database, which is made where it is missing."""
        store = Store.open(self.url, create=True)
        try:
            yield store
        finally:
            store.close()


def refuses(error: type[Exception], work: Callable[[], object]) -> str:
    """Give the sentence of the error that the work raises."""
    try:
        work()
    except error as problem:
        return str(problem)
    raise AssertionError(f"no {error.__name__} was raised")
