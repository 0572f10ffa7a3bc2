"""Something done again and again beside the work, such as a sign of life."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(work: Callable[[], object], every: float, *, at_once: bool = False) -> Iterator[None]:
    """Do something every so many seconds, from a thread of its own, until the block ends."""
    over = threading.Event()

    def repeat() -> None:
        if at_once:
            work()
        while not over.wait(every):
            work()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
