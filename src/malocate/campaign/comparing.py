"""Whether the tables of a campaign hold what its log, lived through again, leads to."""

from __future__ import annotations

import json

import numpy as np

from malocate.campaign import memory
from malocate.campaign.replaying import Differs, Replayed, compare
from malocate.campaign.stepping import found_of
from malocate.rounds import Finding
from malocate.store import Look

CLOSE_FITS = 1e-6
"""Difference between completed values, relative to the largest, up to which they are the same."""


def compare_tables(look: Look, now: Replayed) -> None:
    """Compare all that a report or an export reads; raise `Differs` at the first difference."""
    _compare_draws(look, now)
    _compare_campaign(look, now)
    _compare_rounds(look, now)
    if not now.unproven:
        _compare_findings(look, now)


def _compare_draws(look: Look, now: Replayed) -> None:
    count = 0
    for drawn in look.every_draw():
        if drawn.id in now.gone and drawn.value is None:
            continue
        count += 1
        expected = now.draws.get(drawn.id)
        if expected is None:
            raise Differs(f"the tables hold a draw {drawn.id} that nobody planned")
        for name in _COMPARED:
            one, two = getattr(drawn, name), getattr(expected, name)
            if one != two:
                words = f"draw {drawn.id} has {name} {one!r} in the tables and {two!r} by the log"
                raise Differs(words)
    if count != len(now.draws):
        raise Differs(f"the tables hold {count:,} draws and the log tells of {len(now.draws):,}")


_COMPARED = ("segment", "number", "row", "col", "repeats", "probability", "state", "value")


def _compare_campaign(look: Look, now: Replayed) -> None:
    held = look.held
    for name, one, two in (("state", held.state, now.state), ("reason", held.why, now.why)):
        if one != two:
            words = f"the campaign's {name} is {one!r} in the tables and {two!r} by the log"
            raise Differs(words)
    if held.design != now.stage.design.to_toml():
        raise Differs("the design in the tables is not the one that the log tells of")
    compare(json.loads(held.caveats) or _NONE, now.stage.caveats.to_plain(), "the caveats")


_NONE: dict[str, dict[str, str]] = {"since": {}, "doubts": {}}


def _compare_rounds(look: Look, now: Replayed) -> None:
    rounds = {number: json.loads(body) for number, _, body in look.rounds()}
    if sorted(rounds) != sorted(now.bodies) or look.held.round != len(rounds):
        words = f"the tables hold {len(rounds):,} rounds and the log tells of {len(now.bodies):,}"
        raise Differs(words)
    for number, body in rounds.items():
        compare(body, now.bodies[number], f"round {number} in the tables")


def _compare_findings(look: Look, now: Replayed) -> None:
    """Compare what was found: numbers that a status shows, bands, and completions."""
    compare(json.loads(look.held.standing), now.standing, "the standing in the tables")
    kept = memory.unpack_all(look.memories(), now.stage.design)
    for segment, one, two in zip(now.stage.design.segments, kept, now.stage.findings, strict=True):
        where = f"the last look of segment {segment.name!r} in the tables"
        compare(found_of(one), found_of(two), where)
        if one is not None and two is not None and not _same_fits(one, two):
            raise Differs(f"{where} has another completion than the answers give")


def _same_fits(one: Finding, two: Finding) -> bool:
    if one.completion.shape != two.completion.shape:
        return False
    pairs = zip(one.completion.blocks(), two.completion.blocks(), strict=True)
    return all(
        np.allclose(mine, other, rtol=0.0, atol=CLOSE_FITS * max(1.0, float(np.abs(other).max())))
        for (_, mine), (_, other) in pairs
    )
