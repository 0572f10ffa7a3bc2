"""Every strategy with every schedule and validation, on markets that are hard to please."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from malocate import (
    Batches,
    CrossFit,
    Design,
    Doubling,
    GoodAllocation,
    Growing,
    HoldOut,
    Loss,
    LowRankLeastSquares,
    MALocate,
    Oracle,
    SoftImpute,
    Synthetic,
    Uniform,
    simulate,
)
from malocate.confidence.schemes import Halves, OnceVsMulti

SOURCES = {
    "tiny": Synthetic.low_rank((5, 5), rank=1, rng=0),
    "tall": Synthetic.low_rank((120, 12), rank=2, rng=1),
    "wide": Synthetic.low_rank((8, 40), rank=2, noise=1.0, rng=2),
    "noise": Synthetic.constant((12, 12), 0.0, noise=1.0, rng=3),
    "constant": Synthetic.constant((10, 14), 3.0, noise=0.0, rng=4),
    "ratings": Synthetic.ratings((20, 15), rank=1, rng=5),
    "row": Synthetic.low_rank((1, 30), rank=1, rng=6),
}
SEGMENTS = [source.segment(name) for name, source in SOURCES.items()]
RANKS = [1, 2, 2, 1, 1, 1, 1]

STRATEGIES = {
    "MALocate": MALocate(),
    "paper's MALocate": MALocate(by="upper"),
    "Uniform": Uniform(),
    "Uniform by entries": Uniform(by="entries"),
    "Oracle": Oracle(),
    "GoodAllocation": GoodAllocation.of(SEGMENTS, RANKS),
}
SCHEDULES = {
    "Growing": Growing(ratio=1.5),
    "Batches": Batches(size=300, first=60),
    "Doubling": Doubling(),
    "every answer": Batches(size=1, first=60),
}
VALIDATIONS = {
    "crossfit": (CrossFit(3), "residual", "auto"),
    "small folds": (CrossFit(4, 0.05), "residual", "auto"),
    "holdout": (HoldOut(0.2), "two_phase", "normal"),
    "halves": (Halves(), "pairs", "normal"),
    "once_vs_multi": (OnceVsMulti(), "pairs", "auto"),
}
POWERS = (1.0, 2.0, math.inf)
CASES = list(itertools.product(STRATEGIES, SCHEDULES, VALIDATIONS))


@pytest.mark.parametrize(
    ("case", "p"),
    [(case, POWERS[place % 3]) for place, case in enumerate(CASES)],
    ids=[" · ".join(case) for case in CASES],
)
def test_every_combination_runs_to_the_end_of_its_budget(case, p):
    strategy, schedule, validation = case
    scheme, estimate, bound = VALIDATIONS[validation]
    design = Design(
        SEGMENTS,
        budget=_first(SCHEDULES[schedule]) + (12 if schedule == "every answer" else 600),
        loss=Loss(p),
        estimator=SoftImpute(penalty=1.0, tol=1e-2),
        strategy=STRATEGIES[strategy],
        schedule=SCHEDULES[schedule],
        validation=scheme,
        estimate=estimate,
        bound=bound,
    )
    run = simulate(design, SOURCES, bands=True)
    frame = run.frame()
    assert 0 <= design.budget - frame["spent"].iloc[-1] < SCHEDULES[schedule].multiple
    assert (frame[[f"n_{name}" for name in SOURCES]].iloc[-1] > 0).all()
    assert np.isfinite(frame["loss"]).all()
    assert frame["spent"].is_monotonic_increasing
    for name, band in run.bands.items():
        assert band.upper >= 0
        assert np.isfinite(run.completions[name].dense()).all()


def _first(schedule):
    return sum(schedule.grid(segment, 0.05, 1).size(1) for segment in SEGMENTS)


@pytest.mark.parametrize("p", POWERS)
def test_one_segment_alone_gets_everything(p):
    source = Synthetic.ratings((30, 12), rank=2, rng=0)
    design = Design([source.segment("a")], 900, loss=Loss(p), estimator=SoftImpute())
    assert simulate(design, {"a": source}).frame()["n_a"].iloc[-1] == 900


@pytest.mark.slow
def test_the_default_estimator_takes_the_hard_to_please_too():
    names = ["tiny", "noise", "constant", "ratings", "row"]
    design = Design([segment for segment in SEGMENTS if segment.name in names], 900)
    assert design.estimator == LowRankLeastSquares(tune="auto")
    run = simulate(design, {name: SOURCES[name] for name in names})
    assert run.frame()["spent"].iloc[-1] == 900
    assert run.frame()["error_constant"].iloc[-1] < 1e-3


def test_noise_is_not_taken_for_error():
    """An all-noise segment that is completed by zeros has no error, however much it scatters."""
    source = Synthetic.constant((30, 30), 0.0, noise=1.0, rng=0)
    design = Design([source.segment("a")], 2_000, estimator=SoftImpute(), validation=CrossFit(5))
    band = simulate(design, {"a": source}).bands["a"]
    assert abs(band.estimate) < 4 * band.se < 0.5
