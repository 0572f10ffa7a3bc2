"""What the next planner needs of a segment's last look, as bytes without pickles.

Kept are the completions, bit for bit, and everything that the band says. Not kept are the answers
behind them: they are in the store.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from malocate.confidence.audit import Audit, Check
from malocate.confidence.band import Band, Folding
from malocate.confidence.bounds import bound_of
from malocate.confidence.ensemble import Ensemble
from malocate.confidence.evidence import Evidence
from malocate.confidence.noise import Noise
from malocate.design import Design
from malocate.estimators.base import Completion
from malocate.problem import Segment
from malocate.problem.plain import finite
from malocate.rounds import Finding

Read = Callable[[bytes, Design, int], Finding]
"""Reads a finding, for the segment at a place of the design."""

Taken = Callable[[Any], Any]
"""Gives the completion or the ensemble that is at a place among the parts."""

_SAID = (
    "estimate", "se", "upper", "label", "given", "noise", "replicated", "delivered",
    "ensemble_upper", "answers", "reason", "delta", "certainty",
)  # fmt: skip
_NUMBERS = {"estimate", "se", "upper", "noise", "ensemble_upper", "delta", "certainty"}


def pack(finding: Finding) -> bytes:
    """Give a finding as bytes."""
    bands = {"band": finding.band}
    if finding.latest is not finding.band:
        bands["latest"] = finding.latest
    parts: list[Completion] = []
    head = {
        "asked": finding.asked,
        "number": finding.number,
        "on_grid": finding.on_grid,
        "noise": list(finding.noise),
        "scatter": finding.scatter,
        "trail": [list(each) for each in finding.trail],
        "completion": _placed(finding.completion, parts),
        "bands": {name: _said(band, parts) for name, band in bands.items()},
    }
    return _joined(json.dumps(finite(head)).encode(), parts)


@dataclass(frozen=True, eq=False)
class Unread:
    """Stands where a completion would, and keeps the bytes that it is in."""

    body: bytes


def unpack(body: bytes, design: Design, place: int) -> Finding:
    """Read a finding back, for the segment at `place` of the design."""
    told, files = _split(body)
    segment = design.segments[place]
    loaded = [Completion.load(io.BytesIO(each)) for each in files]
    parts = [_labelled(each, segment) for each in loaded]
    return _finding(told, lambda where: _taken(where, parts), design, segment)


def outline(body: bytes, design: Design, place: int) -> Finding:
    """Read a finding's numbers and words alone, which is all that deciding where to ask needs."""
    unread: Any = Unread(body)
    return _finding(_split(body)[0], lambda _: unread, design, design.segments[place])


def whole(finding: Finding | None, design: Design, place: int) -> Finding | None:
    """Give a finding with its completions, reading them where they are unread."""
    kept: Any = None if finding is None else finding.completion
    return unpack(kept.body, design, place) if isinstance(kept, Unread) else finding


def _finding(told: dict[str, Any], taken: Taken, design: Design, segment: Segment) -> Finding:
    bands = {name: _band(each, taken, design, segment) for name, each in told["bands"].items()}
    return Finding(
        asked=told["asked"],
        number=told["number"],
        completion=taken(told["completion"]),
        band=bands["band"],
        on_grid=told["on_grid"],
        latest=bands.get("latest", bands["band"]),
        noise=tuple(float(each) for each in told["noise"]),  # type: ignore[arg-type]
        scatter=float(told["scatter"]),
        trail=tuple((int(asked), float(upper)) for asked, upper in told["trail"]),
    )


def unpack_all(
    kept: Mapping[int, bytes], design: Design, read: Read = unpack
) -> list[Finding | None]:
    """Give what the last look of every segment found; None for those without one."""
    return [
        read(kept[place], design, place) if place in kept else None
        for place in range(len(design.segments))
    ]


