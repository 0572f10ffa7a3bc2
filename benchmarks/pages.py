"""The measured tables on the pages, written from the rows between two comments.

python benchmarks/pages.py     # writes them anew from the rows in benchmarks/results

Whatever stands between `<!-- measured -->` and `<!-- end -->` on a page is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import big_matrix
import dask_workers
import many_segments
import many_segments_live
import on_paper
import online
import parallel_segments
import planner
import projected
import real_data
import square_root_lasso_rules as rules
import tables
from silences import RATIOS

from malocate.experiments.paper import RECIPES

BEGIN, END = "<!-- measured -->", "<!-- end -->"
DOCS = tables.HERE.parent / "docs"
TITLES = {
    "big-matrices.md": "One big matrix, from the disk",
    "estimators/online.md": "OnlineLeastSquares",
    "estimators/projected.md": "ProjectedLeastSquares",
    "estimators/square_root_lasso.md": "SquareRootLasso by rule of the penalty",
    "plan.md": "Plans made from a pilot",
    "reproduce.md": "The paper's experiments",
    "scale.md": "What a second worker is worth",
    "many-segments.md": "Thousands of segments",
    "examples/french-fries.md": "Real data: the tasting panel",
    "examples/polls.md": "Real data: the polls",
    "examples/spending.md": "Real data: attitudes to spending",
}
EXAMPLES = {
    "examples/french-fries.md": "french fries",
    "examples/polls.md": "polls",
    "examples/spending.md": "spending",
}
FIGURES = tables.HERE.parent / "figures"


BIG = """Ratings from 1 to 5 around a preference of rank 10, two threads. Ours is
`LowRankLeastSquares(rank=16, centre="mean")` with a certified band by `CrossFit(2, share=0.1)`:
three fits, each of which also searches its ridge. cmfrec fits once, with `k=16` and otherwise its
defaults (ten iterations, λ = 10, single precision), and gives no bound. The root mean squared
error is the true one, at a million cells. Peak memory counts mapped pages of the answers. The
machine did other work beside the fits of the folds: compare processor times."""
STREAMS = """Mean squared error over that of the batch fit of all answers; mean and worst of the
seeds. A number as rank setting was given to the stream and to the batch fit alike."""
SILENCES = """The recipe `paper` with one unsaid default changed at a time: the maximum loss of
MALocate(∞) over that of the oracle, of uniform and of MALocate(1); the summed loss of MALocate(1),
and of an oracle that goes by the same rule with the true errors, over uniform's; and the factor by
which the maximum loss of MALocate(∞) still falls after the hardest matrix's cap. All run with the
same change, on the same answers. By `benchmarks/silences.py`."""
PLANS = """Made-up campaigns of two or three segments of some 20 × 15 cells. A plan sees a pilot of
a tenth of the budget; then the campaign runs in full, with draws of its own. How often its true
error at the end was inside the range foretold, which 20 twins hold in 90 % of the cases, and how
wide that range was. The error is the worst segment's root mean squared error with MALocate."""
REPLAYED = """RMSE: the root of the mean squared error of a cell by held-out answers, segments
counting alike. The interval is of the ratio of mean losses, paired by replay: it speaks of other
splits and draws, not of other people. *Hold*: the share of segments and replays in which the
bound was not below the error by held-out answers, whose own chance is given no slack."""
WIDTHS = """Bounds and errors as roots of their sums over the segments. The estimate is that of the
average of the fold fits, held against the same average's error by held-out answers; MALocate goes
by it, Uniform does not, and in one round nobody looks before the end. Answers are those of each
segment, in order, means of the replays."""
PAPER = """Nothing was run at this size: each line is a constant that was measured, on the machine
above, times how often it is needed for segments of 100 × 100 with 10,000 answers each and the
default schedule. By `benchmarks/on_paper.py`."""
WORKERS = """The same work by one Dask worker and by two, processes of one thread each on one
machine, in turns: medians, least and most in brackets. *No Dask* is the same in one process and in
two without a cluster: what the machine itself makes of its second core. The overhead of a fit is
what fits take on one worker beyond the same fits where the answers are. In a first round a
segment's fits and its band are one task; other rows are of equal fits, a task each, also by the
processor time of worker, scheduler and client."""
MANY = """Segments of 100 × 100, ranks 1 to 5, simulated on two cores: `SoftImpute`, a hold-out of a
fifth, looks at sizes that double, a fortieth of the segments asked at once. *Judging* is what a
look takes beyond its fits, *planning* everything but looks and answers: standings, the strategy,
records, the frame of the run. Memory is the peak of all processes, added up."""
SEVERAL = """Forty segments of 30 × 30, every eighth of rank 6 and the others of rank 1, 28,000
answers; true losses at the end over those of one segment at a time, on the same answers: the
geometric mean and its 95 % interval, seed by seed. *Everybody alike* is `Uniform`, for comparison:
what deciding is worth at all."""
LIVING = """A campaign of small segments on SQLite, a fortieth of them asked at once; processor time
apart from the looks: of a planner that goes on, of one that comes anew, of the status and of one
segment's finding."""
LIMIT = """Mean squared error over the limit σ² r (d1 + d2 − r) / n, and processor time of `fit`
on one thread with the answers already grouped by cell; means of the seeds."""


