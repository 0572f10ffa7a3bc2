"""The style sheet: whatever is read has enough contrast, in the light and in the dark."""

from __future__ import annotations

import re

import pytest

from malocate.server.rendering import ASSETS

CSS = ASSETS["app.css"].decode()
TEXT, SHAPE = 4.5, 3.0
"""Ratios that WCAG 2 asks of text, and of what must be seen in a picture or a control."""

READ = [(text, ground) for text in ("text", "quiet", "main", "alert", "good", "goal")
        for ground in ("page", "card")]  # fmt: skip
READ += [("on-main", "main")]
READ += [("on-low", f"h{step}") for step in range(6)]
READ += [("on-high", f"h{step}") for step in range(6, 9)]
SEEN = [(shape, ground) for shape in ("bound", "focus", "goal") for ground in ("page", "card")]
SEEN += [("done", "rest"), ("lost", "rest")]


def colours() -> dict[str, dict[str, str]]:
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    found = [dict(re.findall(r"--([\w-]+): (#\w{6})\b", part)) for part in (light, dark)]
    return {"light": found[0], "dark": found[0] | found[1]}


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("pairs", "least"), [(READ, TEXT), (SEEN, SHAPE)], ids=["what is read", "what is seen"]
)
def test_there_is_contrast_enough(scheme, pairs, least):
    known = colours()[scheme]
    found = {pair: round(contrast(known[pair[0]], known[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in found.items() if ratio < least} == {}


def test_contrast_is_measured_as_wcag_says():
    assert contrast("#000000", "#ffffff") == 21
    assert round(contrast("#767676", "#ffffff"), 2) == 4.54
