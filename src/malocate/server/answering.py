"""The answer page: one question at a time, in plain words, for whoever holds the phone.

A form is sent and the next question comes back. What was answered last, and what was skipped, is
kept in a cookie of the answerer's; an answer that is sent twice is recorded once, by its ticket.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from malocate.campaign import Campaign, Ticket
from malocate.design import Question
from malocate.drawing.numbers import number
from malocate.errors import Conflict, InvalidInput, MalocateError, NotFound
from malocate.problem import Segment
from malocate.server import languages
from malocate.server.languages import Phrases, phrases_of
from malocate.server.office import Office
from malocate.server.pages import Name, form_of, visiting
from malocate.server.problems import status_of
from malocate.server.protection import check_origin
from malocate.server.rendering import PageRoute, page, segment_path

USUAL: Mapping[str, Question] = {"en": Question()}
"""What is asked where the design does not say it."""

COOKIE = "malocate-answering"
MOST_BUTTONS, MOST_SKIPPED, LEASE = 11, 10, 3_600.0
LAST_FOR = 12 * 3_600


@dataclass(frozen=True)
class Last:
    """The answer before: what an undo changes."""

    ticket: str
    value: float
    segment: str
    row: str
    column: str

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Last:
        """Read it from a cookie, in which anything may stand."""
        names = (str(told[name]) for name in ("segment", "row", "column"))
        return cls(str(told["ticket"]), float(told["value"]), *names)


@dataclass(frozen=True)
class Trace:
    """What is remembered of an answerer: the last answer, and the draws that were skipped."""

    campaign: str = ""
    who: str = ""
    last: Last | None = None
    skipped: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Request, campaign: str, who: str) -> Trace:
        """Read the trace of this answerer in this campaign; an empty one if there is none."""
        try:
            told = json.loads(base64.urlsafe_b64decode(request.cookies.get(COOKIE, "")))
            last = None if told["last"] is None else Last.read(told["last"])
            skipped = tuple(map(str, told["skipped"][-MOST_SKIPPED:]))
            found = cls(str(told["campaign"]), str(told["who"]), last, skipped)
        except (ValueError, KeyError, TypeError, RecursionError):
            return cls(campaign, who)
        return found if (found.campaign, found.who) == (campaign, who) else cls(campaign, who)

    def keep(self, request: Request, answer: Response) -> None:
        """Leave the trace in a cookie."""
        text = base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()
        secure = request.url.scheme == "https"
        answer.set_cookie(
            COOKIE, text, max_age=LAST_FOR, path="/c/", httponly=True, samesite="strict",
            secure=secure,
        )  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """How an answer is given: by buttons on a short scale of whole numbers, else as a number."""

    low: float | None
    high: float | None
    buttons: tuple[int, ...]

    @classmethod
    def of(cls, limits: tuple[float, float] | None) -> Scale:
        """Give the scale of a segment.

        >>> Scale.of((1, 5)).buttons, Scale.of((0, 100)).buttons
        ((1, 2, 3, 4, 5), ())
        """
        if limits is None:
            return cls(None, None, ())
        low, high = limits
        whole = low == int(low) and high == int(high) and high - low < MOST_BUTTONS
        return cls(low, high, tuple(range(int(low), int(high) + 1)) if whole else ())


@dataclass(frozen=True)
class Tongue:
    """The language of a page: its tag, the page's own words, and the design's question."""

    tag: str
    say: Phrases
    question: Question
    others: Mapping[str, str]

    @classmethod
    def of(cls, request: Request, campaign: Campaign, wanted: str) -> Tongue:
        """Choose among the design's languages: as wanted, else as the browser prefers."""
        questions = campaign.design.questions or USUAL
        accepted = request.headers.get("accept-language", "")
        tag = languages.chosen(list(questions), wanted, accepted)
        others = {each: languages.name_of(each) for each in questions if each != tag}
        return cls(tag, phrases_of(tag), questions[tag], others)

    @property
    def shown(self) -> dict[str, Any]:
        """What every page in this language needs."""
        return {"lang": self.tag, "say": self.say, "languages": self.others}


Who = Annotated[str, Query(max_length=200)]
Word = Annotated[str, Query(max_length=20)]


