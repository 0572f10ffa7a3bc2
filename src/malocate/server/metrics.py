"""Numbers for a monitoring system, in Prometheus' format."""

from __future__ import annotations

import time

from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from malocate.campaign import Campaign
from malocate.server.office import Office

STATES = ("open", "lent", "answered", "late", "refused", "given_up", "erased", "imported")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Requests:
    """The requests of this process, counted as they come."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._count = Counter(
            "malocate_requests", "Requests.", ["method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "malocate_request_seconds", "Seconds that a request took.", registry=self.registry
        )

    def add(self, method: str, status: int, seconds: float) -> None:
        """Count a request; methods that nobody knows count together."""
        known = method if method in METHODS else "other"
        self._count.labels(known, str(status)).inc()
        self._seconds.observe(seconds)


class Counting:
    """Counts every request with its status and its time."""

    def __init__(self, app: ASGIApp, *, requests: Requests) -> None:
        self._app, self._requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._requests.add(scope["method"], status, time.perf_counter() - began)


class Standing:
    """How campaigns stand, taken when somebody looks: only of those that they may see."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._draws = Gauge(
            "malocate_draws",
            "Draws by what became of them.",
            ["campaign", "segment", "state"],
            registry=self.registry,
        )
        self._bound = Gauge(
            "malocate_loss_bound", "The bound on the loss.", ["campaign"], registry=self.registry
        )

    def look(self, campaign: Campaign) -> None:
        """Take a campaign's numbers."""
        status = campaign.status()
        self._bound.labels(status.name).set(status.bound)
        for segment in status.segments:
            for state in STATES:
                self._draws.labels(status.name, segment.name, state).set(getattr(segment, state))


def install(app: FastAPI, office: Office) -> None:
    """Count every request, and give the numbers at /metrics to viewers."""
    requests = Requests()
    app.add_middleware(Counting, requests=requests)

    @app.get("/metrics", tags=["health"], response_class=Response)
    async def numbers(request: Request) -> Response:
        """Give the numbers of the campaigns that the token opens."""
        standing = Standing()
        for name in await office.names(request):
            campaign, _ = await office.campaign(request, name, "viewer")
            await office.desk.read(standing.look, campaign)
        text = generate_latest(requests.registry) + generate_latest(standing.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)
