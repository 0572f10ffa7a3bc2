"""Threads inside a fit: the same bits for any number, also in a forked child."""

from __future__ import annotations

import multiprocessing
import threading
import time

import numba
import numpy as np
import pytest

from malocate import (
    LowRankLeastSquares,
    SoftImpute,
    SquareRootLasso,
    Synthetic,
)
from malocate.estimators.engine import orthogonal, spectrum, threads, turns
from malocate.estimators.engine import tall as tall_products
from malocate.estimators.engine.atomics import swap
from malocate.estimators.engine.kernels import _room
from malocate.estimators.engine.products import move_lines
from malocate.problem import grouping


@pytest.fixture
def two_threads(monkeypatch):
    """Hand out even small sweeps, to two threads, whatever the machine has.

    The helper is a new one: another test's may be falling asleep, and would not hear the call.
    """
    monkeypatch.setattr(threads, "TEAMS", {})
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(threads, "_threads", lambda: 2)


SOFT = SoftImpute(0.5)


def fitted_matrix(estimator=SOFT):
    answers = Synthetic.low_rank(shape=(80, 60), rank=3, rng=0).observe(1500, rng=1)
    return estimator.fit(answers).dense()


@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize("estimator", [SOFT, SoftImpute(5.0), LowRankLeastSquares()])
def test_two_threads_give_the_same_bits_as_one(estimator, tall, monkeypatch, two_threads):
    if tall:  # as matrices of many lines are
        monkeypatch.setattr(tall_products, "ROWS", 16)
        monkeypatch.setattr(orthogonal, "TALL", 40)
        monkeypatch.setattr(spectrum, "SMALL", 0)
    several = fitted_matrix(estimator)
    monkeypatch.setattr(threads, "_threads", lambda: 1)
    assert np.array_equal(several, fitted_matrix(estimator))


def test_tall_products_are_those_of_whole_matrices_for_any_number_of_threads(
    monkeypatch, two_threads
):
    rng = np.random.default_rng(0)
    tall, other, small = (rng.standard_normal(s) for s in ((3000, 7), (3000, 5), (7, 4)))
    found = tall_products.across(tall, other), tall_products.along(tall, small)
    np.testing.assert_allclose(found[0], tall.T @ other, atol=1e-10)
    np.testing.assert_allclose(found[1], tall @ small, atol=1e-12)
    monkeypatch.setattr(threads, "_threads", lambda: 1)
    assert np.array_equal(found[0], tall_products.across(tall, other))
    assert np.array_equal(found[1], tall_products.along(tall, small))


def line_by_line(do):
    """Make work that does something with every line, and is told whether it is the caller's."""

    def work(given):
        for line in turns.lines_of(given):
            do(line, len(given.helpers) > 0)

    return work


LINES = np.array([0, 5, 5, 5, 90, 91, 100])


def test_every_line_is_worked_on_once(two_threads):
    seen = np.zeros(6, dtype=int)

    def do(line, _):
        seen[line] += 1

    threads.spread(line_by_line(do), LINES, 1)
    assert seen.tolist() == [1] * 6


@pytest.mark.parametrize("count", [2, 5])  # five are more than there are cores
def test_every_line_of_many_sweeps_is_worked_on_once(count, monkeypatch, two_threads):
    """Helpers called awake, falling asleep, asleep and late."""
    monkeypatch.setattr(threads, "_threads", lambda: count)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        lines = int(rng.integers(1, 300))
        indptr, order = 10 * np.arange(lines + 1), rng.permutation(10 * lines)
        made = np.full(10 * lines, -1)

        def work(given, indptr=indptr, order=order, made=made):
            move_lines(indptr, order, np.arange(len(order)), given, made)

        threads.spread(work, indptr, 1)
        assert np.array_equal(made, order)
        time.sleep(rng.choice([0.0, 1e-5, 1e-4, 5e-4]))


def share_with_a_helper():
    """Do work that takes both: neither goes on to the next run before the other has one."""
    helped, both = [], threading.Barrier(2, timeout=60)

    def do(_, is_caller):
        both.wait()
        helped.append(not is_caller)

    threads.spread(line_by_line(do), np.array([0, 10, 20]), 1)
    assert sorted(helped) == [False, True]


def sleep_until_the_helper(state):
    until = time.monotonic() + 60
    while threads._team(1).states[0] != state:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_a_helper_takes_part_awake_and_asleep(monkeypatch, two_threads):
    monkeypatch.setattr(threads, "LOOKS", 20_000_000)  # no call comes while it falls asleep
    share_with_a_helper()
    sleep_until_the_helper(turns.WAITING)
    share_with_a_helper()
    sleep_until_the_helper(turns.ASLEEP)
    share_with_a_helper()


