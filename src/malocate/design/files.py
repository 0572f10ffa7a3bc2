"""Designs as text: TOML and JSON, every default written out."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from malocate.design.design import Design
from malocate.design.tables import from_table, to_table
from malocate.errors import InvalidInput, InvalidType, MalocateError
from malocate.problem.plain import finite


def to_toml(design: Design) -> str:
    """Write a design as TOML."""
    return tomli_w.dumps(to_table(design))


def from_toml(text: str) -> Design:
    """Read a design from TOML."""
    return from_table(_parsed(tomllib.loads, text, "TOML"))


def to_json(design: Design) -> str:
    """Write a design as JSON; an infinite number is the text "inf"."""
    table = finite(to_table(design))
    return json.dumps(table, indent=2, ensure_ascii=False, allow_nan=False, default=_refuse)


def from_json(text: str) -> Design:
    """Read a design from JSON."""
    return from_table(_parsed(_loads, text, "JSON"))


def load(path: Any) -> Design:
    """Read a design from a file that ends in .toml or .json."""
    place = Path(path)
    read = _by_suffix(place, {".toml": from_toml, ".json": from_json})
    try:
        text = place.read_text(encoding="utf-8")
    except OSError as problem:
        raise InvalidInput(f"{place} cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{place} is not text in UTF-8; save it as that.") from None
    try:
        design: Design = read(text)
    except MalocateError as problem:
        raise type(problem)(f"{place.name}: {problem}") from None
    return design


def save(design: Design, path: Any) -> None:
    """Write a design to a file that ends in .toml or .json."""
    place = Path(path)
    text = _by_suffix(place, {".toml": to_toml, ".json": to_json})(design)
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InvalidInput(f"{place} cannot be written: {problem.strerror}.") from None


def _by_suffix(path: Path, ways: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if path.suffix.lower() not in ways:
        raise InvalidInput(f"{path} must end in .toml or .json.")
    return ways[path.suffix.lower()]


def _parsed(parse: Callable[[str], Any], text: str, form: str) -> Any:
    try:
        return parse(text)
    except MalocateError:
        raise
    except RecursionError:
        raise InvalidInput(
            f"The design is not {form} that can be read: it is nested too deeply."
        ) from None
    except ValueError as problem:
        raise InvalidInput(f"The design is not {form}: {problem}.") from None


def _loads(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Give a table whose settings are each given once, as TOML demands of itself."""
    table: dict[str, Any] = {}
    for name, value in pairs:
        if name in table:
            raise InvalidInput(f"The design has {name!r} twice in one table; give it once.")
        table[name] = value
    return table


def _refuse(value: Any) -> Any:
    raise InvalidType(f"The design holds the date {value!r}, which JSON cannot; write it as TOML.")
