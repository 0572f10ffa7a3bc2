"""`malocate complete` and `malocate compare`: files and campaigns, as people meet them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from surveys import live, small_design

import malocate
from malocate import Batches, Campaign, InvalidInput, NotFound, SoftImpute
from malocate.cli import reading
from malocate.files import read_answers

WINES = ["red", "rosé", "white"]


@pytest.fixture
def quick(monkeypatch):
    """An estimator that fits in no time, where it does not matter which."""
    monkeypatch.setattr(malocate, "LowRankLeastSquares", lambda: SoftImpute(1.0), raising=False)


def ratings(seed=0, people=12, count=160, level=(4.4, 3.0, 1.8)):
    rng = np.random.default_rng(seed)
    who, what = rng.integers(people, size=count), rng.integers(3, size=count)
    stars = np.clip(np.rint(np.array(level)[what] + rng.normal(0, 0.5, count)), 1, 5).astype(int)
    return pd.DataFrame({"taster": who, "wine": np.array(WINES)[what], "stars": stars})


@pytest.fixture
def one(run):
    ratings().to_csv("ratings.csv", index=False)
    return "ratings.csv"


@pytest.fixture
def two(run):
    frames = [ratings(seed).assign(region=name) for seed, name in enumerate((2016, 2020))]
    pd.concat(frames).to_csv("two.csv", index=False)
    return "two.csv"


def test_a_file_becomes_a_completed_table_with_a_bound(run, one):
    result = run("complete", one, "-o", "done.csv", "--scale", 1, 5, "--uniform")
    assert result.exit_code == 0, result.output
    assert "│ 12 × 3 │     160 │" in result.stdout
    assert "≈" not in result.stdout
    assert "Certified: with certainty 0.95 the bound holds." in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if line.startswith("│"))
    done = pd.read_csv("done.csv")
    assert list(done.columns) == ["row", "column", "value", "answers"]
    assert len(done) == 36
    assert done["answers"].sum() == 160
    counted = ratings().groupby(["taster", "wine"]).size()
    assert done.set_index(["row", "column"])["answers"].loc[(3, "red")] == counted.loc[(3, "red")]
    means = done.groupby("column")["value"].mean()
    assert means["red"] > means["rosé"] > means["white"]


def test_several_fits_at_a_time_complete_alike(run, one):
    for jobs in (1, 2):
        result = run("complete", one, "-o", f"{jobs}.csv", "--scale", 1, 5, "--jobs", jobs)
        assert result.exit_code == 0, result.output
    assert Path("1.csv").read_bytes() == Path("2.csv").read_bytes()
    assert run("complete", one, "--jobs", 0).exit_code == 2


def test_without_a_declaration_nothing_is_certified(run, one, quick):
    result = run("complete", one, "--scale", 1, 5, "--json")
    (found,) = json.loads(result.stdout)["segments"]
    assert found["label"] == "approximate"
    assert "Nobody has said how the cells were chosen" in found["reason"]
    assert found["shape"] == [12, 3]
    assert "≈ " in run("complete", one, "--scale", 1, 5).stdout


def test_answers_at_one_cell_stay_together_where_nothing_is_declared(one):
    answers = read_answers(one)
    assert (reading.observed(answers, (1, 5), uniform=True)[""].repeats == -1).all()
    kept = reading.observed(answers, (1, 5), uniform=False)[""]
    again = kept.repeats >= 0
    assert again.sum() == len(kept) - kept.n_seen
    folds = kept.fold_numbers(5)
    for cell in range(kept.n_seen):
        assert len(set(folds[kept.entry_numbers == cell])) == 1


def test_rows_without_any_answer_are_said_to_be_left_out(run, quick):
    lines = "".join(f"p{place},{1 + place % 5},{1 + place % 3},4\n" for place in range(20))
    Path("wide.csv").write_text(f"who,a,b,c\n{lines}silent,,,\n")
    told = run("complete", "wide.csv").stdout
    assert "Left out, for want of any answer: 1 row." in told
    assert "judged at cells that a fit had not seen" in told
    assert "Where no cell was asked again, both include the noise" in told


def test_segments_share_the_chance_of_error_and_may_be_numbers(run, two, quick):
    plain = run("complete", two, "--segment", "region", "--scale", 1, 5, "--uniform", "--json")
    first, second = json.loads(plain.stdout)["segments"]
    assert (first["segment"], second["segment"]) == ("2016", "2020")
    whole = run("complete", two, "--segment", "region", "--scale", 1, 5, "--uniform")
    assert "with certainty 0.95 all bounds hold together" in whole.stdout
    ratings().to_csv("alone.csv", index=False)
    alone = ("complete", "alone.csv", "--scale", 1, 5, "--uniform", "--json", "--delta", 0.025)
    bound = json.loads(run(*alone).stdout)["segments"][0]["upper"]
    wider = json.loads(run(*alone[:-1], 0.25).stdout)["segments"][0]["upper"]
    assert wider < bound
    assert first["upper"] == pytest.approx(bound, rel=0.2)  # other folds, the same chance of error


def test_a_wide_table_and_a_picture_are_written(run, two, quick):
    result = run(
        "complete", two, "-o", "wide.csv", "--wide", "--plot", "wide.png", "--segment", "region"
    )
    assert result.exit_code == 0, result.output
    wide = pd.read_csv("wide.csv")
    assert list(wide.columns) == ["segment", "row", *WINES]
    assert len(wide) == 24
    assert wide["red"].notna().all()
    assert Path("wide.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["complete", "none.csv"], "none.csv cannot be read: No such file"),
        (["complete", "ratings.csv", "-o", "done.doc"], "must end in .csv"),
        (["complete", "ratings.csv", "-o", "./ratings.csv"], "is the file of answers"),
        (["complete", "ratings.csv", "--plot", "done.doc"], "--plot done.doc must end in .pdf"),
        (["complete", "ratings.csv", "--scale", "1", "4"], "is outside 1–4"),
        (["compare", "ratings.csv"], "Give one of --columns A B"),
        (["compare", "ratings.csv", "--every", "wines"], "it takes columns, rows or segments"),
        (["compare", "ratings.csv", "--columns", "red", "whit"], "is 'white' meant"),
        (
            ["compare", "ratings.csv", "--columns", "red", "white", "--at-row", "1"],
            "go with segments",
        ),
        (["compare", "ratings.csv", "--segments", "a", "b"], "no column of segments"),
        (["compare", "ratings.csv", "--every", "segments"], "no column of segments"),
        (["compare", "ratings.csv", "--rows", "1", "2", "--in", "x"], "leave --in out"),
        (["compare", "ratings.csv", "--rows", "1", "2", "--value", "points"], "no column 'points'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(run, one, quick, arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_two_columns_of_a_file_are_compared(run, one, quick):
    result = run("compare", one, "--columns", "white", "red", "--scale", 1, 5, "--uniform")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("red is rated higher than white: +2.")
    assert "(certified, certainty 0.95)" in result.stdout
    doubtful = run("compare", one, "--columns", "white", "red", "--scale", 1, 5)
    assert "(approximate, certainty 0.95)" in doubtful.stdout
    assert "Nobody has said" in doubtful.stdout
    (found,) = json.loads(run("compare", one, "--rows", 3, 7, "--json").stdout)
    assert (found["one"], found["two"], found["kind"]) == (3, 7, "row")


def test_every_two_are_compared_the_surest_first(run, one, quick):
    result = run("compare", one, "--every", "columns", "--scale", 1, 5, "--uniform")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines() if line.startswith("│")]
    assert [line[1] for line in lines][:2] == ["red", "red"]
    assert "3 of 3 intervals leave zero out. All hold at once" in result.stdout
    doubtful = run("compare", one, "--every", "columns", "--scale", 1, 5).stdout
    assert "≈: approximate; together meant for certainty 0.95" in doubtful
    assert "hold at once" not in doubtful


def test_many_comparisons_are_labelled_as_the_weakest_of_them(run, one, quick, monkeypatch):
    found = run("compare", one, "--every", "columns", "--scale", 1, 5, "--uniform", "--json")
    assert {each["label"] for each in json.loads(found.stdout)} == {"certified"}
    real = malocate.differences

    def one_doubted(*arguments, **settings):
        *sure, last = real(*arguments, **settings)
        return [*sure, last.doubted("The last is doubtful.")]

    monkeypatch.setattr(malocate, "differences", one_doubted, raising=False)
    told = run("compare", one, "--every", "columns", "--scale", 1, 5, "--uniform").stdout
    assert "(certified)" not in told
    assert "The last is doubtful." in " ".join(told.split())


def test_a_handful_of_answers_compares_nothing(run, quick):
    cells = [(who, what) for who in "abc" for what in ("red", "white")]
    lines = [f"{at},{who},{what},{5 - 2 * (at == 's')}\n" for at in "ns" for who, what in cells]
    Path("few.csv").write_text("region,who,item,stars\n" + "".join(lines))
    for question in (("--segments", "n", "s"), ("--in", "n", "--columns", "red", "white")):
        assert "There are too few answers" in run("compare", "few.csv", *question).stdout
    table = run("compare", "few.csv", "--every", "segments")
    assert table.exit_code == 0, table.output
    assert "0 of 1 intervals leave zero out" in table.stdout


def test_a_file_to_compare_is_told_by_the_options_of_complete(run, quick):
    frame = ratings().rename(columns={"taster": "a", "wine": "b", "stars": "c"})
    frame.assign(d=7, e="x").to_csv("odd.csv", index=False, sep=";", encoding="utf-16")
    told = ("--row", "a", "--column", "b", "--value", "c", "--segment", "e", "--encoding", "utf-16")
    result = run("compare", "odd.csv", *told, "--columns", "rosé", "red", "--in", "x")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("x: red is rated higher than rosé: +1.")
    assert run("complete", "odd.csv", *told).exit_code == 0
    helps = [run(name, "--help").stdout for name in ("complete", "compare", "import")]
    panels = [text.partition("What the file is")[2].partition("╰")[0] for text in helps]
    assert "--layout" in panels[0]
    assert len({" ".join(panel.split()) for panel in panels}) == 1


def test_a_campaign_is_no_file(run, campaign):
    told = run("compare", "tasting.db", "--segment", "north", "--columns", "w0", "w1")
    assert "a campaign's segment goes by --in" in told.output
    told = run("compare", "tasting.db", "--sheet", "2", "--columns", "w0", "w1")
    assert (told.exit_code, "go with a file" in told.output) == (2, True)


def test_segments_of_a_file_are_compared(run, two, quick):
    frame = pd.read_csv(two).rename(columns={"region": "segment"})
    frame.to_csv(two, index=False)
    result = run(
        "compare", two, "--segments", 2016, 2020, "--at-column", "red", "--scale", 1, 5, "--uniform"
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("column red: Whether 2016 or 2020 is rated higher cannot be")


@pytest.fixture
def campaign(run, tmp_path):
    design = small_design(schedule=Batches(60), budget=360)
    with Campaign.create(tmp_path / "tasting.db", design) as made:
        yield made


def test_a_campaign_compares_by_its_last_looks(run, campaign):
    with pytest.raises(InvalidInput, match="'north' has not been looked at yet"):
        campaign.differences(columns=["w0", "w1"], segment="north")
    live(campaign)
    (found,) = campaign.differences(columns=["w0", "w1"], segment="north")
    asked = campaign.findings()[0].asked
    grid = campaign.design.grids[0]
    assert found.delta == pytest.approx(grid.delta_at(grid.reached(asked).number))
    assert (found.label, found.certainty) == ("certified", 0.95)
    result = run("compare", "tasting.db", "--in", "north", "--columns", "w0", "w1")
    assert result.exit_code == 0, result.output
    assert found.sentence in result.stdout
    apart = run("compare", "--segments", "north", "south", "--at-column", "w3", "--json")
    (between,) = json.loads(apart.stdout)
    assert (between["one"], between["two"], between["where"]) == ("north", "south", "column w3")
    assert campaign.differences(rows=["p1", "p2"], segment="south")[0].kind == "row"


def test_doubts_of_a_campaign_are_those_of_its_comparisons(run, campaign):
    old = pd.DataFrame({"segment": ["north"], "row": ["p1"], "column": ["w2"], "value": [4]})
    campaign.import_answers(old)
    live(campaign)
    (found,) = campaign.differences(columns=["w0", "w1"], segment="north")
    assert found.label == "approximate"
    assert "nobody says how they were drawn" in found.reason
    other = campaign.differences(columns=["w0", "w1"], segment="south")[0]
    assert "nobody says how they were drawn" not in other.reason


def test_a_campaign_refuses_what_it_cannot_compare(run, campaign):
    live(campaign, most=8)
    with pytest.raises(InvalidInput, match="several segments, north, south; say which"):
        campaign.differences(columns=["w0", "w1"])
    with pytest.raises(NotFound, match="no segment 'east'"):
        campaign.differences(columns=["w0", "w1"], segment="east")
    with pytest.raises(InvalidInput, match="at least two columns, rows or segments, each once"):
        campaign.differences(columns=["w0", "w0"], segment="north")
    with pytest.raises(NotFound, match="no column 'w9'"):
        campaign.differences(columns=["w0", "w9"], segment="north")
