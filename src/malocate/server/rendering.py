"""How pages are made: templates, our own style and scripts, and errors that people can read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment

from malocate.drawing.templates import environment
from malocate.errors import MalocateError, NotFound
from malocate.server.access import NotAllowed
from malocate.server.problems import status_of

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
HEADERS = {"Referrer-Policy": "same-origin"}
"""Without a referrer, browsers send forms with the origin "null", as if from another site."""

A_YEAR = "public, max-age=31536000, immutable"

ASSETS = {
    file.name: file.read_bytes()
    for file in files("malocate.server").joinpath("static").iterdir()
    if file.name.rpartition(".")[2] in KINDS
}


def asset(name: str) -> str:
    """Give the address of a style or script; it changes with the file, so that it can be kept.

    >>> asset("app.css").startswith("/static/app.css?v=")
    True
    """
    return f"/static/{name}?v={hashlib.blake2b(ASSETS[name], digest_size=6).hexdigest()}"


def segment_path(text: object) -> str:
    """Give a name as one part of an address."""
    return quote(str(text), safe="")


def _environment() -> Environment:
    made = environment("malocate.server")
    made.filters |= {"part": segment_path}
    made.globals |= {"asset": asset}
    return made


TEMPLATES = _environment()


def page(template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """Give a page."""
    return HTMLResponse(TEMPLATES.get_template(template).render(**shown), status, HEADERS)


def part(template: str, **shown: Any) -> str:
    """Give a part of a page as text."""
    return TEMPLATES.get_template(template).render(**shown)


class PageRoute(APIRoute):
    """A route whose errors are pages; who is not known is asked for a token."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Give the handler."""
        usual = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await usual(request)
            except NotAllowed as problem:
                if problem.status == 401 and request.method == "GET":
                    wanted = request.url.path + (f"?{request.url.query}" * bool(request.url.query))
                    return RedirectResponse(f"/enter?next={quote(wanted, safe='')}", 303)
                return _told(problem.status, str(problem))
            except MalocateError as problem:
                return _told(status_of(problem), str(problem))
            except RequestValidationError:
                return _told(404, "There is no such page; look at the address again.")

        return handler


def _told(status: int, sentence: str) -> Response:
    return page("problem.html", status, title="That did not work", sentence=sentence)


def static(routes: APIRouter) -> None:
    """Add the route that gives our own styles and scripts."""

    @routes.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in ASSETS:
            raise NotFound(f"There is no file {name!r} here.")
        kind = KINDS[name.rpartition(".")[2]]
        headers = {"Cache-Control": A_YEAR}
        return Response(ASSETS[name], media_type=f"{kind}; charset=utf-8", headers=headers)
