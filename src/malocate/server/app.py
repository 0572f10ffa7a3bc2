"""The app: everything that answers over HTTP, over the campaigns of one database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI, Response

import malocate
from malocate.errors import StoreError
from malocate.server import answering, api, metrics, pages, problems, protection
from malocate.server.office import Office
from malocate.server.problems import told
from malocate.store import Store


def create_app(
    store: Store | str | Path,
    *,
    open_to_all: bool = False,
    rates: protection.Rates | None = None,
) -> FastAPI:
    """Give an ASGI app over the campaigns of a database.

    `open_to_all` asks for no tokens, and then answers only requests for this machine itself.
    Planning never runs here: `malocate worker`, or `malocate serve`, does it.

    >>> import tempfile
    >>> from malocate import Campaign, Design, Segment
    >>> folder = tempfile.TemporaryDirectory()
    >>> url = f"{folder.name}/tasting.db"
    >>> Campaign.create(url, Design([Segment("north", (4, 3))], budget=40)).close()
    >>> app = create_app(url)
    >>> sorted(app.openapi()["paths"])[0]
    '/api/v1/campaigns'
    >>> app.state.office.close(); folder.cleanup()
    """
    office = Office(
        store if isinstance(store, Store) else Store.open(str(store)), open_to_all=open_to_all
    )

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        with suppress(StoreError):  # the database is away; the first who comes tries again
            await office.desk.read(office.open_all)
        yield
        office.close()

    app = FastAPI(
        title="malocate",
        version=malocate.__version__,
        description="Ask and tell for campaigns that spend a budget where it teaches most.",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
    )
    app.state.office = office
    problems.install(app)
    protection.install(app, loopback_only=open_to_all, rates=rates)
    app.include_router(api.router(office))
    metrics.install(app, office)
    app.include_router(answering.router(office))
    app.include_router(pages.router(office, pages.Watching()))
    _health(app, office)
    return app


def _health(app: FastAPI, office: Office) -> None:
    @app.get("/healthz", tags=["health"])
    async def alive() -> dict[str, str]:
        """Say that the process answers."""
        return {"words": "alive"}

    @app.get("/readyz", tags=["health"])
    async def ready() -> Response:
        """Say whether the database can be reached."""
        try:
            await office.desk.read(office.store.names)
        except StoreError as problem:
            return told(503, "StoreError", str(problem))
        return Response('{"words": "ready"}', media_type="application/json")
