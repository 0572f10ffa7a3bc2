"""The office: the campaigns of one database, opened once, and who may come in."""

from __future__ import annotations

from fastapi import Request

from malocate.campaign import Campaign
from malocate.errors import NotFound
from malocate.server.access import Gate, NotAllowed, Role, Visitor
from malocate.server.desk import Desk
from malocate.server.protection import check_origin
from malocate.store import Store, Tokens

COOKIE = "malocate"


class Office:
    """What every request needs: the store, its campaigns, the gate and the desk."""

    def __init__(self, store: Store, *, open_to_all: bool = False) -> None:
        self.store = store
        self.tokens = Tokens(store.database)
        self.gate = Gate(self.tokens, open_to_all=open_to_all)
        self.desk = Desk()
        self._campaigns: dict[str, Campaign] = {}

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
        known = self._campaigns.get(name)
        if known is None and name in await self.desk.read(self.store.names):
            known = Campaign(self.store, await self.desk.read(self.store.find, name))
            self._campaigns[name] = known
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