class Kept(Sequence[Finding | None]):
    """What the last look of every segment found, each read from its bytes when it is wanted."""

    def __init__(self, bodies: Mapping[int, bytes], design: Design) -> None:
        self._bodies, self._design = bodies, design
        self._read: dict[int, Finding] = {}

    def __len__(self) -> int:
        """Count the segments."""
        return len(self._design.segments)

    @overload
    def __getitem__(self, place: int) -> Finding | None: ...
    @overload
    def __getitem__(self, place: slice) -> list[Finding | None]: ...
    def __getitem__(self, place: int | slice) -> Finding | list[Finding | None] | None:
        """Give what is known of the segment at a place; None before its first look."""
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        place = range(len(self))[place]
        if place not in self._bodies:
            return None
        if place not in self._read:
            self._read[place] = unpack(self._bodies[place], self._design, place)
        return self._read[place]


def _labelled(done: Completion, segment: Segment) -> Completion:
    """Give the segment's labels to a completion, unless rows or columns were added since."""
    return replace(done, labels=segment.labels) if done.shape == segment.shape else done


def _said(band: Band | None, parts: list[Completion]) -> dict[str, Any] | None:
    if band is None:
        return None
    said: dict[str, Any] = {name: getattr(band, name) for name in _SAID}
    said["completion"] = _placed(band.completion, parts)
    said["ensemble"] = _placed(band.ensemble, parts)
    if band.audit is not None:
        checks = [[check.name, check.p_value, check.words] for check in band.audit.checks]
        counts = {n: getattr(band.audit, n) for n in ("level", "draws", "replicates", "missing")}
        said["audit"] = counts | {"checks": checks}
    return said


def _band(
    told: dict[str, Any] | None, taken: Taken, design: Design, segment: Segment
) -> Band | None:
    if told is None:
        return None
    said: dict[str, Any] = {n: float(told[n]) if n in _NUMBERS else told[n] for n in _SAID}
    nothing = segment.observations([], [], [])
    return Band(
        **said,
        completion=taken(told["completion"]),
        ensemble=taken(told["ensemble"]),
        bound=bound_of(design.bound, nothing, design.scheme.whole),
        audit=_audit(told.get("audit")),
        folding=Folding(design.scheme, design.seed, segment.name),
        evidence=Evidence([], Noise(), nothing, design.scheme.whole),
    )


def _audit(told: dict[str, Any] | None) -> Audit | None:
    if told is None:
        return None
    checks = tuple(Check(name, float(p), words) for name, p, words in told["checks"])
    counts = {name: value for name, value in told.items() if name != "checks"}
    return Audit(checks=checks, **counts)


def _placed(done: Completion | Ensemble, parts: list[Completion]) -> Any:
    """Give where a completion is among the parts, adding it where it is not; a list for many."""
    if isinstance(done, Ensemble):
        return [_placed(member, parts) for member in done.members]
    for place, part in enumerate(parts):
        if part is done:
            return place
    parts.append(done)
    return len(parts) - 1


def _taken(where: Any, parts: list[Completion]) -> Completion | Ensemble:
    if isinstance(where, list):
        return Ensemble(tuple(parts[place] for place in where))
    done: Completion = parts[where]
    return done


def _joined(head: bytes, parts: list[Completion]) -> bytes:
    """Give a head and files one after the other, each behind its length."""
    pieces = [head]
    for part in parts:
        file = io.BytesIO()
        replace(part, labels=None).save(file)
        pieces.append(file.getvalue())
    return zlib.compress(b"".join(struct.pack("<q", len(p)) + p for p in pieces), level=1)


def _split(body: bytes) -> tuple[dict[str, Any], list[bytes]]:
    text, pieces, at = zlib.decompress(body), [], 0
    while at < len(text):
        (length,) = struct.unpack_from("<q", text, at)
        pieces.append(text[at + 8 : at + 8 + length])
        at += 8 + length
    return json.loads(pieces[0]), pieces[1:]
