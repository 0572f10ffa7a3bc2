"""Where work is done changes no bit of it, and a worker that dies takes nothing with it."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import Counter
from functools import partial

import distributed.versions
import numpy as np
import pytest
from clusters import Killer, cluster, compute_on
from compute_tasks import (
    Counted,
    always_dies,
    dies_once,
    double,
    fails,
    fails_slowly,
    fails_with_a_lock,
    faults,
    handed_on,
    late,
    noted,
    slow,
    threads,
    with_bound,
)
from joblib import parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

from malocate import (
    Band,
    Batches,
    Compute,
    ComputeError,
    Design,
    InvalidInput,
    InvalidType,
    LowRankLeastSquares,
    Segment,
    SoftImpute,
    Synthetic,
    error_band,
    simulate,
)
from malocate.compute import forget
from malocate.estimators.engine.blas import pinned
from malocate.experiments.compare import compare


@pytest.fixture(scope="module")
def dask_cluster():
    with cluster() as made:
        yield made


@pytest.fixture(scope="module", params=["here", "threads", "processes", "dask", "joblib"])
def compute(request):
    """Give every place where work can be done."""
    if request.param == "joblib":
        with parallel_config("threading", n_jobs=2):
            yield Compute()
        return
    if request.param == "dask":
        yield compute_on(request.getfixturevalue("dask_cluster"))
        return
    yield Compute(jobs=1) if request.param == "here" else Compute(jobs=2, by=request.param)


def survey(**settings) -> tuple[Design, dict[str, Synthetic]]:
    sources = {
        "north": Synthetic.low_rank((30, 20), rank=1, rng=0),
        "south": Synthetic.low_rank((30, 20), rank=4, rng=1),
    }
    segments = [source.segment(name) for name, source in sources.items()]
    told = {"estimator": SoftImpute(2.0), "schedule": Batches(size=200, first=300)} | settings
    return Design(segments, budget=1_200, **told), sources


def test_results_come_in_the_order_of_their_tasks(compute):
    assert compute.map(double, range(7)) == [0, 2, 4, 6, 8, 10, 12]
    assert compute.map(double, []) == []
    assert sorted(compute.each(double, range(7), ordered=False)) == [0, 2, 4, 6, 8, 10, 12]


def test_what_a_partial_binds_is_shared(compute):
    assert compute.map(partial(with_bound, "abc"), [1, 2, 3]) == [(3, 1), (3, 2), (3, 3)]


def test_a_task_that_fails_says_why(compute):
    with pytest.raises(ValueError, match="task 2 is wrong"):
        compute.map(fails, range(5))


def test_an_error_that_looks_like_a_lost_worker_is_the_tasks_own(compute):
    with pytest.raises(TimeoutError, match="task 2 was late"):
        compute.map(late, range(5))


def test_tasks_of_tasks_are_done_in_place(compute):
    found = compute.map(partial(handed_on, compute), range(4))  # or they would wait for each other
    assert found == [[0, 2], [2, 4], [4, 6], [6, 8]]


def test_classes_that_no_module_holds_travel(compute):
    class Own:
        def __len__(self) -> int:
            return 5

    assert compute.map(partial(with_bound, Own()), [1, 2]) == [(5, 1), (5, 2)]


def judged(**settings) -> Band:
    seen = Synthetic.ratings((40, 30), rank=2, rng=0).observe(1_500, rng=1)
    return error_band(LowRankLeastSquares(rank=2, ridge=1.0), seen, **settings)


def test_a_band_is_the_same_to_the_bit(compute):
    here, there = judged(), judged(map=compute.map)
    assert (there.upper, there.estimate, there.se) == (here.upper, here.estimate, here.se)
    for one, two in zip(there.ensemble.members, here.ensemble.members, strict=True):
        assert np.array_equal(one.left, two.left)
        assert np.array_equal(one.right, two.right)


def test_a_campaign_is_the_same_to_the_bit(compute):
    design, sources = survey()
    here, there = simulate(design, sources), simulate(design, sources, compute=compute)
    assert there.frame().equals(here.frame())
    assert there.stop == here.stop


def test_a_comparison_is_the_same_to_the_bit(compute):
    design, sources = survey()
    here, there = (
        compare(design, sources, most=2),
        compare(design, sources, compute=compute, most=2),
    )
    assert there.run.frame().equals(here.run.frame())
    assert there.rival.frame().equals(here.rival.frame())


def test_a_design_says_where(dask_cluster):
    design, sources = survey(compute=compute_on(dask_cluster))
    plain, _ = survey()
    assert design == plain  # it decides nothing
    assert Design.from_toml(design.to_toml()).compute == design.compute
    assert Design.from_json(design.to_json()).compute == design.compute
    assert "compute" not in plain.to_toml()
    assert simulate(design, sources).frame().equals(simulate(plain, sources).frame())


def test_who_is_done_first_does_not_unpin_the_others():
    first, second = pinned(), pinned()
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.mark.parametrize("by", ["threads", "processes"])
def test_a_task_has_one_thread(by):
    for kernels, blas, inner in Compute(jobs=2, by=by).map(threads, range(4)):
        assert kernels == 1
        assert set(blas) <= {1}
        assert inner == 1


def test_a_task_on_a_cluster_has_one_thread(dask_cluster):
    for kernels, blas, inner in compute_on(dask_cluster).map(threads, range(4)):
        assert kernels == 1
        assert set(blas) <= {1}
        assert inner == 1


def test_workers_keep_memory_from_one_task_to_the_next(dask_cluster):
    found = compute_on(dask_cluster).map(faults, range(8))
    assert min(found) < 2_000  # of 9,800 pages


def test_joblibs_own_settings_reach_a_cluster(dask_cluster):
    from distributed import Client

    with (
        Client(dask_cluster, set_as_default=False) as client,
        parallel_config("dask", client=client),
    ):
        assert Compute().workers == 2
        assert Compute().map(double, range(3)) == [0, 2, 4]


def test_data_goes_to_a_worker_once(dask_cluster, tmp_path):
    bound = Counted(tmp_path / "loads")
    compute_on(dask_cluster).map(partial(with_bound, bound), range(40))
    loads = Counter((tmp_path / "loads").read_text().split())
    del loads[str(os.getpid())]  # it is hashed here, to be known again
    assert 1 <= len(loads) <= 2
    assert set(loads.values()) == {1}


@pytest.mark.slow
def test_a_cluster_keeps_nothing(dask_cluster, tmp_path):
    compute = compute_on(dask_cluster)
    compute.map(double, range(5))
    assert _emptied(dask_cluster)
    started = compute.each(partial(noted, str(tmp_path)), range(200))
    assert next(started) == 0
    started.close()
    assert _emptied(dask_cluster)
    with pytest.raises(ValueError, match="task 2 is wrong") as kept:
        compute.map(fails, range(5))
    assert _emptied(dask_cluster)
    with pytest.raises(TimeoutError, match="task 2 was late") as kept_too:
        compute.map(late, range(5))
    assert _emptied(dask_cluster)
    assert kept.tb is not None  # as a notebook keeps the last error, and all that it knows of
    assert kept_too.tb is not None
    assert len(list(tmp_path.iterdir())) < 200  # what was not wanted was not done


def test_what_was_done_beside_a_task_that_fails_is_not_lost(dask_cluster):
    done = compute_on(dask_cluster).each(fails_slowly, range(5), ordered=False)
    found = [next(done)]
    time.sleep(1.0)  # all are done by now, and are fetched together
    with pytest.raises(ValueError, match="task 2 is wrong"):
        found.extend(done)
    assert sorted(found) == [0, 1, 3, 4]


def test_many_tasks_go_to_a_cluster_in_bundles(dask_cluster):
    before = dask_cluster.scheduler.n_tasks
    assert compute_on(dask_cluster).map(double, range(300)) == list(range(0, 600, 2))
    assert 16 <= dask_cluster.scheduler.n_tasks - before <= 24  # of 16 tasks at most, and one more


def test_what_a_bundle_did_before_a_task_that_fails_is_not_lost(dask_cluster):
    done = compute_on(dask_cluster).each(fails, range(300))
    assert [next(done), next(done)] == [0, 1]
    with pytest.raises(ValueError, match="task 2 is wrong") as raised:
        next(done)
    assert "compute_tasks.py" in raised.value.__notes__[0]


def test_an_error_that_cannot_travel_is_told_from_inside_a_bundle(dask_cluster):
    with pytest.raises(Exception, match="task 2 is locked"):
        compute_on(dask_cluster).map(fails_with_a_lock, range(300))


def test_a_scheduler_that_is_not_there_costs_no_threads(monkeypatch):
    monkeypatch.setattr("malocate.compute.cluster.PATIENCE", 0.2)
    counts = []
    for _ in range(4):
        with pytest.raises(ComputeError, match="No Dask scheduler answers"):
            Compute(dask="tcp://127.0.0.1:1").map(double, range(3))
        counts.append(threading.active_count())
    assert counts[0] == counts[-1]


def _emptied(dask_cluster) -> bool:
    """Whether the scheduler soon knows of no task."""
    deadline = time.monotonic() + 20
    while dask_cluster.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    return not dask_cluster.scheduler.tasks


def test_a_worker_that_dies_is_replaced(dask_cluster, tmp_path):
    work = partial(dies_once, str(tmp_path / "dead"))
    assert compute_on(dask_cluster).map(work, range(12)) == list(range(12))
    assert (tmp_path / "dead").exists()


def test_a_process_that_dies_is_replaced(tmp_path):
    work = partial(dies_once, str(tmp_path / "dead"))
    assert Compute(jobs=2).map(work, range(12)) == list(range(12))
    assert (tmp_path / "dead").exists()


@pytest.mark.slow
def test_work_that_kills_every_worker_ends_with_a_sentence():
    with pytest.raises(ComputeError, match=r"handed out 5 times.*a worker died.*memory"):
        Compute(jobs=2).map(always_dies, range(3))


@pytest.mark.slow
def test_results_are_the_same_while_workers_are_killed(dask_cluster):
    work, tasks = partial(slow, 0.15), range(40)
    with Killer(dask_cluster, within=1.0, deaths=3) as killer:
        assert compute_on(dask_cluster).map(work, tasks) == list(tasks)
    assert killer.killed >= 1


@pytest.mark.slow
def test_a_campaign_is_the_same_while_workers_are_killed():
    design, sources = survey(estimator=LowRankLeastSquares(), schedule=Batches(size=60, first=300))
    here = simulate(design, sources, compute=Compute(jobs=2))
    for seed in range(3):
        with cluster() as made, Killer(made, within=3.0, deaths=6, seed=seed) as killer:
            there = simulate(design, sources, compute=compute_on(made))
        assert there.frame().equals(here.frame())
        assert killer.killed >= 2


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"jobs": 0}, InvalidInput, "jobs is 0; it must be at least 1, or -1 for all cores."),
        ({"jobs": "two"}, InvalidType, "jobs is 'two'; it must be a whole number"),
        ({"by": "magic"}, InvalidInput, "by is 'magic'; it must be 'processes' or 'threads'."),
        ({"dask": "here:8786"}, InvalidInput, "dask is 'here:8786'; it must be an address"),
        ({"dask": 8786}, InvalidType, "dask is 8786; it must be an address"),
        ({"dask": "tcp://a:1", "jobs": 2}, InvalidInput, "give one of them"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, kind, words):
    with pytest.raises(kind, match=words):
        Compute(**settings)


def test_a_design_takes_no_other_compute():
    with pytest.raises(InvalidType, match="compute is 2; it must be a Compute"):
        Design([Segment("north", (4, 3))], budget=100, compute=2)


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("malocate.compute.cluster.PATIENCE", 0.2)
    with pytest.raises(ComputeError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:1 "):
        Compute(dask="tcp://127.0.0.1:1").map(double, [1])


@pytest.mark.parametrize("address", ["tls://127.0.0.1:1", "foo://a:1", "tcp://a", "tcp://::1:3"])
def test_addresses_of_nothing_are_named(address, monkeypatch):
    monkeypatch.setattr("malocate.compute.cluster.PATIENCE", 0.2)
    with pytest.raises(ComputeError, match=f"No Dask scheduler answers at {address} "):
        Compute(dask=address).map(double, [1])


def test_a_cluster_with_another_version_is_refused(dask_cluster, monkeypatch):
    forget(dask_cluster.scheduler_address)
    known = distributed.versions._version_cached
    told = lambda name: "99.1" if name == "malocate" else known(name)  # noqa: E731
    monkeypatch.setattr("distributed.versions._version_cached", told)
    with pytest.raises(ComputeError, match=r"tcp://.* has malocate .* this is malocate 99\.1;"):
        compute_on(dask_cluster).map(double, [1])


def test_settings_travel():
    made = Compute(jobs=3, by="threads")
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_cluster_without_workers_is_named(monkeypatch):
    monkeypatch.setattr("malocate.compute.cluster.PATIENCE", 2.0)
    with cluster(workers=0) as made, pytest.raises(ComputeError, match="has had no worker for 2"):
        compute_on(made).map(double, [1, 2])
