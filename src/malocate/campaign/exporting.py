"""What a campaign knows as frames: answers, completions, bands, decisions and the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from malocate.design import Design
from malocate.errors import InvalidInput
from malocate.problem.draws import BEFORE
from malocate.rounds import Finding
from malocate.store import Store
from malocate.store.draws import COUNTING

if TYPE_CHECKING:
    import pandas

Rows = list[dict[str, Any]]
Findings = Sequence[Finding | None]

ANSWERS = (
    "segment", "row", "column", "value", "draw", "repeats", "probability", "round", "who", "late",
    "imported", "told",
)  # fmt: skip
BANDS = (
    "segment", "answers", "rmse", "rmse_upper", "label", "estimate", "se", "upper", "noise",
    "certainty", "given", "reason",
)  # fmt: skip


def answers(store: Store, campaign: int, design: Design) -> pandas.DataFrame:
    """One line for each answer that counts, by label, in the order of asking."""
    import pandas

    rows: Rows = []
    with store.looking(campaign) as look:
        for each in look.every_draw():
            if each.state not in COUNTING:
                continue
            segment = design.segments[each.segment]
            row, column = each.row, each.col
            if segment.labels is not None:
                row, column = segment.labels[0][row], segment.labels[1][column]
            imported = each.number >= BEFORE
            values = (
                segment.name, row, column, each.value, -1 if imported else each.number,
                each.repeats, each.probability, each.round, each.who or "", each.late, imported,
                each.told,
            )  # fmt: skip
            rows.append(dict(zip(ANSWERS, values, strict=True)))
    return pandas.DataFrame(rows, columns=list(ANSWERS))


def completions(design: Design, findings: Findings) -> pandas.DataFrame:
    """One line for each cell of each segment that was looked at, by label."""
    import pandas

    frames = []
    for segment, finding in zip(design.segments, findings, strict=True):
        if finding is not None:
            frame = finding.completion.to_frame()
            frame.insert(0, "segment", segment.name)
            frames.append(frame)
    empty = pandas.DataFrame(columns=["segment", "row", "column", "value"])
    return pandas.concat(frames, ignore_index=True) if frames else empty


def bands(design: Design, findings: Findings) -> pandas.DataFrame:
    """One line for each segment whose completion was judged."""
    import pandas

    rows: Rows = []
    for segment, finding in zip(design.segments, findings, strict=True):
        band = None if finding is None else finding.band
        if band is not None:
            told = {name: getattr(band, name) for name in BANDS[1:]}
            rows.append({"segment": segment.name, **told})
    return pandas.DataFrame(rows, columns=list(BANDS))


def decisions(store: Store, campaign: int) -> pandas.DataFrame:
    """One line for each round: what was spent and found before it, what it asks, and why."""
    import pandas

    rows: Rows = []
    for number, _, body in store.rounds(campaign):
        told = json.loads(body)
        asks = {segment: stop - first for segment, first, stop in told["batches"]}
        row = {"round": number, "spent": told["spent"], "bound": float(told["bound"])}
        found, index = (json.dumps(told[name], ensure_ascii=False) for name in ("found", "index"))
        row |= {"label": told["label"], "asks": json.dumps(asks, ensure_ascii=False)}
        rows.append(row | {"why": told["why"], "index": index, "found": found})
    names = ["round", "spent", "bound", "label", "asks", "why", "index", "found"]
    return pandas.DataFrame(rows, columns=names)


def log(store: Store, campaign: int) -> pandas.DataFrame:
    """One line for each event, as it was written; the body is JSON, empty once it was erased."""
    import pandas

    rows = [(each.id, each.at, each.kind, each.body or "") for each in store.events(campaign)]
    return pandas.DataFrame(rows, columns=["event", "at", "kind", "body"])


def export(
    what: str, store: Store, campaign: int, design: Design, findings: Callable[[], Findings]
) -> pandas.DataFrame:
    """Give one of the frames by its name."""
    frames: dict[str, Callable[[], pandas.DataFrame]] = {
        "answers": lambda: answers(store, campaign, design),
        "completions": lambda: completions(design, findings()),
        "bands": lambda: bands(design, findings()),
        "decisions": lambda: decisions(store, campaign),
        "log": lambda: log(store, campaign),
    }
    if what not in frames:
        raise InvalidInput(f"There is no export {what!r}; choose from {', '.join(frames)}.")
    return frames[what]()