def test_helpers_who_wait_are_called_from_inside_the_kernel():
    states = np.full(2 * turns.APART, turns.WAITING)
    states[turns.APART] = turns.ASLEEP
    next(turns.lines_of(turns.Turns(np.array([0, 0, 1]), states)))
    assert states[:: turns.APART].tolist() == [turns.CALLED, turns.ASLEEP]


@numba.njit(nogil=True)
def called(state, times):
    """Call so many times whoever waits, and give how often somebody did."""
    return sum([swap(state, 0, turns.WAITING, turns.CALLED) for _ in range(times)])


def test_no_call_is_lost_by_who_falls_asleep():
    state, total = np.array([turns.ASLEEP]), 0
    called(state, 1)
    for _ in range(20):  # on a busy core, next to none
        heard, times = [], []
        caller = threading.Thread(target=lambda times=times: times.append(called(state, 5_000_000)))
        caller.start()
        while caller.is_alive():
            heard.append(turns.is_called(state, 10))
        if state[0] == turns.CALLED:
            heard.append(True)  # after the last look
        assert sum(heard) == times[0]
        state[0], total = turns.ASLEEP, total + times[0]
        if total > 200_000:
            break
    assert total > 0


def test_the_caller_waits_for_who_is_at_the_last_line(two_threads):
    both, done = threading.Barrier(2, timeout=60), threading.Event()
    finished = []

    def do(line, is_caller):
        both.wait()
        if not is_caller:
            done.wait(60)
        finished.append(line)

    caller = threading.Thread(
        target=threads.spread, args=(line_by_line(do), np.array([0, 10, 20]), 1)
    )
    caller.start()
    while caller.is_alive() and not finished:
        time.sleep(0.01)
    caller.join(0.3)
    assert caller.is_alive()
    assert len(finished) == 1
    done.set()
    caller.join(60)
    assert len(finished) == 2
    assert threads._team(1).job is None  # which would keep the arrays alive


def test_what_is_left_when_the_caller_fails_is_left_alone(two_threads):
    both, failed = threading.Barrier(2, timeout=60), threading.Event()
    seen = []

    def do(line, is_caller):
        seen.append(line)
        if is_caller:
            both.wait()
            failed.set()
            raise RuntimeError("broken line")
        if len(seen) <= 2:
            both.wait()
            failed.wait(60)
            time.sleep(0.1)  # the caller is past its error by then

    with pytest.raises(RuntimeError, match="broken line"):
        threads.spread(line_by_line(do), LINES, 1)
    assert 5 not in seen


def test_who_finds_the_helpers_taken_works_alone(two_threads):
    seen = []

    def inner(line, is_shared):
        seen.append((line, is_shared))

    def outer(*_):
        threads.spread(line_by_line(inner), LINES, 1)

    threads.spread(line_by_line(outer), np.array([0, 100]), 1)
    assert seen == [(line, False) for line in range(6)]


@pytest.mark.parametrize("count", [2, 3, 64])
@pytest.mark.parametrize("least", [0.0, 100.0, 1e9])
def test_runs_become_shorter_and_leave_nothing_out(count, least):
    runs = turns.cut(np.arange(0, 100_001, 10), count, least)
    assert (runs[0], runs[1], runs[-1]) == (0, 0, 10_000)
    lengths = np.diff(runs[1:])
    assert (lengths > 0).all()
    assert (np.diff(lengths) <= 1).all()  # but for rounding to whole lines
    assert lengths[0] < 10_000 / count or len(lengths) == count  # something is left for the quicker
    assert len(lengths) <= 10 * count


def test_runs_are_never_empty(two_threads):
    assert turns.cut(LINES, 64, 0.0).tolist()[1:] == [0, 1, 4, 5, 6]


