"""A kernel gives the same bits fresh from the compiler and loaded from the cache.

A process links all copies of a compiled function by name. One whose sums may be re-ordered exists
in as many versions as it has callers, and which of them a process runs would depend on what was
compiled there. Inlined, it has no name to be linked by.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

MODULES = [
    "malocate.confidence.betting",
    "malocate.estimators.effects",
    "malocate.estimators.engine.kernels",
    "malocate.estimators.engine.lines",
    "malocate.estimators.engine.momentum",
    "malocate.estimators.engine.products",
    "malocate.estimators.engine.tall",
    "malocate.estimators.engine.tiles",
    "malocate.estimators.engine.transpose",
    "malocate.estimators.engine.turns",
]

DECIDE = """
import sys
from pathlib import Path
from crowd import undisturbed
print(*undisturbed(Path(sys.argv[1])), sep="\\n")
"""


def kernels(module: str) -> Iterator[Dispatcher]:
    for found in vars(import_module(module)).values():
        if isinstance(found, Dispatcher):
            yield found


def called(kernel: Dispatcher) -> Iterator[Dispatcher]:
    for name in kernel.py_func.__code__.co_names:
        found = kernel.py_func.__globals__.get(name)
        if isinstance(found, Dispatcher):
            yield found


@pytest.mark.parametrize("module", MODULES)
def test_what_may_reorder_and_is_called_is_inlined(module):
    assert list(kernels(module))
    for kernel in kernels(module):
        for helper in called(kernel):
            options = helper.targetoptions
            assert options.get("forceinline") or not options.get("fastmath"), helper


def test_no_module_with_kernels_is_forgotten():
    source = Path(import_module("malocate").__file__).parent
    compiled = [file for file in source.rglob("*.py") if "@njit" in file.read_text("utf-8")]
    names = [".".join(file.relative_to(source.parent).with_suffix("").parts) for file in compiled]
    assert sorted(names) == MODULES


@pytest.mark.slow
def test_fresh_and_cached_kernels_decide_alike(tmp_path):
    def decided(name: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", DECIDE, str(folder)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert decided("fresh") == decided("cached") != ""
