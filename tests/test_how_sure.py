"""The page docs/how-sure.md shows what its code prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "how-sure.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e-?\d+)?")


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    """Take a text apart: what stands between its numbers, and the numbers."""
    words = " ".join(NUMBER.sub("#", text).split()).replace(" #", "#").replace("[ ", "[")
    return [words], [float(each.replace(",", "").rstrip(".")) for each in NUMBER.findall(text)]


def test_the_code_on_the_page_prints_what_it_shows(capsys):
    names: dict[str, object] = {"__name__": "page"}
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for code, shown in blocks:
        exec(compile(code, str(PAGE), "exec", dont_inherit=True), names)
        words, numbers = words_and_numbers(capsys.readouterr().out)
        expected_words, expected = words_and_numbers(shown)
        assert words == expected_words
        assert numbers == pytest.approx(expected, rel=0.03, abs=0.011)
    assert len(blocks) >= 10
    assert all(shown for _, shown in blocks)


def test_a_shown_number_that_is_wrong_is_noticed():
    words, numbers = words_and_numbers("at most 0.68; 2,000 draws.")
    assert words == ["at most#;# draws."]
    assert numbers == [0.68, 2000.0]
    assert words_and_numbers("at most 0.79; 2,000 draws.")[1] != pytest.approx(
        numbers, rel=0.03, abs=0.011
    )
