"""The office: the campaigns of one database, opened once, and who may come in."""

from __future__ import annotations

import threading
from contextlib import suppress

from fastapi import Request

from malocate.campaign import Campaign
from malocate.errors import MalocateError, NotFound
from malocate.server.access import Gate, NotAllowed, Role, Visitor
from malocate.server.desk import Desk
from malocate.server.protection import check_origin
from malocate.store import Store, Tokens

COOKIE = "malocate"
MOST_AT_ONCE = 100
"""Campaigns, the newest, that are opened at the start; others wait until somebody comes."""


class Office:
    """What every request needs: the store, its campaigns, the gate and the desk."""

    def __init__(self, store: Store, *, open_to_all: bool = False) -> None:
        self.store = store
        self.tokens = Tokens(store.database)
        self.gate = Gate(self.tokens, open_to_all=open_to_all)
        self.desk = Desk()
        self._campaigns: dict[str, Campaign] = {}
        self._opening = threading.Lock()

    def open_all(self) -> None:
        """Open the campaigns that are there, so that nobody has to wait for it later."""
        for name in self.store.names()[-MOST_AT_ONCE:]:
            with suppress(MalocateError):  # whoever wants it is told what is wrong
                self._opened(name)

    async def enter(self, request: Request, role: Role) -> Visitor:
        """Let a visitor in who may do what `role` may, in whatever campaign."""
        visitor = await self._visitor(request)
        self._check(visitor, role, None)
        return visitor

    async def campaign(self, request: Request, name: str, role: Role) -> tuple[Campaign, Visitor]:
        """Give a campaign to a visitor who may do what `role` may there.

        Who may not learn of it is told the same whether it exists or not.
        """
        visitor = await self._visitor(request)
        known = self._campaigns.get(name) or await self.desk.read(self._opened, name)
        self._check(visitor, role, None if known is None else known.id)
        if known is None or not visitor.may("viewer", known.id):
            raise NotFound(f"There is no campaign {name!r} here, or not for this token.")
        return known, visitor

    async def names(self, request: Request) -> list[str]:
        """Give the names of the campaigns that a visitor may see."""
        visitor = await self.enter(request, "viewer")
        names = await self.desk.read(self.store.names)
        held = [await self.desk.read(self.store.find, name) for name in names]
        return [each.name for each in held if visitor.may("viewer", each.id)]

    def close(self) -> None:
        """Finish what is in line, and let go of the database."""
        self.desk.close()
        self.store.close()

    def _opened(self, name: str) -> Campaign | None:
        """Give a campaign; of many who want it at once, one opens it."""
        with self._opening:
            if name not in self._campaigns and name in self.store.names():
                self._campaigns[name] = Campaign(self.store, self.store.find(name))
            return self._campaigns.get(name)

    async def _visitor(self, request: Request) -> Visitor:
        token = bearer(request)
        if token is None:  # whoever comes by a cookie, or where all is open, comes from our pages
            check_origin(request)
            token = request.cookies.get(COOKIE)
        if self.gate.remembers(token):
            return self.gate.visitor(token)
        return await self.desk.read(self.gate.visitor, token)

    @staticmethod
    def _check(visitor: Visitor, role: Role, campaign: int | None) -> None:
        if campaign is not None and not visitor.may("viewer", campaign):
            return  # told as if there were no such campaign
        if not visitor.may(role, campaign):
            raise NotAllowed(
                403, f"This needs the role {role}; this token has the role {visitor.role}."
            )


def bearer(request: Request) -> str | None:
    """Give the token of the header `Authorization: Bearer …`."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None