@pytest.mark.parametrize(("cost", "count"), [(1, 1), (2, 2), (3, 2), (5, 3), (10**9, 5)])
def test_there_are_no_more_threads_than_the_work_is_worth(cost, count, monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 200)
    monkeypatch.setattr(threads, "_threads", lambda: 5)
    seen = []

    def work(given):
        seen.append(1 + len(given.helpers) // turns.APART)
        list(turns.lines_of(given))

    threads.spread(work, LINES, cost)
    assert max(seen) == count  # helpers, who may come first, are given none


@pytest.mark.parametrize("whose", ["caller", "helper"])
def test_an_error_reaches_the_caller_and_the_helpers_go_on(whose, two_threads):
    both = threading.Barrier(2, timeout=60)

    def broken(_, is_caller):
        both.wait()
        if is_caller == (whose == "caller"):
            raise RuntimeError("broken line")

    with pytest.raises(RuntimeError, match="broken line"):
        threads.spread(line_by_line(broken), np.array([0, 10, 20]), 1)
    sleep_until_the_helper(turns.ASLEEP)
    share_with_a_helper()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_rows_of_whole_vectors_begin_where_cache_lines_do(precision):
    like, lane = np.empty(0, precision), 64 // np.dtype(precision).itemsize
    for rows, width in ((4, lane), (12, 5 * lane), (7, 33 * lane)):
        room = _room(rows, width, like)
        assert (room.shape, room.dtype) == ((rows, width), precision)
        assert all(row.ctypes.data % 64 == 0 for row in room)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_fit_after_its_parent_did(two_threads):
    here = fitted_matrix()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        there = pool.apply_async(fitted_matrix).get(timeout=60)
    assert np.array_equal(here, there)


@pytest.mark.parametrize(("cores", "count"), [(8, 7), (7, 7), (2, 2)])
def test_the_number_of_threads_is_numbas_but_no_more_than_cores(cores, count, monkeypatch):
    monkeypatch.setattr(numba, "get_num_threads", lambda: 7)
    monkeypatch.setattr(threads, "_cores", lambda: cores)
    assert threads._threads() == count


def test_work_in_threads_is_shared_and_comes_back_in_order(two_threads):
    met = threading.Barrier(2, timeout=10)

    def meet(item):
        met.wait()  # nobody passes alone
        return item, threading.get_ident()

    found = threads.in_threads(meet, iter([3, 1]))
    assert [item for item, _ in found] == [3, 1]
    assert len({thread for _, thread in found}) == 2


@pytest.mark.parametrize(("count", "items"), [(1, [3, 1, 2]), (2, [3]), (2, [])])
def test_work_for_one_thread_is_done_by_the_caller(count, items, monkeypatch):
    monkeypatch.setattr(threads, "_threads", lambda: count)
    found = threads.in_threads(lambda item: (item, threading.get_ident()), items)
    assert found == [(item, threading.get_ident()) for item in items]


@pytest.mark.parametrize("whose", ["caller", "helper"])
def test_an_error_in_a_thread_reaches_the_caller_and_nobody_goes_on(whose, two_threads):
    both, done, here = threading.Barrier(2, timeout=60), [], threading.get_ident()

    def work(item):
        if item < 2:
            both.wait()
            if (threading.get_ident() == here) == (whose == "caller"):
                raise ZeroDivisionError
            time.sleep(0.2)
        done.append(item)

    with pytest.raises(ZeroDivisionError):
        threads.in_threads(work, range(100))
    assert len(done) == 1
    sleep_until_the_helper(turns.ASLEEP)  # who is just falling asleep hears no call
    share_with_a_helper()


def test_work_in_threads_inside_such_work_is_done_by_each_alone(two_threads):
    def outer(item):
        return threads.in_threads(lambda inner: (item, inner), [1, 2, 3])

    found = threads.in_threads(outer, range(4))
    assert found == [[(item, inner) for inner in (1, 2, 3)] for item in range(4)]


def test_where_no_thread_can_be_had_the_caller_does_it_all(monkeypatch, two_threads):
    def refused(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    seen = []
    threads.spread(line_by_line(lambda line, _: seen.append(line)), LINES, 1)
    assert seen == [0, 1, 2, 3, 4, 5]
    assert threads.in_threads(abs, [-1, -2]) == [1, 2]


class Interrupted(list):
    """Struck by Ctrl-C as soon as something is in it."""

    def append(self, item):
        super().append(item)
        raise KeyboardInterrupt


def test_an_interrupt_before_the_work_leaves_the_helpers_free(two_threads):
    team = threads._team(1)
    team.queue = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        threads.spread(line_by_line(lambda *_: None), LINES, 1)
    assert team.queue == []


def test_an_interrupt_in_the_work_leaves_the_helpers_free(two_threads):
    both = threading.Barrier(2, timeout=60)

    def interrupted(_, is_caller):
        both.wait()
        if is_caller:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.spread(line_by_line(interrupted), np.array([0, 10, 20]), 1)
    sleep_until_the_helper(turns.ASLEEP)
    share_with_a_helper()


@pytest.mark.parametrize("estimator", [SOFT, LowRankLeastSquares(), SquareRootLasso(C=1.0)])
def test_a_fit_groups_answers_in_its_threads(estimator, monkeypatch, two_threads):
    monkeypatch.setattr(grouping, "_BLOCK", 300)
    workers, fill = set(), grouping.Group.fill

    def noted(*given):
        workers.add(threading.get_ident())
        time.sleep(0.01)  # time for the other to come
        fill(*given)

    monkeypatch.setattr(grouping.Group, "fill", noted)
    fitted_matrix(estimator)
    assert len(workers) == 2


def test_helpers_find_their_kernels_compiled(monkeypatch, two_threads):
    """Numba puts another sys.stdout in place while it compiles: what others print may be lost."""
    fresh = numba.njit(turns.is_called.py_func)
    monkeypatch.setattr(threads, "is_called", fresh)
    threads._team(1)
    compiled = list(fresh.signatures)
    share_with_a_helper()
    sleep_until_the_helper(turns.ASLEEP)
    assert len(compiled) == 1
    assert fresh.signatures == compiled
