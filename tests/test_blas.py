"""BLAS has one thread inside fits, whichever thread they run in, and all of them after."""

from __future__ import annotations

import subprocess
import sys

LATER = """
from malocate.estimators.engine.blas import pinned
with pinned():
    import scipy.linalg
    from threadpoolctl import threadpool_info
    print(*[each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"])
"""

PINS = """
from contextlib import ExitStack, suppress
from threading import Thread
from unittest.mock import patch
import scipy.linalg
from threadpoolctl import threadpool_info
from malocate.estimators.engine import blas

def told(step):
    counts = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    print(step, *counts)

def elsewhere(work):
    thread = Thread(target=work)
    thread.start()
    thread.join()

def once(where):
    with blas.pinned():
        told(where)

told("free")
once("here")
told("free")
elsewhere(lambda: once("there"))
told("free")
first, second = blas.pinned(), blas.pinned()
first.__enter__()
elsewhere(second.__enter__)
first.__exit__(None, None, None)
told("shared")
elsewhere(lambda: second.__exit__(None, None, None))
told("free")

hold = blas._Pin.hold
def struck(*given):
    hold(*given)
    raise KeyboardInterrupt
with patch.object(blas._Pin, "hold", struck), suppress(KeyboardInterrupt), blas.pinned():
    pass
told("free")
def struck_before(*_):
    raise KeyboardInterrupt
with patch.object(blas._Pin, "let_go", struck_before), suppress(KeyboardInterrupt):
    once("here")
once("here")
told("free")
"""


ELSEWHERE = """
from threading import Thread
import numpy as np
from malocate import SoftImpute, Synthetic

answers = Synthetic.low_rank(shape=(150, 120), rank=4, noise=0.1, rng=0).observe(6000, rng=1)
fits = []

def fit():
    fits.append(SoftImpute("fancyimpute", tol=1e-4).fit(answers).dense())

fit()
thread = Thread(target=fit)
thread.start()
thread.join()
print(np.array_equal(*fits))
"""


def with_threads_for_blas(code, monkeypatch):
    """Run code in a process of its own, whose BLAS has two threads, and give what it prints."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_blas_has_one_thread_in_a_fit_of_any_thread_and_all_of_them_after_it(monkeypatch):
    """Also where the last to go is another thread than the first, and after an interrupt."""
    told = with_threads_for_blas(PINS, monkeypatch)
    free = told[0]
    assert told == [
        free,
        "here 1",
        free,
        "there 1",
        free,
        "shared 1",
        free,
        free,
        "here 1",
        "here 1",
        free,
    ]


def test_a_fit_in_another_thread_has_the_same_bits(monkeypatch):
    assert with_threads_for_blas(ELSEWHERE, monkeypatch) == ["True"]


def test_a_library_that_loads_later_is_pinned_as_well(monkeypatch):
    (told,) = with_threads_for_blas(LATER, monkeypatch)
    assert set(told.split()) == {"1"}
