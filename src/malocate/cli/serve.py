"""`malocate serve`: the API, the pages and a planner over one database."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from malocate.cli.campaign.finding import VARIABLE, Where, address
from malocate.cli.computing import Dask, computing
from malocate.cli.showing import say
from malocate.compute import check_installed
from malocate.errors import Conflict, InvalidInput, MissingDependency, StoreError

if TYPE_CHECKING:
    from malocate.store import Store, Token

SECONDS_TO_FINISH = 10
COLLECT_AFTER = 10_000
"""New objects between two collections of garbage; Python's own is 700, made for small programs."""
LOOK_EVERY = 5.0
"""Seconds between two looks for campaigns that have no planner yet, or whose planner has died."""

OWNER = "owner of all"


def serve(
    where: Where = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to listen at.")] = 8000,
    public: Annotated[
        str | None,
        typer.Option(help="The address that people type, where a proxy is in front of it."),
    ] = None,
    open_to_all: Annotated[
        bool,
        typer.Option("--open", help="Ask for no tokens; on a loopback address alone."),
    ] = False,
    planner: Annotated[
        bool, typer.Option(help="Start a planner for each campaign, beside the server.")
    ] = True,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many fits at a time, for each campaign; by default as its design says.",
        ),
    ] = None,
    dask: Dask = None,
) -> None:
    """Serve the campaigns of a database over HTTP, and plan their rounds.

    The first start prints a link for the owner, once: who has it may do everything. `malocate
    token` makes others. Behind a proxy with TLS, listen at a loopback address.
    """
    check_openness(host, open_to_all)
    fits = _handed_on(jobs, dask, planner)
    uvicorn = _uvicorn()
    from malocate.server import create_app
    from malocate.store import Store

    url = address(where)
    here = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    store = Store.open(url)
    app = create_app(store, open_to_all=open_to_all)
    if not open_to_all:
        _greet(store, (public or here).rstrip("/"))
    app.state.office.open_all()
    _settle()
    say(f"Serving {store} at {here}; Ctrl-C stops it.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn hands it on at its end
    with _planners(url, store, fits) if planner else _nobody():
        uvicorn.run(
            app,
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=SECONDS_TO_FINISH,
        )


def _handed_on(jobs: int | None, dask: str | None, planner: bool) -> list[str]:
    """Give the options that say to planners where to fit."""
    given = {"--jobs": jobs, "--dask": dask}
    told = [
        text for name, value in given.items() if value is not None for text in (name, str(value))
    ]
    if told and not planner:
        raise InvalidInput(
            f"{told[0]} is for planners, and --no-planner starts none; leave one out."
        )
    computing(jobs, dask, at_once=False)  # a cluster that is away must not keep the pages away
    if dask is not None:
        check_installed()
    return told


def _settle() -> None:
    """Leave what has been loaded out of garbage collections, and collect less often.

    A collection walks through all that is alive and stops every request meanwhile: with what the
    program itself loads among it, for some tenths of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])


def check_openness(host: str, open_to_all: bool) -> None:
    """Refuse to be open to all where others than this machine can come."""
    if not open_to_all or host == "localhost":
        return
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise InvalidInput(
            f"--open asks for no tokens, and {host} can be reached by others; listen at 127.0.0.1, "
            "or leave --open out."
        )


def _greet(store: Store, base: str) -> None:
    """Make a token for the owner at the first start, and show it once."""
    from malocate.server.access import EVERYWHERE, new_token
    from malocate.store import Tokens

    tokens = Tokens(store.database)
    before = tokens.listed(EVERYWHERE)
    if _owned(before):
        return
    name = OWNER if not before else f"{OWNER} {len(before) + 1}"
    try:
        token = new_token(tokens, EVERYWHERE, name, "owner")
    except Conflict:
        if _owned(tokens.listed(EVERYWHERE)):  # by a server that started at the same time
            return
        raise
    say("This link is for the owner, and is shown only now:")
    typer.echo(f"{base}/enter?token={token}")


def _owned(tokens: Iterable[Token]) -> bool:
    return any(each.role == "owner" and each.revoked is None for each in tokens)


@contextmanager
def _planners(url: str, store: Store, fits: list[str]) -> Iterator[None]:
    """Keep one planner running for each campaign, in a process of its own."""
    from malocate.campaign.beating import repeated

    running: dict[str, subprocess.Popen[bytes]] = {}

    def keep() -> None:
        with suppress(StoreError):  # the database is away; the next look tries again
            for name in store.names():
                if name not in running or running[name].poll() not in (None, 0):
                    running[name] = _planner(url, name, fits)

    try:
        with repeated(keep, LOOK_EVERY, at_once=True):
            yield
    finally:
        for each in running.values():
            each.communicate()  # its input ends, and so does the planner


def _planner(url: str, name: str, fits: list[str]) -> subprocess.Popen[bytes]:
    """Start a planner; it is told the address where no list of processes shows its password."""
    command = [sys.executable, "-m", "malocate", "worker", "--name", name, "--every", "0.2"]
    return subprocess.Popen(  # noqa: S603  # our own program
        [*command, *fits, "--attached"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=os.environ | {VARIABLE: url},
    )


@contextmanager
def _nobody() -> Iterator[None]:
    yield


def _uvicorn() -> Any:
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingDependency(
            "Serving needs FastAPI and uvicorn; install malocate[server]."
        ) from None
    return uvicorn
