"""Designs as text: TOML and JSON, every default written out."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from malocate.confidence.bounds import BOUNDS
from malocate.confidence.schemes import SCHEMES
from malocate.design.design import Design
from malocate.design.schedules import SCHEDULES
from malocate.errors import InvalidInput, InvalidType, MalocateError
from malocate.estimators.plugins import ESTIMATORS
from malocate.problem import Loss, Segment
from malocate.problem.arrays import Bools
from malocate.strategies.plugins import STRATEGIES

Table = dict[str, Any]

PARTS: dict[str, Callable[[str], Callable[..., Any]]] = {
    "estimator": ESTIMATORS.find,
    "validation": lambda name: _known(SCHEMES, name, "validation"),
    "strategy": STRATEGIES.find,
    "schedule": lambda name: _known(SCHEDULES, name, "schedule"),
    "bound": lambda name: _known(BOUNDS, name, "bound"),
}


def to_table(design: Design) -> Table:
    """Give a design as nested tables of plain values; what is None is left out."""
    table: Table = {}
    for each in fields(design):
        value = getattr(design, each.name)
        if each.name == "segments" or value is None:
            continue
        table[each.name] = _plain(each.name, value)
    table["segments"] = [_segment_table(segment) for segment in design.segments]
    return table


def from_table(table: Mapping[str, Any]) -> Design:
    """Make a design of nested tables; a mistake is named by its place."""
    if not isinstance(table, Mapping):
        raise InvalidType("A design is a table of settings, such as budget and segments.")
    known = [each.name for each in fields(Design)]
    _refuse_unknown(table, known, "")
    for needed in ("segments", "budget"):
        if needed not in table:
            raise InvalidInput(f"The design has no {needed}; give it.")
    if not isinstance(table["segments"], list) or not table["segments"]:
        raise InvalidInput("segments must be a list of tables, one for each segment.")
    segments = [_segment(each, place) for place, each in enumerate(table["segments"])]
    others = {name: _made(name, value) for name, value in table.items() if name != "segments"}
    return Design(segments=tuple(segments), **others)


def to_toml(design: Design) -> str:
    """Write a design as TOML."""
    return tomli_w.dumps(to_table(design))


def from_toml(text: str) -> Design:
    """Read a design from TOML."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InvalidInput(f"The design is not TOML: {problem}.") from None
    return from_table(table)


