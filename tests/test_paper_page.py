"""The page on the paper names code and tests: all of them exist."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
TEXT = re.sub(
    r"^```.*?^```$", "", PAGE, flags=re.DOTALL | re.MULTILINE
)  # its code is run elsewhere

NAMES = sorted(set(re.findall(r"\bmalocate(?:\.\w+)+", TEXT)))
TESTS = sorted(set(re.findall(r"\btests/test_\w+\.py(?:::\w+)*", TEXT)))


def found(dotted: str) -> bool:
    """Tell whether a dotted name is a module, or leads to something from one."""
    parts = dotted.split(".")
    thing = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        if hasattr(thing, part):
            thing = getattr(thing, part)
        elif is_dataclass(thing) and part in {field.name for field in fields(thing)}:
            return place == len(parts)
        else:
            try:
                thing = importlib.import_module(".".join(parts[:place]))
            except ModuleNotFoundError:
                return False
    return True


@cache
def names_in(path: str) -> frozenset[str]:
    """Give the functions of a file as pytest names them, without parameters."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    tests = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, functions):
            tests.add(node.name)
        elif isinstance(node, ast.ClassDef):
            tests |= {
                f"{node.name}::{each.name}" for each in node.body if isinstance(each, functions)
            }
    return frozenset(tests)


@pytest.mark.parametrize("name", NAMES)
def test_code_on_the_page_exists(name):
    assert found(name)


@pytest.mark.parametrize("reference", TESTS)
def test_tests_on_the_page_exist(reference):
    path, _, name = reference.partition("::")
    assert (ROOT / path).exists()
    assert not name or (name in names_in(path) and name.split("::")[-1].startswith("test_"))


def test_what_does_not_exist_would_be_noticed():
    assert found("malocate.Segment.cap")
    assert found("malocate.theory.lower")
    for absent in ("malocate.Segment.hat", "malocate.theory.upper", "malocate.Segment.cap.size"):
        assert not found(absent)
    assert "test_the_index_by_hand" in names_in("tests/test_strategies.py")
    assert "test_costs_are_paid" not in names_in("tests/test_rounds.py")  # it is in a class


def test_the_page_is_full_of_references():
    assert len(NAMES) > 60
    assert len(TESTS) > 90


def test_every_slip_has_its_paragraph_and_its_tests():
    parts = re.split(r"^### Slip (\d+)$", TEXT, flags=re.MULTILINE)[1:]
    numbers, paragraphs = parts[::2], [text.split("\n## ")[0] for text in parts[1::2]]
    assert [int(number) for number in numbers] == list(range(1, 18))
    assert all("malocate." in text and "tests/test_" in text for text in paragraphs)
    assert [int(n) for n in re.findall(r"^\| \[(\d+)\]\(#slip-\1\)", TEXT, re.MULTILINE)] == list(
        range(1, 18)
    )
