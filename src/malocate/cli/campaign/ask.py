"""`malocate ask`: what to ask next, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import getpass
import math
import sys
from collections import Counter
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from malocate.cli.campaign.finding import AsJson, Name, Where, opened, seconds
from malocate.cli.campaign.labels import Cells
from malocate.cli.campaign.tables import check_out, print_json, write
from malocate.cli.showing import say, spinning
from malocate.errors import InvalidInput
from malocate.problem.counting import counted

if TYPE_CHECKING:
    from malocate.campaign import Campaign, Ticket

COLUMNS = ("ticket", "segment", "row", "column", "value", "reason", "who", "until", "note")


def ask(
    where: Where = None,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="How many questions.")] = 1,
    who: Annotated[
        str | None,
        typer.Option(help="Who asks: a person or a tablet; by default your login.", metavar="NAME"),
    ] = None,
    lease: Annotated[
        str, typer.Option(help="For how long they are lent: 90s, 45m, 2h, 7d.", metavar="TIME")
    ] = "1h",
    segment: Annotated[str | None, typer.Option(help="Ask this segment only.")] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(help="Who is present: a row's label; once for each. Others are not asked."),
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV; so it does where no terminal reads it.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write a wave to a file: .csv, .xlsx, .parquet or .sav, its segments mixed as "
            "they wait.",
        ),
    ] = None,
    quotas: Annotated[
        bool,
        typer.Option("--quotas", help="Only say how many of each segment to send; lend nothing."),
    ] = False,
    as_json: AsJson = False,
    name: Name = None,
) -> None:
    """Lend the next questions to somebody, until they are answered, declined or overdue.

    Who asks again gets the questions back that are still out, before fresh ones. A file has an
    empty column `value`: fill it in (a refusal: `refused` there, or why in the column `reason`),
    and give the file to `malocate tell --file`.

    When a round is answered, the next is planned here, which may take a while, unless
    `malocate worker` does it. Exit code 1: there is nothing to ask now, and a line says why.
    """
    if as_csv and as_json:
        raise InvalidInput("--csv and --json were both given; choose one.")
    duration = seconds(lease, "--lease")
    if (out or quotas) and (segment or rows):
        raise InvalidInput("--out and --quotas mix the segments; leave --segment and --rows out.")
    if out or quotas:
        check_out(out, None)
    if quotas:
        _quotas(where, name, n, Shown(out, as_csv, as_json))
        return
    if out is not None:
        _keep_filled(out)
    with opened(where, name) as campaign:
        if out is not None:
            _write_wave(campaign, n, who or _login(), duration, out)
            return
        present = None if not rows else Cells(campaign.design).rows(rows, segment)
        with spinning("Asking; after the last answer of a round, the next is planned"):
            tickets = campaign.ask(
                n, who=who or _login(), lease=duration, segment=segment, rows=present
            )
        _show(tickets, as_csv or not (as_json or _on_terminal()), as_json)
        _stop_without(tickets, campaign)


@dataclass(frozen=True)
class Shown:
    """How a result is to be shown."""

    out: Path | None
    as_csv: bool
    as_json: bool


def _stop_without(things: Sized, campaign: Campaign) -> None:
    if not things:
        typer.echo(f"Nothing to ask now. {campaign.status().words}", err=True)
        raise typer.Exit(1)


def _quotas(where: str | None, name: str | None, n: int, shown: Shown) -> None:
    """Show how many of each segment to send next."""
    import pandas as pd

    with opened(where, name) as campaign:
        with spinning("Looking; after the last answer of a round, the next is planned"):
            wave = campaign.wave(n)
        _stop_without(range(wave.total), campaign)
    columns = {"segment": list(wave.quotas), "quota": list(wave.quotas.values())}
    if shown.as_json:
        print_json(wave.to_plain())
    elif shown.as_csv or shown.out:
        write(pd.DataFrame(columns), shown.out, check_out(shown.out, None))
    if not (shown.as_json or (shown.as_csv and not shown.out)):
        say(wave.words)


def _keep_filled(out: Path) -> None:
    """Refuse to replace a wave in which somebody has filled in answers."""
    from malocate.files import read_table

    if not out.exists() or out.suffix.lower() == ".json":
        return
    try:
        lines = read_table(out, ["ticket", "value"]).each()
    except InvalidInput:  # no wave
        return
    if any(line.text("value") or line.text("reason") for line in lines):
        raise InvalidInput(
            f"{out} has answers in it, which would be lost; give `malocate tell --file` the file, "
            "and the new wave another name."
        )


def _write_wave(campaign: Campaign, n: int, who: str, lease: float, out: Path) -> None:
    """Lend a wave, and write it to a file that people fill in."""
    import pandas as pd

    from malocate.campaign.waves import Wave

    with spinning("Asking; after the last answer of a round, the next is planned"):
        tickets = campaign.ask_wave(n, who=who, lease=lease)
    _stop_without(tickets, campaign)
    frame = pd.DataFrame([_line(ticket) for ticket in tickets], columns=list(COLUMNS))
    write(frame, out, check_out(out, None))
    counts = Counter(ticket.segment for ticket in tickets)
    say(Wave(n, campaign.status().round, counts).words)
    say(f"{out}: {counted(len(tickets), 'ticket')}. Next:  malocate tell --file {out}")


def _line(ticket: Ticket) -> tuple[object, ...]:
    cells = (ticket.id, ticket.segment, str(ticket.row), str(ticket.column))
    return (*cells, math.nan, "", ticket.who, _until(ticket), ticket.note)


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise InvalidInput("Your login has no name here; say who asks by --who NAME.") from None


def _show(tickets: Sequence[Ticket], as_csv: bool, as_json: bool) -> None:
    if as_json:
        print_json([each.to_plain() | {"until": _until(each)} for each in tickets])
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(
            (t.id, t.segment, t.row, t.column, "", "", t.who, _until(t), t.note) for t in tickets
        )
    elif tickets:
        Console().print(table(tickets), highlight=False)


def table(tickets: Sequence[Ticket]) -> Table:
    """Give tickets as a table for people; what is asked again is starred."""
    notes = {ticket.note for ticket in tickets if ticket.note}
    caption = "".join(f"* {note}\n" for note in sorted(notes)).rstrip() or None
    title = Text(f"For {tickets[0].who}", style="italic")
    shown = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    shown.add_column("ticket", no_wrap=True)
    for name in ("segment", "row", "column"):
        shown.add_column(name, overflow="fold")
    shown.add_column("until", no_wrap=True)
    for ticket in tickets:
        mark = " *" if ticket.note else ""
        until = datetime.fromtimestamp(ticket.deadline).astimezone()
        cells = (ticket.id, ticket.segment, ticket.row, f"{ticket.column}{mark}", _short(until))
        shown.add_row(*(Text(str(cell)) for cell in cells))
    return shown


def _short(until: datetime) -> str:
    soon = until - datetime.now().astimezone() < timedelta(days=1)
    return f"{until:%H:%M}" if soon else f"{until:%d %b %H:%M}"


def _until(ticket: Ticket) -> str:
    return datetime.fromtimestamp(ticket.deadline, UTC).isoformat(timespec="seconds")
