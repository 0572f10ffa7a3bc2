"""Designs as nested tables of plain values, as text can hold them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from malocate.compute import Compute
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

PLAIN: dict[str, Callable[..., Any]] = {"loss": Loss, "compute": Compute}
"""Parts of which there is one kind each."""

PARTS: dict[str, Callable[[str], Callable[..., Any]]] = {
    "estimator": ESTIMATORS.find,
    "validation": lambda name: _known(SCHEMES, name, "validation"),
    "strategy": STRATEGIES.find,
    "schedule": lambda name: _known(SCHEDULES, name, "schedule"),
    "bound": lambda name: _known(BOUNDS, name, "bound"),
}


def to_table(design: Design) -> Table:
    """Give a design as nested tables of plain values; what is not set is left out."""
    table: Table = {}
    for each in fields(design):
        value = getattr(design, each.name)
        if each.name == "segments" or value in (None, Compute()):
            continue
        table[each.name] = _plain(each.name, value)
    table["segments"] = [_segment_table(segment) for segment in design.segments]
    return table


def from_table(table: Mapping[str, Any]) -> Design:
    """Make a design of nested tables; a mistake is named by its place."""
    if not isinstance(table, Mapping):
        raise InvalidType("A design is a table of settings, such as budget and segments.")
    _refuse_unknown(table, [each.name for each in fields(Design)], "")
    for needed in ("segments", "budget"):
        if needed not in table:
            raise InvalidInput(f"The design has no {needed}; give it.")
    if not isinstance(table["segments"], list) or not table["segments"]:
        raise InvalidInput("segments must be a list of tables, one for each segment.")
    segments = [_segment(each, place) for place, each in enumerate(table["segments"])]
    others = {name: _made(name, value) for name, value in table.items() if name != "segments"}
    return Design(segments=tuple(segments), **others)


def _plain(name: str, value: Any) -> Any:
    """Give a setting as plain values; a part of a design as a table with its name."""
    if name in PLAIN:
        return _settings(value, name)
    if name == "questions":
        return {language: _settings(each, name) for language, each in value.items()}
    if name in PARTS and not isinstance(value, str):
        called = getattr(type(value), "name", type(value).__name__)
        return {"name": called} | _settings(value, name)
    return _value(value, name)


def _settings(thing: Any, where: str) -> Table:
    values = {each.name: getattr(thing, each.name) for each in _fields(type(thing), where)}
    return {
        name: _value(value, f"{where}.{name}")
        for name, value in values.items()
        if value is not None
    }


def _fields(maker: Any, where: str) -> tuple[Field[Any], ...]:
    """Give the settings of a part, which only a dataclass tells."""
    if not is_dataclass(maker):
        name = getattr(maker, "__name__", maker)
        raise InvalidType(f"{where} {name} is no dataclass, so nothing tells its settings.")
    return tuple(each for each in fields(maker) if each.init)


def _value(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _value(each, where) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_value(each, where) for each in value]
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, str | int | float):
        raise InvalidType(f"{where} is {value!r}; a file holds numbers, text, and lists of them.")
    return value


def _made(name: str, value: Any) -> Any:
    if name in PLAIN:
        return _built(PLAIN[name], value, name)
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
    known = {each.name: each for each in _fields(maker, where)}
    _refuse_unknown(settings, list(known), where)
    for name, each in known.items():
        if name not in settings and each.default is each.default_factory is MISSING:
            raise InvalidInput(f"{where} {maker.__name__} has no {name}, which it needs; give it.")
    values = {name: _read(value, known[name]) for name, value in settings.items()}
    try:
        return maker(**values)
    except MalocateError as problem:
        raise type(problem)(f"{where}: {problem}") from None


def _read(value: Any, field: Field[Any]) -> Any:
    """Give lists as tuples, and the text "inf" as the number where a number belongs."""
    kinds = getattr(field.type, "__name__", str(field.type)).split("|")
    numeric = "float" in [kind.strip() for kind in kinds]
    return math.inf if numeric and value == "inf" else _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def _segment_table(segment: Segment) -> Table:
    names = ("name", "shape", "scale", "weight", "cost", "cap", "floor")
    values = {name: getattr(segment, name) for name in names}
    where = f"Segment {segment.name!r}"
    table: Table = {n: _value(each, where) for n, each in values.items() if each is not None}
    if segment.labels is not None:
        rows, columns = ([_label(each, where) for each in side] for side in segment.labels)
        table["labels"] = {"rows": rows, "columns": columns}
    if segment.mask is not None:
        table["mask"] = np.argwhere(segment.mask).tolist()
    return table


def _label(label: Any, where: str) -> Any:
    """Give a label that is read back as it is; dates are for TOML alone."""
    if isinstance(label, tuple):
        return [_label(each, where) for each in label]
    label = label.item() if isinstance(label, np.generic) else label
    whole = isinstance(label, str | int | datetime.date)
    if not (whole or (isinstance(label, float) and math.isfinite(label))):
        raise InvalidType(
            f"{where} has the label {label!r}; a file holds labels that are text, numbers, dates "
            "or tuples of them."
        )
    return label


def _segment(table: Any, place: int) -> Segment:
    where = f"segments[{place}]"
    if not isinstance(table, Mapping):
        raise InvalidType(f"{where} is {table!r}; it must be a table with a name and a shape.")
    _refuse_unknown(table, [each.name for each in fields(Segment)], where)
    settings = {name: _tuples(value) for name, value in table.items()}
    if "name" not in settings:
        raise InvalidInput(f"{where} has no name; give it one.")
    if isinstance(labels := settings.get("labels"), Mapping):
        _refuse_unknown(labels, ["rows", "columns"], f"{where}.labels")
        settings["labels"] = tuple(_tuples(labels.get(side, [])) for side in ("rows", "columns"))
    masked = settings.pop("mask", None)
    try:
        segment = Segment(**settings)
        if masked is None:
            return segment
        return replace(segment, mask=_mask(masked, segment.shape))
    except MalocateError as problem:
        raise type(problem)(f"{where}: {problem}") from None


def _mask(cells: Any, shape: tuple[int, int]) -> Bools:
    """Give the mask of the cells that are listed as pairs of a row and a column number."""
    rule = f"it must list [row, column] numbers inside {shape}"
    if not isinstance(cells, tuple):
        raise InvalidType(f"its mask is {cells!r}; {rule}.")
    mask = np.zeros(shape, dtype=np.bool_)
    for cell in cells:
        pair = isinstance(cell, tuple) and len(cell) == 2 and all(type(e) is int for e in cell)
        if not pair or not (0 <= cell[0] < shape[0] and 0 <= cell[1] < shape[1]):
            raise InvalidInput(f"its mask has {cell!r}; {rule}.")
        mask[cell] = True
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