def measured(folder: Path) -> dict[str, tuple[str, ...]]:
    """What each estimator's page shows, as paragraphs and tables."""
    return {
        "big-matrices.md": of_big_matrix(folder),
        "estimators/online.md": of_online(folder),
        "estimators/projected.md": of_projected(folder),
        "estimators/square_root_lasso.md": of_square_root_lasso(folder),
        "plan.md": of_planner(folder),
        "reproduce.md": of_reproduced(folder),
        "scale.md": of_workers(folder),
        "many-segments.md": of_many(folder),
        **{page: of_real_data(folder, name) for page, name in EXAMPLES.items()},
    }


def of_big_matrix(folder: Path) -> tuple[str, ...]:
    rows = tables.read(folder / "big_matrix.csv")
    return origin("big_matrix.py", rows), BIG, tables.markdown(big_matrix.summary(rows))


def of_online(folder: Path) -> tuple[str, ...]:
    streams, cost = (tables.read(folder / f"{name}.csv") for name in ("online", "online_cost"))
    return (
        origin("online.py", streams),
        STREAMS,
        tables.markdown(online.summary(streams)),
        "Processor seconds of one update on one thread that is handed the new answers alone.",
        tables.markdown(online.cost_summary(cost)),
    )


def of_projected(folder: Path) -> tuple[str, ...]:
    rows, noise = (tables.read(folder / f"{n}.csv") for n in ("projected", "projected_noise"))
    return (
        origin("projected.py", rows),
        LIMIT,
        tables.markdown(projected.summary(rows)),
        "Fits of pure noise in which the rule saw a direction:",
        tables.markdown(projected.noise_summary(noise)),
    )


def of_square_root_lasso(folder: Path) -> tuple[str, ...]:
    rows, noise = (
        tables.read(folder / f"square_root_lasso_{name}.csv") for name in ("rules", "noise")
    )
    return (
        origin("square_root_lasso_rules.py", rows),
        "Mean squared error per entry by the rule of the penalty, mean of the seeds.",
        tables.markdown(rules.summary(rows)),
        "Steps that a start saves after 1 % more answers:",
        tables.markdown(rules.start_summary(rows)),
        "Fits of pure noise with the default penalty:",
        tables.markdown(rules.noise_summary(noise)),
    )


def of_planner(folder: Path) -> tuple[str, ...]:
    rows = tables.read(folder / "planner.csv")
    return origin("planner.py", rows), PLANS, tables.markdown(planner.summary(rows))


def of_workers(folder: Path) -> tuple[str, ...]:
    rows = tables.read(folder / "dask_workers.csv")
    return (
        origin("dask_workers.py", rows),
        WORKERS,
        tables.markdown(dask_workers.summary(rows)),
        "## On paper: a hundred thousand segments, a thousand million answers",
        PAPER,
        tables.markdown(on_paper.summary(folder)),
    )


