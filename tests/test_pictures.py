"""The pictures of runs, comparisons and experiments show what they say."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malocate import InvalidInput
from malocate.plots import comparison_picture, experiment_picture, run_picture
from malocate.plots.canvas import COLOURS, apart, styles
from malocate.plots.paper import capped_at, mean_curve


def frame_of(names, rounds=4, **columns):
    """A made-up run: the first segments are asked most."""
    spent = 100.0 * np.arange(1, rounds + 1)
    frame = {"spent": spent, "loss": 9 / spent, "estimate": 8 / spent, "bound": 30 / spent}
    for place, name in enumerate(names):
        frame |= {
            f"n_{name}": spent / (1 + place),
            f"error_{name}": 1 / (1 + place) + 0 * spent,
            f"upper_{name}": 4.0 + 0 * spent,
        }
    return pandas.DataFrame(frame | columns)


def texts_of(panel):
    return [text.get_text() for text in panel.texts]


@pytest.mark.parametrize("count", [1, 2, 8, 50])
def test_every_segment_is_named_or_counted_among_the_others(count):
    names = [f"town {place}" for place in range(count)]
    figure = run_picture(frame_of(names), names)
    texts = texts_of(figure.axes[1])
    named = [text for text in texts if text in names]
    rest = [int(text.split()[0]) for text in texts if text.endswith("others")]
    assert len(named) + sum(rest) == count
    assert named == names[: len(named)]  # those with the most answers
    figure.draw_without_rendering()


def test_the_lines_of_a_run_are_its_columns():
    frame = frame_of(["a", "b"])
    upper, lower = run_picture(frame, ["a", "b"]).axes
    assert upper.get_yscale() == "log"
    drawn = {line.get_label(): line.get_ydata() for line in (*upper.lines, *lower.lines)}
    columns = {"truth": "loss", "estimate": "estimate", "bound": "bound", "a": "n_a", "b": "n_b"}
    assert {name: drawn[name].tolist() for name in columns} == {
        name: frame[column].tolist() for name, column in columns.items()
    }


def test_what_is_not_known_is_not_drawn():
    frame = frame_of(["a"], loss=np.nan, estimate=[0.0, -1.0, 2.0, np.nan], bound=np.inf)
    upper, _ = run_picture(frame, ["a"]).axes
    assert [line.get_label() for line in upper.lines] == ["estimate"]
    assert np.isfinite(upper.lines[0].get_ydata()).tolist() == [False, False, True, False]
    nothing = run_picture(frame.assign(estimate=np.nan), ["a"])
    assert texts_of(nothing.axes[0]) == ["no loss is known"]
    nothing.draw_without_rendering()


def test_a_comparison_shows_answers_errors_and_bounds_of_each_run():
    names = ["a", "b", "c"]
    frames = {"one": frame_of(names), "two": frame_of(names, error_a=9.0)}
    losses, answers, errors = comparison_picture(frames, names).axes
    assert [line.get_label() for line in losses.lines[::2]] == ["one", "two"]
    assert [bar.get_width() for bar in answers.patches] == [400, 200, 400 / 3] * 2
    dots = [line.get_xdata() for line in errors.lines if line.get_marker() == "o"]
    ends = [line.get_xdata() for line in errors.lines if line.get_marker() == "|"]
    assert np.concatenate(dots) == pytest.approx(np.sqrt([1, 1 / 2, 1 / 3, 9, 1 / 2, 1 / 3]))
    assert np.concatenate(ends) == pytest.approx(2)


@pytest.mark.parametrize(
    ("goes_on_to", "words"), [(500, "300 more"), (0.001, "more than 300 more")]
)
def test_going_on_says_how_many_more_it_takes(goes_on_to, words):
    one, two = frame_of(["a"], loss=0.01), frame_of(["a"], loss=0.2)
    later = frame_of(["a"], rounds=7, loss=1 / goes_on_to)
    panel = comparison_picture({"one": one, "two": two}, ["a"], beyond=later).axes[0]
    assert [text for text in texts_of(panel) if text] == [words]


def test_of_many_segments_a_comparison_shows_the_worst():
    names = [f"town {place}" for place in range(40)]
    panel = comparison_picture({"one": frame_of(names)}, names).axes[1]
    assert [label.get_text() for label in panel.get_yticklabels()] == names[:15]


def test_names_are_drawn_as_they_are():
    names = ["$x_$", "a$b", r"\\$\\frac$"]
    frame = frame_of(names)
    run = run_picture(frame, names)
    drawn = [*run.axes[1].texts]
    comparison = comparison_picture({"$^$": frame, "two": frame}, names)
    drawn += comparison.axes[1].get_yticklabels()
    for text in drawn:
        shown, mathematics = text._preprocess_math(text.get_text())
        assert shown in names
        assert not mathematics
    for figure in (run, comparison):
        figure.draw_without_rendering()


def test_a_run_that_never_asked_says_so():
    frame = frame_of(["a"]).iloc[:0]
    for figure in (run_picture(frame, ["a"]), comparison_picture({"one": frame}, ["a"], title="T")):
        assert texts_of(figure)[0] == "nobody was asked"
        figure.draw_without_rendering()


def test_no_runs_cannot_be_compared():
    with pytest.raises(InvalidInput, match="frames is empty; a comparison needs at least one run"):
        comparison_picture({}, ["a"])


def rows_of(recipes=("paper",), strategies=("malocate-inf", "uniform"), runs=3):
    lines = [
        (recipe, run, strategy, spent, (1 + run) * 1e6 / spent, (1 + run) * 1e5 / spent)
        for recipe in recipes
        for strategy in strategies
        for run in range(runs)
        for spent in range(100, 600, 100)
    ]
    names = ["recipe", "run", "strategy", "spent", "loss_1", "loss_inf"]
    return pandas.DataFrame(lines, columns=names).assign(experiment=1)


def test_the_papers_figure_has_a_row_for_each_recipe_and_one_legend():
    rows = rows_of(["best", "paper"], ["malocate-1", "malocate-inf", "uniform", "oracle"])
    figure = experiment_picture(rows, "Experiment 1")
    titles = [panel.get_title() for panel in figure.axes]
    assert len(titles) == 4
    assert titles[0].endswith("the paper's recipe")
    assert titles[3].endswith("malocate's defaults")
    entries = [text.get_text() for text in figure.legends[0].texts]
    assert entries == ["MALocate, p = 1", "MALocate, p = ∞", "uniform", "oracle"]
    figure.draw_without_rendering()


def test_each_floor_is_drawn_where_it_belongs():
    left, right = experiment_picture(rows_of(strategies=["floor-1", "floor-inf"])).axes
    assert left.lines[0].get_ydata()[0] == pytest.approx(2e4)
    assert right.lines[0].get_ydata()[0] == pytest.approx(2e3)
    assert len(left.lines) == len(right.lines) == 1


def test_a_line_is_the_mean_and_its_band_students_interval():
    curve = mean_curve(rows_of(strategies=["uniform"]), "loss_inf")
    values = np.array([1000.0, 2000.0, 3000.0])
    reach = np.exp(4.302653 * np.log(values).std(ddof=1) / np.sqrt(3))
    assert curve.mean[0] == pytest.approx(2000)
    assert curve.high[0] == pytest.approx(2000 * reach)
    assert curve.low[0] == pytest.approx(2000 / reach)
    alone = mean_curve(rows_of(strategies=["uniform"], runs=1), "loss_inf")
    assert (alone.low == alone.mean).all()
    assert (alone.high == alone.mean).all()


def test_runs_that_look_at_other_times_keep_their_last_loss():
    rows = pandas.DataFrame({"run": [1, 1, 2], "spent": [1, 3, 2], "loss": [4.0, 2.0, 6.0]})
    curve = mean_curve(rows, "loss")
    assert (curve.spent.tolist(), curve.mean.tolist()) == ([2.0, 3.0], [5.0, 4.0])


def test_the_ring_is_where_the_cap_was_reached():
    rows = rows_of()
    rows["capped"] = (rows["strategy"] == "malocate-inf") & (rows["spent"] >= 300)
    figure = experiment_picture(rows)
    rings = [line for panel in figure.axes for line in panel.lines if line.get_marker() == "o"]
    assert [float(ring.get_xdata()[0]) for ring in rings] == [300, 300]
    assert figure.legends[0].texts[-1].get_text() == "hardest matrix at its cap"


def test_a_cap_that_most_runs_do_not_reach_is_not_marked():
    rows = rows_of(strategies=["malocate-inf"])
    rows["capped"] = (rows["run"] == 0) & (rows["spent"] >= 300)
    assert capped_at(rows) is None
    assert capped_at(rows.drop(columns="capped")) is None


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12), st.floats(0.5, 20))
def test_names_beside_a_panel_keep_their_order_and_distance(places, gap):
    moved = np.array(apart(places, gap))
    order = np.argsort(places, kind="stable")
    assert (np.diff(moved[order]) >= gap * (1 - 1e-6)).all()
    if len(places) == 1 or np.diff(np.sort(places)).min() >= gap:
        assert moved == pytest.approx(places, abs=1e-9)


def test_lines_have_styles_of_their_own():
    assert len({str(style) for style in styles(4 * len(COLOURS))}) == 4 * len(COLOURS)
