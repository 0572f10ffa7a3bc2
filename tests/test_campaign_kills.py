"""Nothing acknowledged is lost by kill −9, wherever it falls, and the campaign goes on the same.

SIGKILL ends a process between any two instructions; it does not test the loss of power.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from crowd import (
    SECONDS,
    Death,
    Worker,
    acknowledged,
    answer,
    create,
    decisions,
    kept,
    lines_of,
    process,
    undisturbed,
)
from databases import database, server

PLANNING = "planner_until"  # in the statement by which a planner takes its lease
FEW, MANY, TURNS = 10, 22, 5


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[str]:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


def check(url: str, file: Path, kills: int) -> None:
    """See that what was acknowledged is there once, and at most one answer a kill beyond that."""
    found, promised = kept(url), acknowledged(file)
    assert promised.items() <= found.items()
    assert len(found) - len(promised) <= kills
    assert all(value == answer(*draw) for draw, value in found.items())


def finish(url: str, file: Path, expected: list[str], kills: int) -> None:
    """See that a process goes on to the end, with the decisions of one that nobody disturbed."""
    last = process(Worker(url, file))
    last.join(timeout=SECONDS)
    assert last.exitcode == 0
    assert decisions(url) == expected
    check(url, file, kills)


def killed_at(url: str, file: Path, deaths: list[Death]) -> int:
    """Kill one process after the other at a boundary; count those that got so far."""
    killed = 0
    for death in deaths:
        victim = process(Worker(url, file, death=death, batch=1 + death.at % 4))
        victim.join(timeout=SECONDS)
        assert victim.exitcode in (0, -signal.SIGKILL)
        killed += victim.exitcode != 0
        check(url, file, killed)
    return killed


def at_boundaries(count: int) -> list[Death]:
    """Give deaths while opening, asking, telling and planning, and anywhere later."""
    early = [Death(place) for place in range(1, count // 2 + 1)]
    planning = [Death(1 + 3 * place, PLANNING) for place in range(count // 4)]
    rng = random.Random(count)
    later = [Death(rng.randrange(20, 90)) for _ in range(count - len(early) - len(planning))]
    mixed = [*early, *planning, *later]
    rng.shuffle(mixed)
    return mixed


def at_work(url: str, file: Path, rng: random.Random, *, stays: bool = True) -> Any:
    """Give a process that has begun, or has got on by a few lines, a few milliseconds later."""
    before, more = len(lines_of(file)), rng.choice([0, 1, 2, 4, 6])
    begun = process(Worker(url, file, batch=2, stays=stays))
    while more and begun.is_alive() and len(lines := lines_of(file)) < before + more:
        if lines and lines[-1].startswith("over"):
            break
        time.sleep(0.001)
    time.sleep(rng.uniform(0.0, 0.005 if more else 0.1))
    return begun


def killed_at_times(url: str, file: Path, count: int, seed: int = 5) -> None:
    """Kill one process after the other after a while."""
    rng = random.Random(seed)
    for kills in range(1, count + 1):
        victim = at_work(url, file, rng)
        os.kill(victim.pid, signal.SIGKILL)
        victim.join(timeout=SECONDS)
        assert victim.exitcode == -signal.SIGKILL
        check(url, file, kills)


def test_killed_at_statements(url, tmp_path, expected):
    create(url)
    assert killed_at(url, tmp_path / "told", at_boundaries(FEW)) == FEW
    finish(url, tmp_path / "told", expected, FEW)


def test_killed_at_any_time(url, tmp_path, expected):
    create(url)
    killed_at_times(url, tmp_path / "told", FEW)
    finish(url, tmp_path / "told", expected, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(TURNS))
def test_killed_at_many_statements(url, tmp_path, expected, turn):
    create(url)
    deaths = at_boundaries(TURNS * MANY)[turn::TURNS]
    assert killed_at(url, tmp_path / "told", deaths) >= 0.9 * MANY
    finish(url, tmp_path / "told", expected, MANY)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(TURNS))
def test_killed_at_any_of_many_times(url, tmp_path, expected, turn):
    create(url)
    killed_at_times(url, tmp_path / "told", MANY, turn)
    finish(url, tmp_path / "told", expected, MANY)


def test_a_death_would_be_noticed(url, tmp_path):
    """The boundaries are there: a process dies at each of the first, without having told."""
    create(url)
    victim = process(Worker(url, tmp_path / "told", death=Death(1)))
    victim.join(timeout=SECONDS)
    assert victim.exitcode == -signal.SIGKILL
    assert kept(url) == acknowledged(tmp_path / "told") == {}


@pytest.mark.slow
def test_the_server_itself_is_killed(tmp_path, expected):
    rng, told = random.Random(3), tmp_path / "told"
    folder = Path(tempfile.mkdtemp()) / "postgresql"
    with server(folder) as postgresql, database(postgresql.get_uri()) as url:
        create(url)
        for kills in range(1, 21):
            worker = at_work(url, told, rng, stays=False)
            kill_server(postgresql)
            worker.join(timeout=SECONDS)
            postgresql.ensure_postgres_running()
            check(url, told, kills)
        finish(url, told, expected, 20)


def kill_server(postgresql) -> None:
    """Kill all processes of a server at once."""
    main = psutil.Process(postgresql.get_pid())
    everyone = [main, *main.children(recursive=True)]
    for each in everyone:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(everyone, timeout=30)
