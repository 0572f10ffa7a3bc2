"""What a file says about its columns: titles, labels of values, and codes that mean no answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Code = float | str
Range = tuple[float, float]

REASONS = {
    "refused": ("refused", "refusal", "refuse", "declined", "rf", "prefer not to say"),
    "don't know": ("don't know", "dont know", "do not know", "doesn't know", "dk"),
    "not asked": ("not asked", "not applicable", "inapplicable", "iap", "not shown"),
    "no answer": ("no answer",),
}
"""Reasons for having no answer, each with the words that files use for it."""

EMPTY = "empty"
"""The reason of a cell with nothing in it: nobody says why."""

_WORDS = {word: reason for reason, words in REASONS.items() for word in words}


@dataclass(frozen=True)
class Variable:
    """One column: its title, the labels of its values, and the codes that are no answers.

    A code is a number or a text; a pair of numbers in `missing` is all from the one to the other.

    >>> rating = Variable("Liking", {1.0: "bad", 5.0: "good", 98.0: "Don't know"}, (98.0, 99.0))
    >>> rating.reason(98.0), rating.reason(99.0), rating.reason(5.0)
    ("don't know", 'missing: 99', None)
    """

    title: str = ""
    labels: Mapping[Code, str] = field(default_factory=dict)
    missing: tuple[Code | Range, ...] = ()

    def is_missing(self, code: Code) -> bool:
        """Say whether a value was declared to be no answer."""
        return any(_among(code, each) for each in self.missing)

    def reason(self, code: Code) -> str | None:
        """Give why there is no answer, in words, or None if the value is one."""
        if not self.is_missing(code):
            return None
        return reason_of(self.labels.get(code) or f"missing: {text_of(code)}")

    def to_plain(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
        return {
            "title": self.title,
            "labels": [[code, label] for code, label in self.labels.items()],
            "missing": [list(each) if isinstance(each, tuple) else each for each in self.missing],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Variable:
        """Read what `to_plain` gave."""
        missing = (tuple(each) if isinstance(each, list) else each for each in plain["missing"])
        return cls(plain["title"], dict(plain["labels"]), tuple(missing))


Codebook = Mapping[str, Variable]
"""The variables of a file that say something about themselves, by name."""


def reason_of(text: str) -> str:
    """Give a reason as one of ours where its words are known, else as it was written.

    >>> reason_of("Don’t know"), reason_of(" REFUSED "), reason_of("broken glass")
    ("don't know", 'refused', 'broken glass')
    """
    return known_reason(text) or text.strip()


def known_reason(text: str) -> str | None:
    """Give the reason that a text is a word for, or None."""
    return _WORDS.get(text.strip().casefold().replace("’", "'"))


def text_of(value: Any) -> str:
    """Give a cell as text, a whole number without its point; empty for nothing.

    >>> text_of(3.0), text_of(" Al "), text_of(None), text_of(2.5)
    ('3', 'Al', '', '2.5')
    """
    if value is None or value != value:  # nan, NaT
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return str(int(value))
    return str(value).strip()


def _among(code: Code, declared: Code | Range) -> bool:
    if not isinstance(declared, tuple):
        return code == declared
    return isinstance(code, (int, float)) and declared[0] <= code <= declared[1]
