"""What protects the server from the web: sizes, rates, hosts, and headers on every answer."""

from __future__ import annotations

import time
from collections import OrderedDict
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from malocate.server.access import NotAllowed
from malocate.server.problems import told

LARGEST_BODY, LONGEST_SIZE = 4_000_000, 12
"""Bytes, and the most digits that may tell them."""

PER_SECOND, BURST = 2_000.0, 4_000.0
"""Requests that one client may make a second, and at once."""

MOST_CLIENTS = 10_000
LOOPBACK = ("localhost", "127.0.0.1", "::1", "testserver")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


class Rates:
    """A bucket of requests for each client, filled at a steady rate."""

    def __init__(self, per_second: float = PER_SECOND, burst: float = BURST) -> None:
        self._rate, self._burst = per_second, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, client: str, now: float) -> bool:
        """Tell whether the client may make a request now, and count it."""
        before, left = self._buckets.pop(client, (now, self._burst))
        left = min(self._burst, left + (now - before) * self._rate)
        self._buckets[client] = now, max(0.0, left - 1)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return left >= 1


class Guard:
    """Checks every request before it is read, and puts the headers on every answer."""

    def __init__(self, app: ASGIApp, *, loopback_only: bool, rates: Rates | None = None) -> None:
        self._app, self._loopback_only, self._rates = app, loopback_only, rates or Rates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = _refusal(Request(scope), self._rates, self._loopback_only)
        await (refusal or self._app)(scope, receive, protected)


def install(app: FastAPI, *, loopback_only: bool, rates: Rates | None = None) -> None:
    """Let the guard stand before the app."""
    app.add_middleware(Guard, loopback_only=loopback_only, rates=rates)


def _refusal(request: Request, limits: Rates, loopback_only: bool) -> Response | None:
    size = request.headers.get("content-length", "0")
    if "chunked" in request.headers.get("transfer-encoding", "").lower():
        return told(411, "TooLarge", "Send a Content-Length; bodies of unknown size are refused.")
    if not size.isdecimal() or len(size) > LONGEST_SIZE or int(size) > LARGEST_BODY:
        limit = f"a request may have {LARGEST_BODY:,} bytes"
        return told(413, "TooLarge", f"The request is too large; {limit}. Send less at a time.")
    client = request.client.host if request.client is not None else ""
    if not limits.allows(client, time.monotonic()):
        return told(429, "TooMany", "Too many requests at once; wait a moment and try again.")
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname
    if loopback_only and host not in LOOPBACK:
        return told(403, "NotAllowed", "Everything is open here, so only this machine may come.")
    return None


def check_origin(request: Request) -> None:
    """Refuse a change that another site sends with this site's cookie."""
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    ours = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not ours or site not in ("same-origin", "none"):
        raise NotAllowed(403, "This came from another site; open the page here and try again.")
