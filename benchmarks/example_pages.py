"""What the code on the pages about real data prints and draws, written into these pages.

python benchmarks/example_pages.py            # a minute

Runs the Python on each page of docs/examples; what a block prints replaces the text block after
it, and pictures go beside the page. The measured tables are those of `real_data.py`, by `pages.py`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tables

PAGES = tables.HERE.parent / "docs" / "examples"
PARTS = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def told(text: str, page: str = "page") -> Iterator[tuple[str, str]]:
    """Run a page's code block by block: what each prints, and what the page says that it prints."""
    names: dict[str, Any] = {"__name__": Path(page).stem}
    for found in PARTS.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(found[1], page, "exec", dont_inherit=True), names)
        yield printed.getvalue(), found[2] or ""


def written(text: str, page: str) -> str:
    """Give the page's text with what its code prints now."""
    outputs = iter([printed for printed, _ in told(text, page)])

    def block(found: re.Match[str]) -> str:
        printed = next(outputs)
        return f"```python\n{found[1]}```\n" + (f"\n```text\n{printed}```\n" if printed else "")

    return PARTS.sub(block, text)


def refresh(page: Path) -> None:
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            text = written(page.read_text(encoding="utf-8"), str(page))
        finally:
            os.chdir(home)
        page.write_text(text, encoding="utf-8")
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, page.parent)
    print(f"wrote {page.name}", flush=True)


if __name__ == "__main__":
    for each in sorted(PAGES.glob("*.md")):
        refresh(each)
