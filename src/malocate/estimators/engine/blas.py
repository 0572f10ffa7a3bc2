"""BLAS at one thread inside fits: its own threads slow small factorisations a hundredfold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    import_module("scipy.linalg")  # its BLAS is a library of its own, found only when loaded
    return ThreadpoolController()


class _Pin:
    """BLAS at one thread for as long as somebody holds it.

    The number is the whole process's: the first to come sets it, and the last to go sets it back.
    """

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0

    def hold(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._holders += 1

    def let_go(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limit.restore_original_limits()


@cache
def _pin(_process: int) -> _Pin:
    """Keep one per process: a forked child inherits a lock, but not who would open it."""
    return _Pin()


@contextmanager
def pinned() -> Iterator[None]:
    """Keep BLAS at one thread: its own threads slow small factorisations a hundredfold."""
    pin = _pin(os.getpid())
    pin.hold()
    try:
        yield
    finally:
        pin.let_go()
