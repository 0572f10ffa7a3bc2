"""Numbers for a monitoring system, in Prometheus' format."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from malocate.campaign import Campaign
from malocate.server.office import Office

STATES = ("open", "lent", "answered", "late", "refused", "given_up", "erased", "imported")


class Metrics:
    """What is counted: requests as they come, and draws when somebody looks."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "malocate_requests", "Requests.", ["method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "malocate_request_seconds", "Seconds that a request took.", registry=self.registry
        )
        self.draws = Gauge(
            "malocate_draws",
            "Draws by what became of them.",
            ["campaign", "segment", "state"],
            registry=self.registry,
        )
        self.bound = Gauge(
            "malocate_loss_bound", "The bound on the loss.", ["campaign"], registry=self.registry
        )

    def look(self, campaign: Campaign) -> None:
        """Take a campaign's numbers."""
        status = campaign.status()
        self.bound.labels(status.name).set(status.bound)
        for segment in status.segments:
            for state in STATES:
                self.draws.labels(status.name, segment.name, state).set(getattr(segment, state))

    def text(self) -> bytes:
        """Give all numbers as text."""
        return generate_latest(self.registry)


def install(app: FastAPI, office: Office) -> None:
    """Count every request, and give the numbers at /metrics to viewers."""
    metrics = Metrics()

    @app.middleware("http")
    async def count(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        began = time.perf_counter()
        answer = await go_on(request)
        metrics.seconds.observe(time.perf_counter() - began)
        metrics.requests.labels(request.method, str(answer.status_code)).inc()
        return answer

    @app.get("/metrics", tags=["health"], response_class=Response)
    async def numbers(request: Request) -> Response:
        """Give the numbers of the campaigns that the token opens."""
        for name in await office.names(request):
            campaign, _ = await office.campaign(request, name, "viewer")
            await office.desk.read(metrics.look, campaign)
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)
