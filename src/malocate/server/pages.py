"""The pages: who comes in, the campaigns, a campaign, and a segment's completed matrix."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import RedirectResponse

from malocate.campaign import Campaign, Status
from malocate.campaign.picturing import looks_chart
from malocate.drawing import heat
from malocate.errors import InvalidInput
from malocate.server import rendering
from malocate.server.access import NotAllowed, Visitor
from malocate.server.office import COOKIE, Office
from malocate.server.protection import check_origin
from malocate.server.rendering import PageRoute, page, part
from malocate.server.views import Watch

Name = Annotated[str, Path(max_length=200)]
PageNumber = Annotated[int, Query(ge=1, le=10**6)]
SIXTY_DAYS = 60 * 86_400
LARGEST_FORM = 20_000


class Watching:
    """The campaigns that somebody has looked at, each with what is remembered of it."""

    def __init__(self) -> None:
        self._watches: dict[int, Watch] = {}

    def of(self, campaign: Campaign) -> Watch:
        """Give what is remembered of a campaign."""
        return self._watches.setdefault(campaign.id, Watch(campaign))


def router(office: Office, watching: Watching) -> APIRouter:
    """Give the routes of the pages."""
    pages = APIRouter(route_class=PageRoute, include_in_schema=False)
    rendering.static(pages)
    _door(pages, office)
    _overview(pages, office, watching)
    _segment(pages, office, watching)
    return pages


def _door(pages: APIRouter, office: Office) -> None:
    @pages.get("/enter")
    async def enter(
        request: Request,
        token: Annotated[str, Query(max_length=500)] = "",
        next: Annotated[str, Query(max_length=2_000)] = "/",  # noqa: A002
    ) -> Response:
        """Let somebody in by a first-use link; the token leaves the address at once."""
        if token:
            welcome = f"/welcome?next={quote(local(next), safe='')}"
            return await _let_in(office, request, token.strip(), next, welcome)
        return page("enter.html", title="Sign in", next=local(next), problem="")

    @pages.post("/enter")
    async def enter_by_form(request: Request) -> Response:
        check_origin(request)
        form = await form_of(request)
        token, after = form.get("token", "").strip(), form.get("next", "/")
        return await _let_in(office, request, token, after, local(after))

    @pages.get("/welcome")
    async def welcome(next: Annotated[str, Query(max_length=2_000)] = "/") -> Response:  # noqa: A002
        """Lead on: a browser that came from elsewhere shows our cookie only from a page of ours."""
        return page("welcome.html", title="Welcome", next=local(next))

    @pages.post("/leave")
    async def leave(request: Request) -> Response:
        check_origin(request)
        answer = RedirectResponse("/enter", 303)
        answer.delete_cookie(COOKIE, path="/")
        return answer


async def _let_in(office: Office, request: Request, token: str, after: str, then: str) -> Response:
    """Check a token, leave it in a cookie, and lead on to `then`."""
    try:
        await office.desk.read(office.gate.visitor, token)
    except NotAllowed as problem:
        shown = {"title": "Sign in", "next": local(after), "problem": str(problem)}
        return page("enter.html", problem.status, **shown)
    answer = RedirectResponse(then, 303)
    answer.set_cookie(
        COOKIE,
        token,
        max_age=SIXTY_DAYS,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


def _overview(pages: APIRouter, office: Office, watching: Watching) -> None:
    @pages.get("/")
    async def campaigns(request: Request) -> Response:
        visitor = await office.enter(request, "viewer")
        found = await _standing(office, watching, request)
        shown = visiting(office, visitor) | {"title": "Campaigns", "campaigns": found}
        return page("campaigns.html", **shown)

    @pages.get("/live")
    async def live_list(request: Request) -> Response:
        """Give the list of campaigns as it is now."""
        found = await _standing(office, watching, request)
        parts = {"campaigns": part("cards.html", campaigns=found)}
        told = {"look": "", "words": "", "parts": parts}
        return with_etag(request, json.dumps(told, ensure_ascii=False))

    @pages.get("/c/{name}")
    async def campaign(request: Request, name: Name, p: PageNumber = 1) -> Response:
        campaign, visitor = await office.campaign(request, name, "viewer")
        watch = watching.of(campaign)
        view = await office.desk.read(watch.view, p)
        past = await office.desk.read(watch.past)
        shown = visiting(office, visitor) | {"title": name, "view": view, "past": past}
        shown |= {"counts": view.counts, "may_answer": visitor.may("asker", campaign.id)}
        return page("campaign.html", **shown)

    @pages.get("/c/{name}/live")
    async def live(request: Request, name: Name, p: PageNumber = 1) -> Response:
        """Give the parts of the campaign's page that change with every answer."""
        campaign, _ = await office.campaign(request, name, "viewer")
        view = await office.desk.read(watching.of(campaign).view, p, charts=False)
        parts = {
            "standing": part("standing.html", view=view),
            "counts": part("counts.html", view=view, counts=view.counts),
        }
        told = {"look": view.look, "words": view.status.words, "parts": parts}
        return with_etag(request, json.dumps(told, ensure_ascii=False))


