"""The page "What is promised" names the tests that hold the promises: all of them exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"\btests/test_\w+\.py(?:::\w+)*", PAGE)))
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!promise|trouble|---|-)", line)]


def exists(reference: str) -> bool:
    """Tell whether pytest would find it, also where a class has it from the checks it inherits."""
    path, *names = reference.split("::")
    if not (ROOT / path).exists():
        return False
    thing = importlib.import_module(Path(path).stem)
    for name in names:
        thing = getattr(thing, name, None)
    return not names or (callable(thing) and names[-1].lower().startswith("test"))


@pytest.mark.parametrize("reference", TESTS)
def test_a_test_on_the_page_exists(reference):
    assert exists(reference)


def test_what_does_not_exist_would_be_noticed():
    assert exists("tests/test_store.py::TestStore::test_numbers_come_back_bit_for_bit")
    assert not exists("tests/test_store.py::TestStore::test_numbers_come_back_rounded")
    assert not exists("tests/test_store.py::StoreChecks")
    assert not exists("tests/test_shop.py")


def test_every_promise_has_a_test():
    assert len(ROWS) > 25
    assert [row for row in ROWS if "tests/test_" not in row and "the same tests" not in row] == []


@pytest.mark.parametrize("row", ROWS)
def test_what_is_slow_is_called_so(row):
    for reference in re.findall(r"\btests/test_\w+\.py::\w+", row):
        path, name = reference.split("::")
        test = getattr(importlib.import_module(Path(path).stem), name)
        marks = {mark.name for mark in getattr(test, "pytestmark", [])}
        assert ("slow" in marks) == ("*slow*" in row)
