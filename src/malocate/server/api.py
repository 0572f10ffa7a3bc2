"""The JSON API: campaigns, questions and answers, and everything that a page shows."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from malocate.campaign import Campaign, Ticket
from malocate.errors import InvalidInput, NotFound
from malocate.problem.counting import counted
from malocate.problem.plain import finite
from malocate.server.access import Role
from malocate.server.office import Office
from malocate.server.problems import Problem

Label = str | int | float | list[str | int | float]
Name = Annotated[str, Path(max_length=200, description="The campaign's name.")]

MOST_TICKETS, MOST_ANSWERS, MOST_CELLS = 1_000, 10_000, 100_000

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem} for status in (401, 403, 404, 409, 413, 422, 429, 503)
}


class Ask(BaseModel):
    """What an asker wants."""

    n: int = Field(1, ge=1, le=MOST_TICKETS, description="Questions, at most.")
    who: str = Field(min_length=1, max_length=200, description="Who asks: a person or a tablet.")
    lease: float = Field(3600.0, gt=0, le=366 * 86_400, description="Seconds that they are lent.")
    capacity: int | None = Field(None, ge=1, description="The most that `who` may have at once.")
    segment: str | None = Field(None, max_length=200)
    rows: list[Label] | None = Field(None, max_length=10_000, description="Who is present.")


class Question(BaseModel):
    """A ticket: one question, lent until its deadline."""

    ticket: str
    segment: str
    row: Any
    column: Any
    who: str
    deadline: float
    note: str


class Questions(BaseModel):
    """The questions that were lent; when there are none, `words` say why."""

    questions: list[Question]
    words: str


class Told(BaseModel):
    """An answer to a ticket."""

    ticket: str = Field(max_length=200)
    value: float = Field(allow_inf_nan=False)


class Tell(BaseModel):
    """Answers; telling the same again changes nothing."""

    answers: list[Told] = Field(min_length=1, max_length=MOST_ANSWERS)


class Outcomes(BaseModel):
    """What became of each answer: answered, late, reversed, same, extra, conflict or gone."""

    outcomes: list[str]


class Renew(BaseModel):
    """A ticket to keep longer."""

    ticket: str = Field(max_length=200)
    lease: float = Field(3600.0, gt=0, le=366 * 86_400)


class Release(BaseModel):
    """A ticket to give back."""

    ticket: str = Field(max_length=200)


class Decline(BaseModel):
    """A question that was refused."""

    ticket: str = Field(max_length=200)
    reason: str = Field("", max_length=2_000)


class Correct(BaseModel):
    """Another value for an answer, and why."""

    ticket: str = Field(max_length=200)
    value: float = Field(allow_inf_nan=False)
    reason: str = Field(min_length=1, max_length=2_000)


class Turn(BaseModel):
    """Why a campaign is paused, resumed or finished."""

    why: str = Field("", max_length=2_000)


class Matrix(BaseModel):
    """Some rows of a completed matrix."""

    segment: str
    shape: tuple[int, int]
    offset: int
    rows: list[Any]
    columns: list[Any]
    values: list[list[float]]


class Done(BaseModel):
    """That it was done, in words."""

    words: str


def router(office: Office) -> APIRouter:
    """Give the routes of the API."""
    api = APIRouter(prefix="/api/v1", responses=ERRORS)
    _asking(api, office)  # first, since routes are tried in turn and these are asked for most
    _looking(api, office)
    _looking_closely(api, office)
    _owning(api, office)
    return api


def _looking(api: APIRouter, office: Office) -> None:
    @api.get("/campaigns", tags=["look"])
    async def campaigns(request: Request) -> list[str]:
        """Give the names of the campaigns that the token opens."""
        return await office.names(request)

    @api.get("/campaigns/{name}", tags=["look"])
    async def status(request: Request, name: Name) -> dict[str, Any]:
        """Say how a campaign stands."""
        campaign, _ = await office.campaign(request, name, "viewer")
        return (await office.desk.read(campaign.status)).to_plain()

    @api.get("/campaigns/{name}/report", tags=["look"])
    async def report(request: Request, name: Name) -> dict[str, Any]:
        """Tell what was asked, how sure one can be, and what all of it rests on."""
        campaign, _ = await office.campaign(request, name, "viewer")
        await office.desk.write(campaign.store.seal, campaign.id)
        return await office.desk.read(lambda: campaign.report().to_plain())

    @api.get("/campaigns/{name}/bands", tags=["look"])
    async def bands(request: Request, name: Name) -> list[dict[str, Any]]:
        """Give each segment's error estimate and bound."""
        campaign, _ = await office.campaign(request, name, "viewer")
        frame = await office.desk.read(campaign.export, "bands")
        found: list[dict[str, Any]] = finite(frame.to_dict("records"))
        return found