async def _standing(office: Office, watching: Watching, request: Request) -> list[Status]:
    """Give how the campaigns stand that a visitor may see."""
    found = []
    for name in await office.names(request):
        campaign, _ = await office.campaign(request, name, "viewer")
        found.append((await office.desk.read(watching.of(campaign).status))[0])
    return found


def _segment(pages: APIRouter, office: Office, watching: Watching) -> None:
    @pages.get("/c/{name}/s/{segment:path}")
    async def segment(
        request: Request,
        name: Name,
        segment: str,
        rows: Annotated[str, Query(max_length=10)] = "given",
        columns: Annotated[str, Query(max_length=10)] = "given",
        r: PageNumber = 1,
        c: PageNumber = 1,
    ) -> Response:
        campaign, visitor = await office.campaign(request, name, "viewer")
        orders = heat.order_of(rows), heat.order_of(columns)
        shown = await office.desk.read(
            _segment_shown, watching.of(campaign), segment, orders, (r, c)
        )
        return page("segment.html", title=segment, name=name, **shown, **visiting(office, visitor))


def _segment_shown(
    watch: Watch, name: str, orders: tuple[heat.Order, heat.Order], window: tuple[int, int]
) -> dict[str, Any]:
    """Give what the page of a segment shows."""
    place = watch.place_of(name)
    status, held = watch.status()
    segment, finding = watch.campaign.design.segments[place], watch.finding(place)
    watch.history.read(watch.campaign.store, watch.campaign.id)
    looks = watch.history.looks_until(held, name)
    shown: dict[str, Any] = {"segment": status.segments[place], "scale": segment.scale}
    shown |= {"chart": looks_chart(name, looks, watch.goal(name), width=380), "heat": None}
    shown |= {"band": None, "look": f"{held.round}.{held.version}.{held.state}"}
    if finding is None:
        return shown
    means = watch.means(place, finding)
    best, worst = heat.likings(finding, means, segment.scale)
    found = heat.heat_of(
        finding,
        means,
        segment.scale,
        rows_by=orders[0],
        columns_by=orders[1],
        row_page=window[0],
        column_page=window[1],
    )
    shown |= {"heat": found, "best": best, "worst": worst, "band": finding.band}
    noise = 0.0 if finding.band is None else finding.band.noise
    return shown | {"noise": math.sqrt(max(0.0, noise))}


def with_etag(request: Request, text: str) -> Response:
    """Give JSON, or only say that it is still the same."""
    tag = f'"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(text, media_type="application/json", headers=headers)


def visiting(office: Office, visitor: Visitor) -> dict[str, Any]:
    """Give what every page says of its visitor."""
    return {"visitor": visitor, "signed_in": not office.gate.open_to_all}


async def form_of(request: Request) -> dict[str, str]:
    """Read a form that was sent by a page of ours."""
    body = await request.body()
    if len(body) > LARGEST_FORM:
        raise InvalidInput(f"The form has {len(body):,} bytes; it may have {LARGEST_FORM:,}.")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=30))
    except ValueError:
        raise InvalidInput("The form cannot be read; send it from the page again.") from None


def local(address: str) -> str:
    """Give an address if it is one of this site, else the first page.

    >>> local("/c/tasting"), local("//elsewhere.example"), local("https://elsewhere.example")
    ('/c/tasting', '/', '/')
    """
    odd = address.startswith("//") or "\\" in address or not address.isprintable()
    return address if address.startswith("/") and not odd else "/"
