"""What keeps the package light, layered and readable."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import malocate

ROOT = Path(__file__).parents[1]
HEAVY = ["fastapi", "matplotlib", "numba", "pandas", "sklearn", "sqlalchemy", "typer"]
FOLDERS = ("src", "tests", "benchmarks")
LONGEST = 500


def heavy_after(code: str) -> list[str]:
    """Give the heavy packages that a fresh interpreter has loaded after running `code`."""
    report = f"import sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", f"{code}\n{report}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_importing_the_package_is_light():
    assert heavy_after("import malocate") == []


def test_observations_and_sources_need_no_compiler():
    code = "from malocate import Synthetic; Synthetic.low_rank(shape=(9, 9), rank=1).observe(5)"
    assert heavy_after(code) == []


def test_asking_and_telling_need_no_compiler(tmp_path):
    code = f"""
import sys
from malocate import Campaign, Design, Segment
design = Design([Segment("north", (4, 3), scale=(1, 5))], budget=60)
campaign = Campaign.create({str(tmp_path / "tasting.db")!r}, design)
for ticket in campaign.ask(2, who="Ann"):
    campaign.tell(ticket, 3)
campaign.status()
assert "scipy" not in sys.modules
"""
    assert heavy_after(code) == ["sqlalchemy"]


def test_heavy_packages_would_be_noticed():
    assert heavy_after("import numba") == ["numba"]


def test_imports_only_point_down(capsys):
    from importlinter.cli import lint_imports

    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_the_picture_of_the_layers_is_that_of_the_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]["layers"]
    layers = [set(layer.split(" | ")) for layer in contract if layer != "__main__"]
    drawn = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```")[1].splitlines()
    shown = [set(line[:35].split()) for line in drawn if line]
    assert shown == layers


@pytest.mark.parametrize("name", malocate.__all__)
def test_public_names_load(name):
    assert getattr(malocate, name).__name__ == name
    assert name in dir(malocate)


def test_the_public_names_are_sorted_and_the_lazy_ones_listed():
    assert sorted(malocate.__all__) == malocate.__all__
    assert set(malocate._HOMES) <= set(malocate.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'malocate' has no attribute 'SofImpute'"):
        malocate.SofImpute  # noqa: B018


def test_no_file_grows_into_a_god_file():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("[!.]*.py")]
    ours = [file for file in files if "site-packages" not in file.parts]  # not the peers' code
    lengths = {str(file): len(file.read_text(encoding="utf-8").splitlines()) for file in ours}
    assert {file: n for file, n in lengths.items() if n > LONGEST} == {}
    assert len(lengths) > 10
