"""BLAS at one thread inside fits: its own threads slow small factorisations a hundredfold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any
from weakref import WeakSet

import threadpoolctl


@cache
def _libraries() -> list[Any]:
    import_module("scipy.linalg")  # its BLAS is a library of its own, found only when loaded
    controller = threadpoolctl.ThreadpoolController()
    return list(controller.select(user_api="blas").lib_controllers)


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


class _Holder:
    """Who wants BLAS at one thread; forgotten if an interrupt kept it from letting go."""


class _Pin:
    """BLAS at one thread for as long as somebody holds it.

    The number is the whole process's: the first to come sets it, and the last to go sets it back.
    """

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), WeakSet[_Holder]()
        self._before: list[int] = []  # what each library is to be set back to

    def hold(self, holder: _Holder) -> None:
        """Set the number, by every holder anew: it lasts wherever an interrupt strikes."""
        with self._lock, _open_to_all():
            self._holders.add(holder)
            self._before = self._before or [each.num_threads for each in _libraries()]
            for library in _libraries():
                library.set_num_threads(1)

    def let_go(self, holder: _Holder) -> None:
        with self._lock, _open_to_all():
            self._holders.discard(holder)
            if self._holders:
                return
            for library, number in zip(_libraries(), self._before, strict=False):
                library.set_num_threads(number)
            self._before = []


@cache
def _pin(_process: int) -> _Pin:
    """Keep one per process: a forked child inherits a lock, but not who would open it."""
    return _Pin()


@contextmanager
def pinned() -> Iterator[None]:
    """Keep BLAS at one thread: its own threads slow small factorisations a hundredfold."""
    pin, holder = _pin(os.getpid()), _Holder()
    try:
        pin.hold(holder)  # whoever is interrupted here has it or not
        yield
    finally:
        pin.let_go(holder)