def of_many(folder: Path) -> tuple[str, ...]:
    names = ("many_segments", "parallel_segments", "many_segments_live")
    rows, several, live = (tables.read(folder / f"{name}.csv") for name in names)
    return (
        "### Segments and answers",
        origin("many_segments.py", rows),
        MANY,
        tables.markdown(many_segments.summary(rows)),
        tables.markdown(many_segments.growth(rows)),
        "What was aimed at for 2,000 segments and 10⁷ answers:",
        tables.markdown(many_segments.targets(rows)),
        "And what one of each costs, at that size:",
        tables.markdown(many_segments.constants(rows)),
        "### Several at once",
        origin("parallel_segments.py", several),
        SEVERAL,
        tables.markdown(parallel_segments.summary(several)),
        "### Planning a live campaign",
        origin("many_segments_live.py", live),
        LIVING,
        tables.markdown(many_segments_live.summary(live)),
    )


def of_real_data(folder: Path, name: str) -> tuple[str, ...]:
    rows = tables.read(folder / "real_data.csv")
    return (
        origin("real_data.py", rows),
        tables.markdown(real_data.summary(rows, name)),
        REPLAYED,
        tables.markdown(real_data.bands(rows, name)),
        WIDTHS,
    )


def of_reproduced(folder: Path) -> tuple[str, ...]:
    parts: list[str] = []
    for path in sorted(FIGURES.glob("experiment-?-claims.csv")):
        number = path.name.split("-")[1]
        rows = tables.read(path.with_name(f"experiment-{number}.csv"))
        runs = {r: len({row["run"] for row in rows if row["recipe"] == r}) for r in RECIPES}
        counted = ", ".join(f"{runs[recipe]} runs of `{recipe}`" for recipe in RECIPES)
        parts += [f"### Experiment {number}: {counted}"]
        parts += [tables.markdown([_claim(row) for row in tables.read(path)])]
    silences = tables.read(folder / "silences.csv")
    parts += ["### What the paper leaves unsaid", SILENCES]
    return (*parts, tables.markdown([_silence(row) for row in silences]))


def _claim(row: dict[str, str]) -> tables.Row:
    number = "beyond" if row["number"] == "5" else row["number"]
    return {
        "claim": number,
        "recipe": row["recipe"],
        "what": row["measure"],
        "mean": tables.number(float(row["value"])) if row["value"] else "–",
        "95 % interval": f"{float(row['low']):.4g} – {float(row['high']):.4g}"
        if row["low"]
        else "–",
        "verdict": row["verdict"],
    }


def _silence(row: dict[str, str]) -> tables.Row:
    cells: dict[str, object] = {"experiment": row["experiment"], "changed": row["changed"]}
    for name in (*(ratio[0] for ratio in RATIOS), "after the cap"):
        ends = [row.get(f"{name}{end}") for end in ("", ", low", ", high")]
        mean, low, high = (f"{float(end):.3f}" if end else "" for end in ends)
        cells[name] = f"{mean} ({low} – {high})" if mean else "–"
    cells["L^∞ at the end"] = f"{float(row['loss_inf at the end']):,.0f}"
    return cells | {"runs": row["runs"]}


def origin(script: str, rows: Sequence[dict[str, str]]) -> str:
    """Say which script measured, where and when."""
    if not rows:
        return f"By `benchmarks/{script}`."
    return f"By `benchmarks/{script}`, {rows[-1]['processor']}, {rows[-1]['date']}."


def results(folder: Path) -> list[str]:
    """The same paragraphs under headings, for the summary of all results."""
    parts = []
    for page, paragraphs in measured(folder).items():
        parts += [f"## {TITLES[page]}", *paragraphs]
    return parts


def replaced(text: str, paragraphs: Sequence[str]) -> str:
    """Give a page's text with other paragraphs between the comments."""
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    return head + "\n\n".join((BEGIN, *paragraphs, END)) + tail


def refresh(page: str, paragraphs: Sequence[str]) -> None:
    path = DOCS / page
    path.write_text(replaced(path.read_text(encoding="utf-8"), paragraphs), encoding="utf-8")


def refresh_estimators(folder: Path) -> None:
    for page, paragraphs in measured(folder).items():
        refresh(page, paragraphs)


if __name__ == "__main__":
    refresh_estimators(tables.RESULTS)
