"""Who may do what: tokens with roles, for one campaign or for all.

A token is shown once, when it is made; the database keeps its digest. A *viewer* looks, an *asker*
also asks and answers, an *owner* also changes the campaign.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from malocate.errors import Conflict, InvalidInput, MalocateError, NotFound
from malocate.store import Token, Tokens

Role = Literal["viewer", "asker", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)

EVERYWHERE = 0
"""The campaign of a token that opens all campaigns of a database."""

REMEMBERED, LOOKING = 1.8, 0.2
"""Seconds for which a token is known without asking the database, and for which others go by that
while one asks it: together, a revoked one works as long."""


MOST_KNOWN = 10_000


class NotAllowed(MalocateError, PermissionError):
    """Nobody is let in: the token is missing, unknown, revoked, or its role is too small.

    `status` is the HTTP status, 401 or 403.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Visitor:
    """Who is at the door: the role, the campaign that it is for, and a name for the log."""

    role: Role
    campaign: int
    name: str

    def may(self, role: Role, campaign: int | None) -> bool:
        """Tell whether the visitor may do what `role` may do in a campaign (None: in general)."""
        here = self.campaign == EVERYWHERE or campaign is None or self.campaign == campaign
        return here and ROLES.index(self.role) >= ROLES.index(role)


ANYBODY = Visitor("owner", EVERYWHERE, "anybody")
"""Whoever comes where everything is open, on a loopback address alone."""


def new_token(
    tokens: Tokens, campaign: int, name: str, role: str, clock: Callable[[], float] = time.time
) -> str:
    """Make a token and give it: this is the only time that it can be seen."""
    if role not in ROLES:
        raise InvalidInput(f"role is {role!r}; choose from {', '.join(ROLES)}.")
    if not name:
        raise InvalidInput("The token has no name; give one, such as that of a person or tablet.")
    token = f"mlc-{role}-{secrets.token_urlsafe(24)}"
    if not tokens.add(campaign, name, role, digest_of(token), now=clock()):
        raise Conflict(
            f"There is or was a token for {name!r}, and the log must tell them apart; take another "
            f"name, such as '{name} 2'."
        )
    return token


def revoke_token(
    tokens: Tokens, campaign: int, name: str, clock: Callable[[], float] = time.time
) -> None:
    """Let a token open nothing any more."""
    if not tokens.revoke(campaign, name, now=clock()):
        raise NotFound(f"There is no token {name!r} that could be revoked.")


def digest_of(token: str) -> bytes:
    """Give what the database keeps of a token; it is long and random, so a plain digest will do."""
    return hashlib.blake2b(token.encode(), digest_size=32, person=b"malocate-token").digest()


class Gate:
    """Knows visitors by their tokens; looks a digest up, so that no time tells of a near miss."""

    def __init__(self, tokens: Tokens, *, open_to_all: bool = False) -> None:
        self._tokens, self.open_to_all = tokens, open_to_all
        self._known: dict[bytes, tuple[float, Token | None]] = {}
        self._looking = threading.Lock()

    def remembers(self, token: str | None) -> bool:
        """Tell whether a token needs no look at the database."""
        if self.open_to_all or not token:
            return True
        kept = self._known.get(digest_of(token))
        return kept is not None and kept[0] > time.monotonic()

    def visitor(self, token: str | None) -> Visitor:
        """Give who has this token; refuse one that is missing, unknown or revoked."""
        if self.open_to_all:
            return ANYBODY
        if not token:
            raise NotAllowed(401, "This needs a token; send it as `Authorization: Bearer …`.")
        found = self._found(digest_of(token))
        if found is None or found.revoked is not None:
            raise NotAllowed(401, "This token is not known, or was revoked; ask for another.")
        role: Role = next(role for role in ROLES if role == found.role)
        return Visitor(role, found.campaign, found.name)

    def _found(self, digest: bytes) -> Token | None:
        """Look a token up; of many who bring it at once, one asks the database."""
        kept = self._known.get(digest)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        if kept is not None:
            self._known[digest] = time.monotonic() + LOOKING, kept[1]
        with self._looking:
            now = self._known.get(digest)
            if kept is None and now is not None:
                return now[1]
            return self._asked(digest)

    def _asked(self, digest: bytes) -> Token | None:
        found = self._tokens.find(digest)
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known[digest] = time.monotonic() + REMEMBERED, found
        return found
