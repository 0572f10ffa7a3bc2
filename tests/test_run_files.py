"""A run that was saved and loaded says what it said before."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pandas
import pytest

from malocate import Design, InvalidInput, Loss, Run, Segment, SoftImpute, Synthetic, simulate
from malocate.confidence.ensemble import Ensemble
from malocate.experiments.run_files import _slug
from malocate.experiments.saved_band import SavedBand

NAMES = ["Île-de-France/75", "ile de france 75", "北, “x”\n+ y"]


@pytest.fixture(scope="module")
def sources():
    return {
        name: Synthetic.ratings((12, 10), rank=1, rng=place) for place, name in enumerate(NAMES)
    }


@pytest.fixture(scope="module")
def design(sources):
    segments = [source.segment(name) for name, source in sources.items()]
    return Design(segments, budget=500, loss=Loss(p=2), estimator=SoftImpute(), rmse={NAMES[0]: 3})


@pytest.fixture(scope="module")
def run(design, sources):
    return simulate(design, sources)


@pytest.fixture
def folder(run, tmp_path):
    run.save(tmp_path / "run")
    return tmp_path / "run"


def test_everything_comes_back(run, folder):
    again = Run.load(folder)
    assert again.design == run.design
    assert again.stop == run.stop
    assert again.answers_left == run.answers_left is not None
    assert again.why() == run.why()
    pandas.testing.assert_frame_equal(again.frame(), run.frame(), check_exact=True)
    assert list(again.completions) == list(run.completions) == NAMES
    for name in NAMES:
        assert (again.completions[name].dense() == run.completions[name].dense()).all()
        assert again.completions[name].status == run.completions[name].status


def test_bands_say_the_same_without_their_answers(run, folder):
    again = Run.load(folder)
    assert list(again.bands) == NAMES
    for name, band in run.bands.items():
        saved = again.bands[name]
        assert str(saved) == str(band)
        said = [each.name for each in fields(SavedBand) if each.name != "words"]
        assert [getattr(saved, each) for each in said] == [getattr(band, each) for each in said]
        with pytest.raises(InvalidInput, match="it has no intervals for cells"):
            saved.interval([0], [0])


def test_what_is_not_finite_comes_back(run, tmp_path):
    name = NAMES[0]
    band = replace(run.bands[name], upper=np.inf, se=np.nan)
    replace(run, bands={name: band}).save(tmp_path)
    again = Run.load(tmp_path).bands[name]
    assert (again.upper, again.rmse_upper) == (np.inf, np.inf)
    assert np.isnan(again.se)
    json.loads((tmp_path / "bands.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_averages_come_back_as_averages(design, sources, tmp_path):
    run = simulate(replace(design, deliver="ensemble", budget=260), sources)
    run.save(tmp_path)
    again = Run.load(tmp_path)
    for name, done in run.completions.items():
        assert isinstance(again.completions[name], Ensemble)
        assert (again.completions[name].dense() == done.dense()).all()


def test_a_run_without_bands(design, sources, tmp_path):
    run = simulate(design, sources, bands=False)
    run.save(tmp_path)
    again = Run.load(tmp_path)
    assert again.bands == {}
    pandas.testing.assert_frame_equal(again.frame(), run.frame(), check_exact=True)


def test_a_loaded_run_can_be_saved_and_drawn(folder, tmp_path):
    again = Run.load(folder)
    again.save(tmp_path / "copy")
    for file in folder.iterdir():
        if file.suffix != ".npz":
            assert (tmp_path / "copy" / file.name).read_bytes() == file.read_bytes()
    assert len(again.plot().axes) == 2


def test_file_names_are_plain_and_unlike(folder):
    names = sorted(file.name for file in folder.glob("*.npz"))
    assert names == ["001-ile-de-france-75.npz", "002-ile-de-france-75.npz", "003-x-y.npz"]


@pytest.mark.parametrize("name", ["../../etc", "CON", ".", "a" * 300, "\0", "—"])
def test_a_slug_is_a_plain_word(name):
    slug = _slug(name)
    assert 1 <= len(slug) <= 40
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_an_earlier_run_is_replaced_and_leaves_nothing_behind(run, folder):
    (folder / "notes.txt").write_text("mine")
    one = NAMES[0]
    replace(run, completions={one: run.completions[one]}, bands={}).save(folder)
    assert [file.name for file in folder.glob("*.npz")] == ["001-ile-de-france-75.npz"]
    assert (folder / "notes.txt").read_text() == "mine"
    assert Run.load(folder).bands == {}


def test_a_folder_with_something_else_is_refused(run, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InvalidInput, match="holds something other than a saved run; choose a new"):
        run.save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InvalidInput, match=r"thesis.tex is a file; a run is saved to a folder"):
        run.save(tmp_path / "thesis.tex")


def test_another_programs_run_json_is_refused(run, tmp_path):
    (tmp_path / "run.json").write_text('{"jobs": []}')
    with pytest.raises(InvalidInput, match="is not a saved run"):
        run.save(tmp_path)
    assert (tmp_path / "run.json").read_text() == '{"jobs": []}'


@pytest.mark.parametrize("text", ["", "[]", '{"format": "malocate completion", "version": 1}'])
def test_what_is_no_run_is_not_loaded(tmp_path, text):
    with pytest.raises(InvalidInput, match=r"is not a saved run; `Run\.save` writes such folders"):
        Run.load(tmp_path / "nowhere")
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InvalidInput, match="is not a saved run"):
        Run.load(tmp_path)


def changed(folder, **settings):
    head = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps(head | settings), encoding="utf-8")


def test_a_later_format_is_refused(folder):
    changed(folder, version=2)
    with pytest.raises(InvalidInput, match=r"written by a later malocate \(format 2"):
        Run.load(folder)


def test_files_outside_the_folder_are_neither_read_nor_removed(run, folder):
    precious = folder.parent / "precious.npz"
    precious.write_text("mine")
    changed(folder, completions={NAMES[0]: ["../precious.npz"]})
    for act in (lambda: Run.load(folder), lambda: run.save(folder)):
        with pytest.raises(InvalidInput, match="names files outside its folder"):
            act()
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("name", ["design.json", "rounds.csv", "bands.json", "003-x-y.npz"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InvalidInput, match=name):
        Run.load(folder)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bands.json", ""),
        ("bands.json", "[]"),
        ("bands.json", '{"a": 3}'),
        ("bands.json", '{"a": {"upper": 1}}'),
        ("bands.json", "[" * 100_000),
        ("rounds.csv", "round,spent\n1,2\n"),
        ("rounds.csv", "\0"),
        ("run.json", '{"format": "malocate run"}'),
        ("run.json", '{"format": "malocate run", "version": 1}'),
        ("run.json", '{"format": "malocate run", "version": 1, "completions": {"a": 3}}'),
        ("run.json", '{"format": "malocate run", "version": 1, "completions": {}, "stop": {}}'),
    ],
)
def test_a_broken_file_is_named(folder, name, text):
    (folder / name).write_text(text)
    with pytest.raises(InvalidInput, match=name):
        Run.load(folder)


@pytest.mark.parametrize(("number", "word"), [("\n1,", "\none,"), (",264.0,", ",many,")])
def test_rounds_that_are_not_numbers_are_refused(folder, number, word):
    text = (folder / "rounds.csv").read_text(encoding="utf-8")
    assert number in text
    (folder / "rounds.csv").write_text(text.replace(number, word), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"rounds.csv is not as `Run.save` writes it"):
        Run.load(folder)


def test_a_place_that_cannot_be_written_is_named(run):
    with pytest.raises(InvalidInput, match="cannot be written to /dev/null/x: Not a directory"):
        run.save("/dev/null/x")


def test_a_run_that_never_asked_comes_back(tmp_path):
    design = Design([Segment("north", (3, 2))], budget=0.5, estimator=SoftImpute())
    run = simulate(design, [Synthetic.low_rank((3, 2), rank=1)])
    run.save(tmp_path)
    assert Run.load(tmp_path).records == run.records == ()
    empty = Run.load(tmp_path).frame()
    asked = simulate(replace(design, budget=30), [Synthetic.low_rank((3, 2), rank=1)]).frame()
    assert [*empty.columns] == [*asked.columns]
    assert len(empty) == 0 < len(asked)
    assert (empty.dtypes == asked.dtypes).all()
    assert len(run.plot().texts) == 1
