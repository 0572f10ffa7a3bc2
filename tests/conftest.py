"""Settings that every test shares."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from databases import database, shared_server
from hypothesis import HealthCheck, settings

# One BLAS thread per test process: with two workers on two cores, more only fight each other.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Started in the background by a shell we ignore Ctrl-C, and so would programs that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with suppress(ValueError):  # not the main thread: it is left as it is
        signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiling a kernel in the first example would break a deadline; a fixed seed keeps CI repeatable.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("searching", settings.get_profile("repeatable"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """Give the address of a PostgreSQL server."""
    if sys.platform != "linux" and "MALOCATE_TEST_URL" not in os.environ:
        pytest.skip("the wheel with PostgreSQL is for Linux; set MALOCATE_TEST_URL")
    with shared_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the address of an empty database: an SQLite file, then one on PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/campaign.db"
        return
    with database(request.getfixturevalue("postgresql")) as found:
        yield found


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Give a way to run `malocate` in an empty folder, 80 columns wide."""
    from typer.testing import CliRunner

    from malocate.cli import app

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("MALOCATE_URL", raising=False)
    monkeypatch.chdir(tmp_path)

    def runs(*arguments: object, stdin: str | None = None) -> Any:
        return CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)

    return runs