def router(office: Office) -> APIRouter:
    """Give the routes of the answer page."""
    pages = APIRouter(route_class=PageRoute, include_in_schema=False)

    @pages.get("/c/{name}/answer")
    async def question(
        request: Request,
        name: Name,
        who: Who = "",
        note: Word = "",
        lang: Word = "",
        change: bool = False,
    ) -> Response:
        campaign, visitor = await office.campaign(request, name, "asker")
        trace, tongue = Trace.of(request, name, who.strip()), Tongue.of(request, campaign, lang)
        shown = {"name": name, **tongue.shown, **visiting(office, visitor)}
        if not trace.who:
            return page("who.html", title=tongue.say.who_title, **shown)
        if change and trace.last is not None:
            shown |= _changing(campaign, tongue, trace.last)
        else:
            shown |= await _asking(office, campaign, tongue, trace)
        shown |= {"who": trace.who, "last": _told(tongue, trace.last)}
        return page("answer.html", title=tongue.say.title, note=tongue.say.note(note), **shown)

    @pages.post("/c/{name}/answer")
    async def answered(request: Request, name: Name) -> Response:
        check_origin(request)
        campaign, _ = await office.campaign(request, name, "asker")
        form = await form_of(request)
        trace = Trace.of(request, name, form.get("who", "").strip())
        if not trace.who:
            raise InvalidInput("The form does not say who answers; open the answer page again.")
        try:
            note, trace = await _done(office, campaign, trace, form)
        except MalocateError as problem:
            tongue = Tongue.of(request, campaign, form.get("lang", "")[:20])
            return _refused(name, tongue, trace, problem, _limits(campaign, form))
        told = {"who": trace.who, "note": note}
        if lang := form.get("lang", "")[:20]:
            told["lang"] = lang
        answer = RedirectResponse(f"/c/{segment_path(name)}/answer?{urlencode(told)}", 303)
        trace.keep(request, answer)
        return answer

    return pages


def _refused(
    name: str, tongue: Tongue, trace: Trace, problem: MalocateError, scale: Scale
) -> Response:
    """Say why something was not recorded, in the words of the page."""
    say, status = tongue.say, status_of(problem)
    words = {404: say.unknown, 409: say.contradicts, 503: say.away}.get(status, say.failed)
    if isinstance(problem, NoNumber):
        words = say.no_number
    elif status == 422 and scale.low is not None and scale.high is not None:
        words = say.outside.format(low=number(scale.low), high=number(scale.high))
    back = f"/c/{segment_path(name)}/answer?{urlencode({'who': trace.who, 'lang': tongue.tag})}"
    shown = {"title": say.failed, "sentence": words, "back": (back, say.look_again)}
    return page("problem.html", status, lang=tongue.tag, say=say, **shown)


def _limits(campaign: Campaign, form: Mapping[str, str]) -> Scale:
    """Give the scale of the segment that a form is about; none where there is no such segment."""
    named = (each for each in campaign.design.segments if each.name == form.get("segment"))
    found = next(named, None)
    return Scale.of(None if found is None else found.scale)


async def _asking(
    office: Office, campaign: Campaign, tongue: Tongue, trace: Trace
) -> dict[str, Any]:
    """Give what the page shows of the next question."""
    ticket = await office.desk.write(next_question, campaign, trace.who, trace.skipped)
    if ticket is None:
        state = (await office.desk.read(campaign.status)).state
        return {"ticket": None, "state": state, "changing": False}
    shown = _question(campaign, tongue, ticket.segment, ticket.row, ticket.column)
    return shown | {
        "ticket": ticket.id,
        "again": bool(ticket.note),
        "changing": False,
        "given": None,
    }


def _changing(campaign: Campaign, tongue: Tongue, last: Last) -> dict[str, Any]:
    """Give what the page shows of the last question, to answer it otherwise."""
    shown = _question(campaign, tongue, last.segment, last.row, last.column)
    return shown | {"ticket": last.ticket, "again": False, "changing": True, "given": last.value}


