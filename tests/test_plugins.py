"""Plug-ins: estimators that other packages register, found by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

import malocate
from malocate import InvalidInput, InvalidType, MissingDependency, Observations, plugins
from malocate.estimators.plugins import estimator_names, find_estimator

OURS = [
    "LowRankLeastSquares",
    "OnlineLeastSquares",
    "ProjectedLeastSquares",
    "SoftImpute",
    "SquareRootLasso",
]
CODE = """
import numpy as np
from malocate import Completion

class Zero:
    def fit(self, observations, *, start=None):
        return Completion(*(np.zeros((side, 0)) for side in observations.shape))

nothing = 3
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution on the path, as pip would unpack it: a module and its dist-info."""

    def install(name, points, code=CODE):
        place = tmp_path / name
        info = place / f"{name}-1.5.dist-info"
        info.mkdir(parents=True)
        (place / f"{name}.py").write_text(code)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        lines = [f"{key} = {value}" for key, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[malocate.estimators]", *lines, ""]))
        monkeypatch.syspath_prepend(place)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return install


@pytest.mark.parametrize("name", OURS)
def test_ours_are_found_by_name(name):
    assert name in estimator_names()
    assert find_estimator(name) is getattr(malocate, name)


def test_a_plug_in_is_found_and_fits(install):
    install("zeros", {"Zero": "zeros:Zero"})
    assert "Zero" in estimator_names()
    done = find_estimator("Zero")().fit(Observations([0], [1], [4.0], shape=(2, 3)))
    assert done.shape == (2, 3)


def test_what_is_installed_between_two_looks_is_found(install, tmp_path):
    install("zeros", {"Zero": "zeros:Zero"})
    assert find_estimator("Zero")
    with (tmp_path / "zeros" / "zeros-1.5.dist-info" / "entry_points.txt").open("a") as file:
        file.write("Late = zeros:Zero\n")
    assert find_estimator("Late") is find_estimator("Zero")
    assert "Late" in estimator_names()


def test_known_names_are_found_without_another_look(monkeypatch):
    find_estimator("SoftImpute")
    monkeypatch.setattr(plugins, "entry_points", None)
    assert find_estimator("SoftImpute") is malocate.SoftImpute


def test_listing_names_imports_no_plug_in(install):
    install("broken", {"Broken": "broken:Broken"}, code="raise RuntimeError('on import')")
    assert "Broken" in estimator_names()
    assert "broken" not in sys.modules


def test_a_plug_in_that_fails_to_import_is_named(install):
    install("broken", {"Broken": "broken:Broken"}, code="import a_package_nobody_has")
    words = (
        r"estimator 'Broken' \(broken:Broken of broken 1.5\) cannot be imported: "
        r"ModuleNotFoundError: No module named 'a_package_nobody_has'."
    )
    with pytest.raises(MissingDependency, match=words) as caught:
        find_estimator("Broken")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_plug_in_without_its_class_is_named(install):
    install("zeros", {"Gone": "zeros:Gone"})
    with pytest.raises(MissingDependency, match=r"'Gone' \(zeros:Gone of zeros 1.5\) cannot be"):
        find_estimator("Gone")


def test_a_plug_in_that_cannot_fit_is_no_estimator(install):
    install("zeros", {"Nothing": "zeros:nothing"})
    with pytest.raises(InvalidType, match=r"'Nothing' \(zeros:nothing .* is no estimator: it must"):
        find_estimator("Nothing")


def test_a_name_registered_twice_is_refused_with_both_places(install):
    install("zeros", {"SoftImpute": "zeros:Zero"})
    words = r"registered twice: malocate\.\S+:SoftImpute of malocate \S+ and zeros:Zero of zeros"
    with pytest.raises(InvalidInput, match=words):
        find_estimator("SoftImpute")


def test_the_same_registration_seen_twice_is_fine(install, tmp_path, monkeypatch):
    install("zeros", {"Zero": "zeros:Zero"})
    (tmp_path / "copy").mkdir()
    (tmp_path / "zeros").rename(tmp_path / "copy" / "zeros")
    install("zeros", {"Zero": "zeros:Zero"})
    monkeypatch.syspath_prepend(tmp_path / "copy" / "zeros")
    assert find_estimator("Zero")


def test_an_unknown_name_lists_the_known_ones():
    words = "no estimator 'SoftInput'; installed are .*SoftImpute, .*. Did you mean 'SoftImpute'"
    with pytest.raises(InvalidInput, match=words):
        find_estimator("SoftInput")


def test_looking_up_names_is_light():
    code = (
        "import sys; from malocate.estimators.plugins import estimator_names; estimator_names();"
        "print(*[name for name in ('numba', 'pandas', 'sklearn') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == []
