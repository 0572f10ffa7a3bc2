"""Questions whose answers make a design, and the file that it is written to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from malocate.cli.showing import say
from malocate.errors import InvalidInput, MalocateError

if TYPE_CHECKING:
    from malocate.design import Design
    from malocate.problem import Segment

Thing = TypeVar("Thing")
NONE = "none"


def interview() -> Path:
    """Ask what is to be surveyed, write it down as a design, and give the file."""
    say("A few questions; Enter takes what is in brackets, Ctrl-C stops and writes nothing.")
    say("Rows and columns: a number, names with commas between, or a file with a name per line.")
    path = _asked("Name of the survey", "survey", _free_file)
    segments: list[Segment] = []
    while not segments or typer.confirm("Another segment?", default=False):
        segments.append(_segment([each.name for each in segments]))
    design = _design(segments)
    design.save(path)
    say(f"Wrote {path}; every setting that you were not asked for has its default in there.")
    return path


def _segment(taken: list[str]) -> Segment:
    """Ask for one segment."""
    from malocate.problem import Segment

    def fresh(text: str) -> str:
        if text in taken:
            raise InvalidInput(f"There is a segment {text!r} already; take another name.")
        return text

    name = _asked("Name of a segment (a region, panel or cohort)", "all", fresh)
    rows = _asked("Its rows, such as people", "50", side)
    columns = _asked("Its columns, such as products", "20", side)
    scale = _asked("Lowest and highest answer, or none", "1 5", _scale)
    if isinstance(rows, int) and isinstance(columns, int):
        return Segment(name, (rows, columns), scale=scale)
    return Segment(name, labels=(_labels(rows), _labels(columns)), scale=scale)


def _design(segments: list[Segment]) -> Design:
    """Ask for the money and the goal; ask again where they do not fit the segments."""
    from malocate.design import Design

    sides = sum(sum(segment.shape) for segment in segments)
    while True:
        budget = _asked("Budget, in answers", str(20 * sides), _positive)
        goal = _asked("Stop when every root mean squared error is below (or none)", NONE, _goal)
        try:
            return Design(tuple(segments), budget=budget, rmse=goal)
        except MalocateError as problem:
            typer.echo(str(problem), err=True)


def side(text: str) -> int | list[str]:
    """Read one side of a matrix: how long it is, or its labels.

    >>> side("60"), side("red, white")
    (60, ['red', 'white'])
    """
    if text.isdecimal() and int(text) > 0:
        return int(text)
    if Path(text).is_file():
        try:
            lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"{text} cannot be read as text in UTF-8.") from None
        return _distinct([line.strip() for line in lines if line.strip()])
    if "," not in text:
        raise InvalidInput(f"{text!r} is no number above 0, no list with commas and no file here.")
    return _distinct([part.strip() for part in text.split(",") if part.strip()])


def _distinct(names: list[str]) -> list[str]:
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        words = f"{twice[0]!r} comes twice" if twice else "There is no name"
        raise InvalidInput(f"{words}; each name must come once.")
    return names


def _labels(given: int | list[str]) -> list[Any]:
    return list(range(1, given + 1)) if isinstance(given, int) else given


def _scale(text: str) -> tuple[float, float] | None:
    if text == NONE:
        return None
    try:
        low, high = (float(part) for part in text.replace(",", " ").split())
    except ValueError:
        low = high = 0.0
    if not low < high:
        raise InvalidInput(f"{text!r} is no scale; write two numbers, such as 1 5, or none.")
    return low, high


def _positive(text: str) -> float:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise InvalidInput(f"{text!r} is no number above 0.")
    return number


def _goal(text: str) -> float | None:
    return None if text == NONE else _positive(text)


def _free_file(text: str) -> Path:
    """Give the design's file, which must not be there yet, nor its database."""
    path = Path(text if text.endswith(".toml") else f"{text}.toml")
    for each in (path, path.with_suffix(".db")):
        if each.exists():
            raise InvalidInput(f"{each} exists already; take another name.")
    if not path.parent.is_dir():
        raise InvalidInput(f"The folder {path.parent} does not exist; make it first.")
    return path


def _asked(question: str, default: str, read: Callable[[str], Thing]) -> Thing:
    """Ask until the answer can be read."""
    while True:
        try:
            return read(str(typer.prompt(question, default=default)).strip())
        except MalocateError as problem:
            typer.echo(str(problem), err=True)