def _question(
    campaign: Campaign, tongue: Tongue, segment: str, row: object, column: object
) -> dict[str, Any]:
    found = next((each for each in campaign.design.segments if each.name == segment), None)
    if found is None:
        raise NotFound(f"There is no segment {segment!r} any more; open the answer page again.")
    several = len(campaign.design.segments) > 1
    scale, called = Scale.of(found.scale), _called(tongue.say, found, row, column)
    return {
        "question": tongue.question.about(segment=segment, **called),
        "segment": segment if several else "",
        "about": {"segment": segment, "row": str(row), "column": str(column)},
        "scale": scale,
        "ends": (tongue.question.low, tongue.question.high),
        "span": _span(tongue.say, scale),
    }


def _span(say: Phrases, scale: Scale) -> str:
    """Say what may be answered where it is typed."""
    if scale.low is None or scale.high is None:
        return say.a_number
    return say.span.format(low=number(scale.low), high=number(scale.high))


def _told(tongue: Tongue, last: Last | None) -> str:
    """Say what was answered last; nothing where nothing was."""
    if last is None:
        return ""
    return tongue.say.last.format(row=last.row, column=last.column, value=number(last.value))


def _called(say: Phrases, segment: Segment, row: object, column: object) -> dict[str, str]:
    """Give what a question calls its row and column; bare numbers are said to be such."""
    if segment.labels is None:
        return {"row": say.row.format(place=row), "column": say.column.format(place=column)}
    return {"row": str(row), "column": str(column)}


def next_question(campaign: Campaign, who: str, skipped: tuple[str, ...]) -> Ticket | None:
    """Lend a question that was not skipped; one that was, if there is no other.

    What is lent on the way is given back.
    """
    tickets = campaign.ask(1, who=who, lease=LEASE, plan=False)
    if tickets and _draw(tickets[0].id) in skipped:
        tickets = campaign.ask(len(skipped) + 1, who=who, lease=LEASE, plan=False)
    fresh = [each for each in tickets if _draw(each.id) not in skipped]
    chosen = next(iter(fresh or tickets), None)
    for each in tickets:
        if each is not chosen:
            campaign.release(each)
    return chosen


def _draw(ticket: str) -> str:
    """Give which question a ticket is about, whoever it was lent to.

    >>> _draw("0-17-2-ab12")
    '0-17'
    """
    return "-".join(ticket.split("-")[:2])


async def _done(
    office: Office, campaign: Campaign, trace: Trace, form: Mapping[str, str]
) -> tuple[str, Trace]:
    """Do what a form asks for; give what to say, and what to remember."""
    ticket, does = form.get("ticket", ""), form.get("does", "tell")
    if does == "skip":
        return await _skipped(office, campaign, trace, ticket)
    if does == "refuse":
        reason = form.get("reason", "")[:2_000] or "refused on the answer page"
        try:
            await office.desk.write(campaign.decline, ticket, reason)
        except Conflict:
            return "gone", trace
        return "refused", trace
    value = value_of(form.get("value", ""))
    last = Last(ticket, value, *(form.get(n, "")[:500] for n in ("segment", "row", "column")))
    if does == "correct":
        reason = f"undone by {trace.who} on the answer page"
        await office.desk.write(campaign.correct, ticket, value, reason=reason, who=trace.who)
        return "changed", replace(trace, last=last)
    answers = campaign.read([(ticket, value)])
    (outcome,) = await office.desk.tell(campaign, answers)
    if outcome in ("conflict", "gone"):
        await office.desk.write(campaign.tell, ticket, value)  # says what is wrong
    return outcome, replace(trace, last=last)


async def _skipped(
    office: Office, campaign: Campaign, trace: Trace, ticket: str
) -> tuple[str, Trace]:
    try:
        await office.desk.write(campaign.release, ticket)
    except Conflict:
        return "gone", trace
    return "skipped", replace(trace, skipped=(*trace.skipped, _draw(ticket))[-MOST_SKIPPED:])


class NoNumber(InvalidInput):
    """An answer that is no number."""


def value_of(text: str) -> float:
    """Read an answer; a comma does for a point.

    >>> value_of("3,5")
    3.5
    """
    with suppress(ValueError):
        value = float(text.strip().replace(",", "."))
        if math.isfinite(value):
            return value
    raise NoNumber(f"The answer is {text!r}; it must be a number.")
