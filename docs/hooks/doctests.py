"""Shows the examples in docstrings as code: a block from `>>>` to the next empty line."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Fences the examples of every docstring before it is read as Markdown."""

    def on_instance(self, *, obj: griffe.Object | griffe.Alias, **_: Any) -> None:
        """Rewrite the docstring of what was just found."""
        if not obj.is_alias and obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    r"""Give a docstring with its examples between fences.

    >>> print(fenced("Adds.\n\\n>>> 1 + 1\\n2\\n\\nMore."))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    More.
    """
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(">>> ") and not inside:
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
