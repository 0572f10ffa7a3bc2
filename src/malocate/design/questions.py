"""How people are asked: the question's words, in one or more languages."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from malocate.errors import InvalidInput, InvalidType

PLACES = ("row", "column", "segment")
LONGEST = 500
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class Question:
    """A question about a cell, in one language, and what the ends of the scale mean.

    `text` names the cell by {row} and {column}, and may name the {segment}.

    >>> Question("Wie gern mag {row} {column}?").about(row="Ada", column="Riesling")
    'Wie gern mag Ada Riesling?'
    """

    text: str = "How much does {row} like {column}?"
    low: str = "not at all"
    high: str = "very much"

    def __post_init__(self) -> None:
        for each in fields(self):
            _check_text(each.name, getattr(self, each.name))
        _check_places(self.text)

    def about(self, **names: str) -> str:
        """Give the question about a cell."""
        return self.text.format(**dict.fromkeys(PLACES, "") | names)


def questions_of(given: Any) -> dict[str, Question] | None:
    """Read the questions by language: each is a `Question`, a table of its fields, or its text."""
    if given is None:
        return None
    rule = "they must be a table by language, such as {'en': 'How much does {row} like {column}?'}"
    if not isinstance(given, Mapping):
        raise InvalidType(f"questions are {given!r}; {rule}.")
    if not given:
        raise InvalidInput(f"questions are empty; {rule}, or be left out.")
    return {_language(name): _question(name, each) for name, each in given.items()}


def _language(name: Any) -> str:
    if not isinstance(name, str) or not _LANGUAGE.fullmatch(name):
        raise InvalidInput(
            f"questions has the language {name!r}; write it as a tag, such as en, fr or pt-BR."
        )
    return name


def _question(language: str, given: Any) -> Question:
    where = f"questions.{language}"
    if isinstance(given, Question):
        return given
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, Mapping):
        raise InvalidType(f"{where} is {given!r}; it must be a table with a text, low and high.")
    known = [each.name for each in fields(Question)]
    for name in given:
        if name not in known:
            raise InvalidInput(
                f"{where} has an unknown setting {name!r}. Known are {', '.join(known)}."
            )
    try:
        return Question(**given)
    except (InvalidInput, InvalidType) as problem:
        raise type(problem)(f"{where}: {problem}") from None


def _check_text(name: str, text: Any) -> None:
    if not isinstance(text, str):
        raise InvalidType(f"{name} is {text!r}; it must be text.")
    if not text.strip() or not text.isprintable() or len(text) > LONGEST:
        raise InvalidInput(
            f"{name} is {text!r}; it must be one line of 1 to {LONGEST} printable letters."
        )


def _check_places(text: str) -> None:
    """Refuse a text with other places than ours, or with none."""
    rule = "it may name {row}, {column} and {segment}, and must name the row or the column"
    try:
        found = [part[1:] for part in string.Formatter().parse(text) if part[1] is not None]
    except ValueError:
        raise InvalidInput(f"text is {text!r}; {rule}. A brace alone is written twice.") from None
    plain = all(name in PLACES and not form and not way for name, form, way in found)
    if not plain or not any(name in ("row", "column") for name, *_ in found):
        raise InvalidInput(f"text is {text!r}; {rule}.")
