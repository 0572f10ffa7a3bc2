"""Many at once: nobody sees an error, nothing is lent or told twice, the decisions are the same."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from crowd import (
    SECONDS,
    DeathInFit,
    Poller,
    Worker,
    acknowledged,
    clock,
    create,
    decisions,
    kept,
    lent,
    process,
    undisturbed,
)

from malocate import Campaign


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[str]:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


def run_crowd(url: str, folder: Path, size: int, batch: int) -> list[Path]:
    """Let so many processes ask and tell at once while somebody looks on."""
    files = [folder / f"told-{me}" for me in range(size)]
    poller = Poller(url)
    poller.start()
    assert poller.looking.wait(timeout=SECONDS), poller.problem
    workers = [
        process(Worker(url, file, who=f"tablet-{me}", batch=batch, together=size))
        for me, file in enumerate(files)
    ]
    for each in workers:
        each.join(timeout=SECONDS)
    poller.stop()
    assert [each.exitcode for each in workers] == [0] * size
    return files


def check_crowd(url: str, files: list[Path], expected: list[str]) -> None:
    got = lent(*files)
    assert len(got) == len(set(got))  # nothing ran out, so nothing is lent a second time
    assert kept(url) == acknowledged(*files)
    assert set(got) == set(kept(url))
    assert sum(bool(lent(file)) for file in files) > 1  # the crowd was one
    assert decisions(url) == expected


def test_a_crowd_decides_as_one(url, tmp_path, expected):
    create(url)
    check_crowd(url, run_crowd(url, tmp_path, 8, batch=2), expected)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_a_large_crowd_decides_as_one(url, tmp_path, batch):
    create(url, budget=600)
    files = run_crowd(url, tmp_path, 32, batch)
    check_crowd(url, files, undisturbed(tmp_path, budget=600))


def test_one_after_the_other_decides_as_one(url, tmp_path, expected):
    create(url)
    while True:
        worker = process(Worker(url, tmp_path / "told", most=37, batch=7))
        worker.join(timeout=SECONDS)
        assert worker.exitcode == 0
        with Campaign.open(url, clock=clock) as campaign:
            if campaign.status().state == "done":
                break
    assert decisions(url) == expected


def test_a_planner_killed_in_mid_fit_is_replaced(url, tmp_path, expected):
    create(url)
    victim = process(Worker(url, tmp_path / "told-victim", death=DeathInFit()))
    victim.join(timeout=SECONDS)
    assert victim.exitcode == -signal.SIGKILL
    with Campaign.open(url) as campaign:
        until = campaign.store.held(campaign.id).planner_until
    with Campaign.open(url, clock=lambda: until - 1) as campaign:  # before its lease is over
        assert campaign.status().planning
        assert campaign.plan() == "elsewhere"
        assert campaign.ask(who="somebody") == []
    check_crowd(url, run_crowd(url, tmp_path, 3, batch=2), expected)


def test_planners_at_once_plan_once(url, tmp_path, expected):
    create(url)
    answered = [tmp_path / f"told-{me}" for me in range(4)]
    workers = [process(Worker(url, file, who=file.name, batch=50, together=4)) for file in answered]
    for each in workers:
        each.join(timeout=SECONDS)
        assert each.exitcode == 0
    with Campaign.open(url, clock=clock) as campaign:
        kinds = [each.kind for each in campaign.store.events(campaign.id)]
    assert kinds.count("planned") == len(expected) - 2
    assert kinds.count("stopped") == 1
    assert decisions(url) == expected