def _looking_closely(api: APIRouter, office: Office) -> None:
    @api.get("/campaigns/{name}/history", tags=["look"])
    async def history(
        request: Request,
        name: Name,
        after: Annotated[int, Query(ge=0, description="Rounds after this one.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> list[dict[str, Any]]:
        """Give rounds in order: what was found before each, what it asks, and why."""
        campaign, _ = await office.campaign(request, name, "viewer")
        rounds = await office.desk.read(campaign.store.rounds, campaign.id, after, limit)
        return [{"planned": at, **json.loads(body)} for _, at, body in rounds]

    @api.get("/campaigns/{name}/rounds/{number}", tags=["look"])
    async def one_round(
        request: Request, name: Name, number: Annotated[int, Path(ge=1, le=2**31)]
    ) -> dict[str, Any]:
        """Give one round, and why it asks what it asks."""
        campaign, _ = await office.campaign(request, name, "viewer")
        rounds = await office.desk.read(campaign.store.rounds, campaign.id, number - 1, 1)
        if not rounds or rounds[0][0] != number:
            raise NotFound(f"There is no round {number} in campaign {name!r} yet.")
        return {"planned": rounds[0][1], **json.loads(rounds[0][2])}

    @api.get("/campaigns/{name}/segments/{segment}/matrix", tags=["look"], response_model=Matrix)
    async def matrix(
        request: Request,
        name: Name,
        segment: str,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000, description="Rows.")] = 100,
    ) -> Response:
        """Give some rows of a segment's completed matrix, with labels."""
        campaign, _ = await office.campaign(request, name, "viewer")
        found = await office.desk.read(_matrix, campaign, segment, offset, limit)
        return _as_json(found)

    @api.get("/campaigns/{name}/audit", tags=["look"])
    async def audit(request: Request, name: Name) -> dict[str, str]:
        """Say of each segment whether its draws fell as its band assumes."""
        campaign, _ = await office.campaign(request, name, "viewer")
        status = await office.desk.read(campaign.status)
        return {each.name: each.audit for each in status.segments}

    @api.get("/campaigns/{name}/export/{what}.csv", tags=["look"], response_class=Response)
    async def export(request: Request, name: Name, what: str) -> Response:
        """Give completions, bands or decisions as CSV; for owners also answers and the log."""
        role: Role = "owner" if what in ("answers", "log") else "viewer"
        campaign, _ = await office.campaign(request, name, role)
        text = await office.desk.read(lambda: campaign.export(what).to_csv(index=False))
        return Response(text, media_type="text/csv; charset=utf-8")


def _asking(api: APIRouter, office: Office) -> None:
    @api.post("/campaigns/{name}/ask", tags=["ask"], response_model=Questions)
    async def ask(request: Request, name: Name, wanted: Ask) -> Response:
        """Lend questions; who asks again gets back what they have not settled."""
        campaign, _ = await office.campaign(request, name, "asker")
        given = await _given(office, campaign, wanted)
        words = "" if given else (await office.desk.read(campaign.status)).words
        return _as_json(Questions(questions=[question(each) for each in given], words=words))

    @api.post("/campaigns/{name}/tell", tags=["ask"], response_model=Outcomes)
    async def tell(request: Request, name: Name, told: Tell) -> Response:
        """Record answers; when this returns, they are on the disk.

        A single answer that contradicts the one before is a conflict (409); among several it is
        only reported.
        """
        campaign, _ = await office.campaign(request, name, "asker")
        answers = campaign.read((each.ticket, each.value) for each in told.answers)
        outcomes = await office.desk.tell(campaign, answers)
        if outcomes in (["conflict"], ["gone"]):
            await office.desk.write(campaign.tell, told.answers[0].ticket, told.answers[0].value)
        return _as_json(Outcomes(outcomes=list(outcomes)))

    @api.post("/campaigns/{name}/renew", tags=["ask"])
    async def renew(request: Request, name: Name, wanted: Renew) -> Done:
        """Keep a ticket longer."""
        campaign, _ = await office.campaign(request, name, "asker")
        await office.desk.write(campaign.renew, wanted.ticket, wanted.lease)
        return Done(words="renewed")

    @api.post("/campaigns/{name}/release", tags=["ask"])
    async def release(request: Request, name: Name, wanted: Release) -> Done:
        """Give a ticket back, so that somebody else can be asked."""
        campaign, _ = await office.campaign(request, name, "asker")
        await office.desk.write(campaign.release, wanted.ticket)
        return Done(words="released")

    @api.post("/campaigns/{name}/decline", tags=["ask"])
    async def decline(request: Request, name: Name, wanted: Decline) -> Done:
        """Record that a question was refused."""
        campaign, _ = await office.campaign(request, name, "asker")
        await office.desk.write(campaign.decline, wanted.ticket, wanted.reason)
        return Done(words="declined")

    @api.post("/campaigns/{name}/correct", tags=["ask"])
    async def correct(request: Request, name: Name, wanted: Correct) -> Done:
        """Change an answer; the change and its reason are logged."""
        campaign, visitor = await office.campaign(request, name, "asker")
        before = await office.desk.write(
            campaign.correct, wanted.ticket, wanted.value, reason=wanted.reason, who=visitor.name
        )
        return Done(words=f"changed from {before:g} to {wanted.value:g}")


def _owning(api: APIRouter, office: Office) -> None:
    @api.post("/campaigns/{name}/{turn}", tags=["own"])
    async def turn(
        request: Request,
        name: Name,
        turn: Annotated[str, Path(pattern="^(pause|resume|finish|give-up)$")],
        wanted: Turn,
    ) -> Done:
        """Pause, resume or finish a campaign, or give up what nobody has been lent."""
        campaign, visitor = await office.campaign(request, name, "owner")
        if turn == "give-up":
            given_up = await office.desk.write(campaign.give_up)
            return Done(words=f"{counted(given_up, 'question')} given up")
        work = {"pause": campaign.pause, "resume": campaign.resume, "finish": campaign.finish}[turn]
        await office.desk.write(work, wanted.why, who=visitor.name)
        return Done(words=(await office.desk.read(campaign.status)).words)


async def _given(office: Office, campaign: Campaign, wanted: Ask) -> list[Ticket]:
    """Lend what is wanted: together with others, unless it is of one segment or of who is there."""
    shared: dict[str, Any] = {"lease": wanted.lease, "capacity": wanted.capacity}
    if wanted.rows is None and wanted.segment is None:
        asked = campaign.wanted(wanted.n, who=wanted.who, **shared)
        return await office.desk.ask(campaign, asked)
    shared["rows"] = None if wanted.rows is None else [_label(row) for row in wanted.rows]
    shared |= {"segment": wanted.segment, "plan": False}
    return await office.desk.write(campaign.ask, wanted.n, who=wanted.who, **shared)


def _as_json(found: BaseModel) -> Response:
    """Give what has been checked already, without checking it again."""
    return Response(found.model_dump_json(), media_type="application/json")


def question(ticket: Ticket) -> Question:
    """Give a ticket as the web shows it."""
    return Question(
        ticket=ticket.id,
        segment=ticket.segment,
        row=_shown(ticket.row),
        column=_shown(ticket.column),
        who=ticket.who,
        deadline=ticket.deadline,
        note=ticket.note,
    )


def _shown(label: Any) -> Any:
    return label if isinstance(label, str | int | float) else str(label)


def _label(row: Label) -> Any:
    return tuple(row) if isinstance(row, list) else row


def _matrix(campaign: Campaign, segment: str, offset: int, limit: int) -> Matrix:
    """Give rows of a completed matrix."""
    import numpy as np

    names = [each.name for each in campaign.design.segments]
    if segment not in names:
        raise NotFound(f"There is no segment {segment!r}; there is {', '.join(names)}.")
    finding = campaign.findings()[names.index(segment)]
    if finding is None:
        raise NotFound(f"Segment {segment!r} has not been looked at yet; ask on.")
    done = finding.completion
    rows = np.arange(offset, min(offset + limit, done.shape[0]))
    if len(rows) * done.shape[1] > MOST_CELLS:
        raise InvalidInput(f"That is more than {MOST_CELLS:,} cells; ask for fewer rows at a time.")
    labels = done.labels or (range(done.shape[0]), range(done.shape[1]))
    values = done.predict(rows[:, None], np.arange(done.shape[1])[None, :])
    return Matrix(
        segment=segment,
        shape=done.shape,
        offset=offset,
        rows=[_shown(labels[0][row]) for row in rows],
        columns=[_shown(label) for label in labels[1]],
        values=values.tolist(),
    )
