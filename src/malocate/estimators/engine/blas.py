"""BLAS at one thread inside fits: its own threads slow small factorisations a hundredfold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

import threadpoolctl


@cache
def _controller() -> threadpoolctl.ThreadpoolController:
    import_module("scipy.linalg")  # its BLAS is a library of its own, found only when loaded
    return threadpoolctl.ThreadpoolController()


@contextmanager
def _open_to_all() -> Iterator[None]:
    """Let this thread set the number, and any other after it.

    From threadpoolctl 3.8 on, OpenBLAS obeys the first thread alone that ever set its number, and
    says nothing to the others.
    """
    blas = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(blas, "clear_controlling_thread", lambda **_: None)
    clear(force=True)
    try:
        yield
    finally:
        clear(force=True)


class _Pin:
    """BLAS at one thread for as long as somebody holds it.

    The number is the whole process's: the first to come sets it, and the last to go sets it back.
    """

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), set[object]()
        self._limit: Any = None

    def hold(self, holder: object) -> None:
        with self._lock:
            self._holders.add(holder)
            if self._limit is None:
                with _open_to_all():
                    self._limit = _controller().limit(limits=1, user_api="blas")

    def let_go(self, holder: object) -> None:
        with self._lock:
            self._holders.discard(holder)
            if not self._holders and self._limit is not None:
                with _open_to_all():
                    self._limit.restore_original_limits()
                self._limit = None


@cache
def _pin(_process: int) -> _Pin:
    """Keep one per process: a forked child inherits a lock, but not who would open it."""
    return _Pin()


@contextmanager
def pinned() -> Iterator[None]:
    """Keep BLAS at one thread: its own threads slow small factorisations a hundredfold."""
    pin, holder = _pin(os.getpid()), object()
    try:
        pin.hold(holder)  # whoever is interrupted here has it or not
        yield
    finally:
        pin.let_go(holder)
