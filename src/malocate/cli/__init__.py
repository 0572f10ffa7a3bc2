"""The command line: parse, call, render. Each command is a module of its own."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import malocate
from malocate.cli import campaign, token
from malocate.cli.compare import compare
from malocate.cli.complete import complete
from malocate.cli.demo import demo
from malocate.cli.panels import grouped
from malocate.cli.plan import plan
from malocate.cli.reproduce import reproduce
from malocate.cli.serve import serve
from malocate.cli.simulate import simulate
from malocate.errors import MalocateError, StoreError

__all__ = ["app"]


class OneLineErrors(TyperGroup):
    """Commands that end an error of ours in one line and exit code 2, and Ctrl-C with 130.

    Trouble with a database ends with 3: what was refused stays refused, this may be tried again.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except MalocateError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(3 if isinstance(error, StoreError) else 2) from error
        except (KeyboardInterrupt, typer.Abort) as stopped:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(130) from stopped


app = typer.Typer(
    cls=OneLineErrors,
    help="Spend a survey budget where it teaches you most.",
    epilog=campaign.CODES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"malocate {malocate.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None: ...


app.command(epilog="Example:  malocate complete ratings.csv -o completed.csv --scale 1 5")(complete)
app.command(epilog="Example:  malocate compare ratings.csv --columns red white --scale 1 5")(
    compare
)
app.command(epilog="Example:  malocate demo --seed 7 --output seven.png")(demo)
app.command(epilog="Example:  malocate simulate tasting.toml --rank 2 --rank north=6 --out trial")(
    simulate
)
app.command(epilog='Example:  malocate plan tasting.toml --target "rmse<=0.3" --out plan.png')(plan)
app.command(epilog="Example:  malocate reproduce 1 --runs 3 --recipe best --out trial")(reproduce)
campaign.add_to(app)
app.command(epilog="Example:  malocate serve tasting.db --port 8000")(serve)
app.add_typer(token.app, name="token")
grouped(app)
