"""Errors as the web tells them: one form, and the same sentence as the library's."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from malocate.errors import Conflict, InvalidInput, InvalidType, MalocateError, NotFound, StoreError
from malocate.server.access import NotAllowed

STATUSES: tuple[tuple[type[MalocateError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (InvalidInput, 422),
    (InvalidType, 422),
    (StoreError, 503),
)


class Problem(BaseModel):
    """What went wrong."""

    status: int
    kind: str
    sentence: str


def told(status: int, kind: str, sentence: str) -> JSONResponse:
    """Give an error in the one form that all have."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    body = Problem(status=status, kind=kind, sentence=sentence).model_dump()
    return JSONResponse(body, status_code=status, headers=headers)


def status_of(problem: MalocateError) -> int:
    """Give the HTTP status of one of our errors."""
    if isinstance(problem, NotAllowed):
        return problem.status
    return next((status for kind, status in STATUSES if isinstance(problem, kind)), 400)


def install(app: FastAPI) -> None:
    """Let the app tell every error in this form."""

    @app.exception_handler(MalocateError)
    async def ours(_: Request, problem: MalocateError) -> JSONResponse:
        return told(status_of(problem), type(problem).__name__, str(problem))

    @app.exception_handler(RequestValidationError)
    async def unreadable(_: Request, problem: RequestValidationError) -> JSONResponse:
        first = problem.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return told(422, "InvalidInput", f"{place}: {first['msg']}.")

    @app.exception_handler(Exception)
    async def unforeseen(_: Request, __: Exception) -> JSONResponse:
        return told(500, "Error", "Something went wrong in the server; its log says more.")

    @app.exception_handler(HTTPException)
    async def other(_: Request, problem: HTTPException) -> JSONResponse:
        if problem.status_code == 400:  # the only one: bytes that are no text
            return told(422, "InvalidInput", "The body cannot be read; send JSON in UTF-8.")
        kind = {404: "NotFound", 405: "NotAllowed"}.get(problem.status_code, "Error")
        return told(problem.status_code, kind, f"{problem.detail}.")
