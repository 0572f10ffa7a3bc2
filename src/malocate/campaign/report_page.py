"""The report as one page of HTML: it loads nothing, needs no script, and prints well."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from jinja2 import Template
from markupsafe import Markup

import malocate
from malocate.campaign.history import History
from malocate.campaign.report_parts import LARGEST, MOST_SEGMENTS, Facts, facts_of
from malocate.campaign.reporting import reported
from malocate.campaign.status import Status
from malocate.design import Design
from malocate.drawing.templates import environment
from malocate.rounds import Finding
from malocate.store import Store


def page_of(
    store: Store,
    campaign: int,
    design: Design,
    status: Status,
    findings: Sequence[Finding | None],
    now: float,
) -> str:
    """Give a campaign's report as a page; `now` is when it is made, in seconds since 1970."""
    report, history = reported(store, campaign, design, status, findings), History()
    history.read(store, campaign, patience=None)
    return render(facts_of(report, design, findings, history, store.held(campaign)), now)


def render(facts: Facts, now: float) -> str:
    """Write the page."""
    made = f"{datetime.fromtimestamp(now, tz=UTC):%Y-%m-%d %H:%M} UTC"
    style = files("malocate.campaign").joinpath("templates", "report.css")
    return _template().render(
        facts=facts,
        status=facts.report.status,
        made=made,
        style=Markup(style.read_text(encoding="utf-8")),  # noqa: S704  # our own file
        version=malocate.__version__,
        largest=LARGEST,
        most_segments=MOST_SEGMENTS,
    )


@cache
def _template() -> Template:
    return environment("malocate.campaign").get_template("report.html")