def to_json(design: Design) -> str:
    """Write a design as JSON; an infinite number is the text "inf"."""
    return json.dumps(_finite(to_table(design)), indent=2, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> Design:
    """Read a design from JSON."""
    try:
        table = json.loads(text)
    except json.JSONDecodeError as problem:
        raise InvalidInput(f"The design is not JSON: {problem}.") from None
    return from_table(table)


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
    write = _by_suffix(place, {".toml": to_toml, ".json": to_json})
    place.write_text(write(design), encoding="utf-8")


def _by_suffix(path: Path, ways: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if path.suffix.lower() not in ways:
        raise InvalidInput(f"{path} must end in .toml or .json.")
    return ways[path.suffix.lower()]


def _plain(name: str, value: Any) -> Any:
    """Give a setting as plain values; a part of a design as a table with its name."""
    if name == "loss":
        return _settings(value)
    if name in PARTS and not isinstance(value, str):
        called = getattr(type(value), "name", type(value).__name__)
        return {"name": called} | _settings(value)
    return dict(value) if isinstance(value, Mapping) else _value(value)


def _settings(thing: Any) -> Table:
    values = {each.name: getattr(thing, each.name) for each in fields(thing)}
    return {name: _value(value) for name, value in values.items() if value is not None}


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _value(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_value(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _made(name: str, value: Any) -> Any:
    if name == "loss":
        return _built(Loss, value, name)
    if name in PARTS and isinstance(value, Mapping):
        settings = dict(value)
        if not isinstance(called := settings.pop("name", None), str):
            raise InvalidInput(f"{name} has no name; give one, such as name = {_example(name)!r}.")
        return _built(PARTS[name](called), settings, name)
    if name in PARTS and isinstance(value, str) and name not in ("bound", "validation"):
        return _built(PARTS[name](value), {}, name)
    return value


def _built(maker: Callable[..., Any], settings: Any, where: str) -> Any:
    """Call a class with the settings of its table."""
    if not isinstance(settings, Mapping):
        raise InvalidType(f"{where} is {settings!r}; it must be a table of settings.")
    known = [each.name for each in fields(maker)]  # type: ignore[arg-type]
    _refuse_unknown(settings, known, where)
    values = {name: _read(value) for name, value in settings.items()}
    try:
        return maker(**values)
    except MalocateError as problem:
        raise type(problem)(f"{where}: {problem}") from None


def _read(value: Any) -> Any:
    """Give lists as tuples, and the text "inf" as the number."""
    if isinstance(value, list):
        return tuple(_read(each) for each in value)
    return math.inf if value == "inf" else value


def _segment_table(segment: Segment) -> Table:
    table = _settings_of_segment(segment)
    if segment.labels is not None:
        rows, columns = segment.labels
        table["labels"] = {"rows": _value(rows), "columns": _value(columns)}
    if segment.mask is not None:
        table["mask"] = np.argwhere(segment.mask).tolist()
    return table


def _settings_of_segment(segment: Segment) -> Table:
    names = ("name", "shape", "scale", "weight", "cost", "cap", "floor")
    values = {name: getattr(segment, name) for name in names}
    return {name: _value(value) for name, value in values.items() if value is not None}


def _segment(table: Any, place: int) -> Segment:
    where = f"segments[{place}]"
    if not isinstance(table, Mapping):
        raise InvalidType(f"{where} is {table!r}; it must be a table with a name and a shape.")
    _refuse_unknown(table, [each.name for each in fields(Segment)], where)
    settings = {name: _read(value) for name, value in table.items()}
    if "name" not in settings:
        raise InvalidInput(f"{where} has no name; give it one.")
    if isinstance(settings.get("labels"), Mapping):
        labels = settings["labels"]
        _refuse_unknown(labels, ["rows", "columns"], f"{where}.labels")
        settings["labels"] = (labels.get("rows", ()), labels.get("columns", ()))
    if "mask" in settings:
        settings["mask"] = _mask(settings, where)
    try:
        return Segment(**settings)
    except MalocateError as problem:
        raise type(problem)(f"{where}: {problem}") from None


def _mask(settings: Table, where: str) -> Bools:
    """Give the mask of the cells that are listed as pairs of a row and a column number."""
    shape = settings.get("shape") or tuple(len(side) for side in settings["labels"])
    mask = np.zeros(shape, dtype=np.bool_)
    for cell in settings["mask"]:
        try:
            row, column = cell
            inside = 0 <= row < shape[0] and 0 <= column < shape[1]
        except (TypeError, ValueError):
            inside = False
        if not inside:
            raise InvalidInput(
                f"{where}.mask has {cell!r}; it must list [row, column] numbers inside {shape}."
            )
        mask[row, column] = True
    return mask


def _known(kinds: Mapping[str, Any], name: str, part: str) -> Callable[..., Any]:
    if name not in kinds:
        raise InvalidInput(f"There is no {part} {name!r}; choose from {', '.join(kinds)}.")
    found: Callable[..., Any] = kinds[name]
    return found


def _refuse_unknown(table: Mapping[str, Any], known: list[str], where: str) -> None:
    for name in table:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Known are {', '.join(known)}."
            raise InvalidInput(f"{where or 'The design'} has an unknown setting {name!r}.{hint}")


def _example(part: str) -> str:
    examples = {"estimator": "LowRankLeastSquares", "strategy": "MALocate", "schedule": "Growing"}
    return examples.get(part, {"validation": "crossfit", "bound": "betting"}.get(part, ""))


def _finite(value: Any) -> Any:
    """Give infinite numbers as text, which JSON can hold."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value
