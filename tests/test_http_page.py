"""The commands on the page "HTTP API" run in one shell, against a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from surveys import small_design
from test_serve import Served, free_port

from malocate import Campaign

PAGE = (Path(__file__).parents[1] / "docs" / "http-api.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```bash\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
MARK = "--- block ---"


@pytest.fixture
def served(tmp_path):
    path = tmp_path / "tasting.db"
    with Campaign.create(path, small_design()) as campaign:
        campaign.plan()
    server = Served(path, free_port(), "--no-planner")
    yield server
    server.stop()


def test_the_commands_on_the_page_print_what_it_shows(served, tmp_path):
    blocks = [(b, shown) for b, shown in BLOCK.findall(PAGE) if "malocate serve" not in b]
    assert len(blocks) >= 4
    program = f'malocate() {{ "{sys.executable}" -m malocate "$@"; }}\nset -eu\n'
    program += f"echo '{MARK}'\n".join(block for block, _ in blocks)
    program = program.replace("http://127.0.0.1:8000", served.base)
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    printed = [part.strip() for part in done.stdout.split(MARK)]
    for (block, shown), found in zip(blocks, printed, strict=True):
        assert not shown or found == shown.strip(), block
