"""Algorithm 1 of the paper, transcribed literally and slowly, against `Design.paper_algorithm`."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from malocate import Design, Segment, SquareRootLasso, Synthetic, simulate
from malocate.rounds import questions
from malocate.sources import Asked


class Transcript:
    """The paper's pseudocode, line by line, with plain loops over plain lists."""

    def __init__(self, design, sources, p, largest, C):
        self.design, self.sources = design, sources
        self.p, self.largest, self.C = p, largest, C
        self.picks = []

    def run(self, n):
        names = [segment.name for segment in self.design.segments]
        spent, T, B, kept = 0, dict.fromkeys(names, 0), dict.fromkeys(names, math.inf), {}
        while True:
            m = self.chosen(names, T, B)
            side = max(self.sources[m].shape)
            size = max(T[m], 4 * math.ceil((side * math.log(side) + 1) / 2))
            size = min(size, (n - spent) // 2 * 2)  # never over the budget, halves even
            if size == 0:
                return T, B, kept
            data = self.new_samples(m, T[m], size)
            spent += size
            T[m] += size
            completion = self.get_estimator(m, data)
            count, estimate = self.estimate_error(completion, data)
            bound = math.inf
            if count:
                wide = 8 * self.largest**2 * math.sqrt(math.log(side) / count)
                bound = max(0.0, estimate + wide)
            if bound <= B[m]:
                kept[m], B[m] = completion, bound
            self.picks.append((m, size, B[m]))

    def chosen(self, names, T, B):
        """The argmax; unknown ones first, the least observed of them, then by position."""

        def index(name):
            d = self.sources[name].shape
            return math.inf if T[name] == 0 else d[0] * d[1] * B[name] * T[name] ** (-1 / self.p)

        best = max(index(name) for name in names)
        ties = [name for name in names if index(name) == best]
        return min(ties, key=lambda name: (T[name], names.index(name)))

    def new_samples(self, name, first, size):
        segment = next(each for each in self.design.segments if each.name == name)
        asked = questions(self.design, segment, first, first + size)
        values = self.sources[name].answer(
            Asked(asked.rows, asked.cols, asked.draws, np.zeros(size, dtype=np.int64)),
            self.design.seed,
            name,
            "answer",
        )
        return list(zip(asked.rows.tolist(), asked.cols.tolist(), values.tolist(), strict=True))

    def get_estimator(self, name, data):
        half = data[: len(data) // 2]
        rows, cols, values = zip(*half, strict=True)
        segment = next(each for each in self.design.segments if each.name == name)
        return SquareRootLasso(C=self.C).fit(segment.observations(rows, cols, values)).dense()

    def estimate_error(self, completion, data):
        """Pair products at entries seen at least twice in the second half; one mean an entry."""
        seen = {}
        for row, col, value in data[len(data) // 2 :]:
            seen.setdefault((row, col), []).append(value - completion[row, col])
        products = [
            np.mean([one * two for one, two in itertools.combinations(misses, 2)])
            for misses in seen.values()
            if len(misses) > 1
        ]
        return len(products), float(np.mean(products)) if products else math.nan


def problem(shapes=((8, 8), (12, 10), (6, 9)), ranks=(1, 3, 2)):
    sources = {
        f"s{k}": Synthetic.ratings(shape, rank=rank, scale=(-2, 2), rng=k)
        for k, (shape, rank) in enumerate(zip(shapes, ranks, strict=True))
    }
    return sources, [source.segment(name) for name, source in sources.items()]


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_round_is_that_of_the_paper(p, seed):
    sources, segments = problem()
    budget = 2_001
    design = Design.paper_algorithm(segments, budget, p, C=0.5, seed=seed)
    run = simulate(design, sources)
    literal = Transcript(design, sources, p, largest=2.0, C=0.5)
    T, B, kept = literal.run(budget)

    # our first round asks all segments at once; the paper's first picks are those, one by one
    first = [(name, size) for name, size, _ in literal.picks[: len(segments)]]
    asked = [(change.segment, change.asked) for change in run.records[0].changes]
    assert asked == first

    later = [(name, bound) for name, _, bound in literal.picks[len(segments) :]]
    assert [record.changes[0].segment for record in run.records[1:]] == [n for n, _ in later]
    for record, (_, bound) in zip(run.records[1:], later, strict=True):
        assert record.changes[0].upper == pytest.approx(bound, rel=1e-9)

    last = run.frame().iloc[-1]
    for name in sources:
        assert last[f"n_{name}"] == T[name]
        assert run.bands[name].upper == pytest.approx(B[name], rel=1e-9)
        np.testing.assert_allclose(run.completions[name].dense(), kept[name], atol=1e-8)


def test_the_budget_is_spent_but_for_the_odd_answer():
    sources, segments = problem()
    run = simulate(Design.paper_algorithm(segments, 2_001, 1.0), sources)
    assert run.frame()["spent"].iloc[-1] == 2_000


def test_the_kept_bound_never_rises():
    sources, segments = problem()
    run = simulate(Design.paper_algorithm(segments, 4_000, math.inf, C=0.5), sources)
    frame = run.frame()
    for name in sources:
        assert (np.diff(frame[f"upper_{name}"].replace(math.inf, 1e9)) <= 0).all()


def test_the_epsilon_mode_stops_by_its_certificate():
    source = Synthetic.ratings((6, 6), rank=1, scale=(0, 1), noise=0.1, rng=0)
    design = Design.paper_algorithm(
        [source.segment("a")], 4_000, math.inf, epsilon=36 * 0.9, delta=0.1, C=0.2
    )
    run = simulate(design, {"a": source})
    assert run.stop.reached
    assert run.frame()["bound"].iloc[-1] <= 36 * 0.9
    assert run.frame()["loss"].iloc[-1] <= 36 * 0.9


def test_segments_without_a_scale_take_the_largest_answer():
    source = Synthetic.low_rank((10, 10), rank=1, rng=0)
    design = Design.paper_algorithm([Segment("a", (10, 10))], 1_000)
    run = simulate(design, {"a": source})
    assert math.isfinite(run.bands["a"].upper)
