"""The calculators give the paper's numbers, and their lower bounds are not beaten in simulation."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malocate import InvalidInput, InvalidType, Segment, Synthetic
from malocate.problem.loss import power_mean
from malocate.theory import (
    Problem,
    TheoryWarning,
    complexity,
    expected_pairs,
    first_batch,
    guaranteed_pairs,
    hard_level,
    information_limit,
    lower_constant,
    lower_rate,
    upper_rate,
)
from malocate.theory.conditions import proven_chance, stated_chance

INF = math.inf
SQUARE = (200, 200)
RANKS = {
    1: (40,) + 9 * (10,),
    2: (18, 18, 18, 18, 18, 19, 20, 22, 24, 28, 33, 40, 49, 61, 76),
}

problems = st.lists(
    st.tuples(st.integers(2, 300), st.integers(2, 300), st.integers(1, 2)), min_size=1, max_size=5
)
powers = st.sampled_from([1, 1.5, 2, 10, INF])


def experiment(number: int, p: float = INF) -> Problem:
    ranks = RANKS[number]
    return Problem((SQUARE,) * len(ranks), ranks, p)


def made(sides, p, **more) -> Problem:
    return Problem(tuple((a, b) for a, b, _ in sides), tuple(rank for *_, rank in sides), p, **more)


class TestOneMatrix:
    def test_complexity_is_that_of_the_paper(self):
        assert complexity(SQUARE, 10) == pytest.approx(10 * 200**3 * math.log(200))
        assert complexity((100, 50), 3) == pytest.approx(3 * 5000 * 100 * math.log(100))
        assert complexity((50, 100), 3) == complexity((100, 50), 3)
        assert complexity((1, 1), 1) == pytest.approx(math.log(2))

    def test_delta_takes_the_place_of_the_logarithm(self):
        ratio = complexity(SQUARE, 10, delta=0.05) / complexity(SQUARE, 10)
        assert ratio == pytest.approx(math.log(20) / math.log(200))

    @pytest.mark.parametrize(("side", "size"), [(200, 2124), (1, 4), (2, 8), (55, 444)])
    def test_the_first_batch_is_that_of_algorithm_1(self, side, size):
        assert first_batch((side, side)) == size == first_batch((1, side))

    @given(st.integers(2, 5000))
    def test_half_the_first_batch_is_the_smallest_even_number_allowed(self, side):
        half, least = first_batch((side, 1)) // 2, side * math.log(side) + 1
        assert half % 2 == 0
        assert half - 2 < least <= half

    def test_rates(self):
        rate = upper_rate(SQUARE, 10, 20_000, amplitude=2.0, C=3.0)
        assert rate == pytest.approx(3 * 4 * 10 * 200 * math.log(200) / 20_000)
        assert information_limit((200, 100), 10, 20_000, noise=0.1) == pytest.approx(
            0.01 * 10 * 290 / 20_000
        )
        assert lower_rate(SQUARE, 10, 20_000, noise=2.0, constant="paper") == pytest.approx(
            4 / 2048 * 10 * 200 / 20_000
        )

    @pytest.mark.parametrize(
        ("call", "kind", "message"),
        [
            (lambda: complexity(SQUARE, 0), InvalidInput, "rank is 0"),
            (lambda: complexity(SQUARE, 1.5), InvalidType, "rank is 1.5"),
            (lambda: complexity((200, 3), 4), InvalidInput, "rank is 4; for shape"),
            (lambda: complexity(SQUARE, 4, delta=1.0), InvalidInput, "delta is 1.0"),
            (lambda: upper_rate(SQUARE, 4, 0), InvalidInput, "answers is 0"),
            (lambda: lower_constant("klopp", SQUARE, 4), InvalidInput, "constant is 'klopp'"),
            (lambda: hard_level(SQUARE, 4, 9, constant="gaussian"), InvalidInput, "has no level"),
            (lambda: expected_pairs(3, 0), InvalidInput, "entries is 0"),
        ],
    )
    def test_nonsense_is_refused(self, call, kind, message):
        with pytest.raises(kind, match=message):
            call()


class TestPairs:
    def test_about_fourteen_judge_the_first_completion(self):
        draws = first_batch(SQUARE) // 2
        assert expected_pairs(draws, 40_000) == pytest.approx(draws**2 / 80_000, rel=0.03)
        assert expected_pairs(draws, 40_000) == pytest.approx(14, abs=0.3)

    @pytest.mark.parametrize(("draws", "entries"), [(30, 100), (300, 100), (2, 5), (1, 5), (0, 5)])
    def test_expected_pairs_are_seen(self, draws, entries):
        rng = np.random.default_rng(0)
        cells = rng.integers(entries, size=(4000, draws))
        seen = [(np.bincount(run, minlength=1) >= 2).sum() for run in cells]
        margin = 4 * np.std(seen) / math.sqrt(4000) + 1e-12
        assert np.mean(seen) == pytest.approx(expected_pairs(draws, entries), abs=margin)

    def test_the_guarantee_holds_in_simulation(self):
        few = guaranteed_pairs(2000, 3600)
        rng = np.random.default_rng(0)
        seen = [(np.bincount(rng.integers(3600, size=1000)) >= 2).sum() for _ in range(500)]
        assert few.pairs == pytest.approx(2000**2 / (64 * 3600))
        assert few.chance == pytest.approx(1 - math.exp(-(2000**2) / (372 * 3600)))
        assert np.mean(np.array(seen) >= few.pairs) >= few.chance

    def test_too_many_answers_are_warned_of(self):
        with pytest.warns(TheoryWarning, match="101 answers and 100 entries"):
            guaranteed_pairs(101, 100)


class TestUpperBounds:
    @pytest.mark.parametrize(
        ("number", "p", "advantage"), [(1, INF, 3.1), (2, INF, 2.5), (1, 1, 1.07), (2, 1, 1.07)]
    )
    def test_the_advantage_over_uniform_in_the_experiments(self, number, p, advantage):
        digits = 2 if p == 1 else 1
        assert round(experiment(number, p).advantage(), digits) == advantage

    def test_bounds_are_written_as_in_the_paper(self):
        costs = np.array(experiment(1).complexities())
        with pytest.warns(TheoryWarning):
            assert experiment(1).upper_bound(200_000) == pytest.approx(costs.sum() / 200_000)
        with pytest.warns(TheoryWarning):
            bound = experiment(1, p=2).upper_bound(200_000)
        assert bound == pytest.approx((costs ** (2 / 3)).sum() ** 1.5 / 200_000)
        assert experiment(1, p=2).uniform_bound(200_000, C=3.0) == pytest.approx(
            3 * 10 * math.sqrt((costs**2).sum()) / 200_000
        )

    @pytest.mark.parametrize(("p", "paper"), [(1, 128), (2, 64 * math.sqrt(2)), (INF, 64)])
    @pytest.mark.parametrize("C", [1.0, 500.0])
    def test_constants_of_the_proof(self, p, paper, C):
        problem = experiment(2, p)
        one = problem.budget_for(1.0)
        of_paper, of_steps = (
            problem.budget_for(1.0, constant=name, C=C) / one for name in ("paper", "sharp")
        )
        assert of_paper == pytest.approx(paper * max(C, 128))
        assert of_steps == pytest.approx(8 * (C + 128))
        assert of_steps < of_paper

    def test_the_sharp_constant_balances_the_two_bounds_of_the_proof(self):
        """One falls as 2/T, one rises as 8^(1 + 1/p)·(T/2)^(1/p): together 8 at most, for all p."""
        for p in (1.0, 2.0, 7.0):
            times = np.geomspace(1e-3, 1e3, 200_001)
            worst = np.minimum(2 / times, 8 * (8 * times / 2) ** (1 / p)).max()
            one = experiment(1, p).budget_for(1.0)
            sharp = experiment(1, p).budget_for(1.0, constant="sharp") / one
            assert sharp / 129 == pytest.approx(worst, rel=1e-3)

    @given(problems, powers)
    def test_active_is_never_worse_than_uniform(self, sides, p):
        assert made(sides, p).advantage() >= 1 - 1e-12

    def test_equal_matrices_leave_no_advantage(self):
        assert Problem((SQUARE,) * 3, (5, 5, 5), 2).advantage() == pytest.approx(1)

    def test_sample_complexity_is_the_bound_turned_round(self):
        problem = experiment(2, p=2)
        with pytest.warns(TheoryWarning):
            epsilon = problem.upper_bound(300_000, amplitude=2.0)
        assert problem.budget_for(epsilon, amplitude=2.0) == pytest.approx(300_000)
        ratio = problem.budget_for(epsilon, 0.01) / problem.budget_for(epsilon)
        assert ratio == pytest.approx(math.log(100) / math.log(200))

    def test_the_amplitude_counts_squared(self):
        assert experiment(1).budget_for(1.0, amplitude=3.0) == pytest.approx(
            9 * experiment(1).budget_for(1.0)
        )

    @pytest.mark.parametrize(
        ("settings", "kind", "message"),
        [
            ({"constant": "klopp"}, InvalidType, "constant is 'klopp'; it must be a positive"),
            ({"constant": -1}, InvalidInput, "constant is -1"),
            ({"C": 0}, InvalidInput, "C is 0"),
        ],
    )
    def test_bad_constants_are_refused(self, settings, kind, message):
        with pytest.raises(kind, match=message):
            experiment(1).budget_for(1.0, **settings)


class TestConditions:
    def test_experiment_1_fails_the_theorem_as_stated(self):
        held = {each.name: each for each in experiment(1).conditions(200_000)}
        assert held["budget"].holds
        assert "12 Σ T^I = 127,440" in held["budget"].sentence
        assert not held["stated budget"].holds
        assert "48 Σ d log d = 508,638" in held["stated budget"].sentence
        assert held["side"].holds

    def test_the_stated_probability_is_vacuous_from_three_matrices_on(self):
        assert [stated_chance([SQUARE] * k) > 0 for k in (1, 2, 3, 4)] == [True, True, False, False]

    def test_the_proofs_probability_is_vacuous_already_for_one(self):
        assert math.exp(-(math.log(200) ** 2) / 372) == pytest.approx(0.93, abs=0.005)
        assert proven_chance([SQUARE]) < -13
        assert proven_chance([(10**8, 10**8)]) < 0

    def test_a_warning_names_what_fails(self):
        with pytest.warns(TheoryWarning) as caught:
            experiment(1).upper_bound(120_000)
        (text,) = [str(each.message) for each in caught]
        named = re.findall(r"(budget|stated budget|probability|lemma|side|regime): ", text)
        assert named == ["budget", "stated budget", "probability", "lemma"]
        assert caught[0].filename == __file__

    def test_small_sides_and_full_matrices_fail(self):
        failed = {e.name for e in Problem(((54, 20),), (1,)).conditions(10_000) if not e.holds}
        assert {"side", "regime"} <= failed
        failed = {e.name for e in Problem(((55, 55),), (1,)).conditions(3_000) if not e.holds}
        assert not {"side", "regime"} & failed

    def test_costs_count_in_the_budget(self):
        dear = Problem((SQUARE,), (10,), costs=(5.0,)).conditions(12_744)
        assert [each.holds for each in dear[:1]] == [False]
        assert "63,720" in dear[0].sentence


class TestAllocation:
    def test_the_experiments_good_allocation(self):
        assert experiment(1).allocation(200_000) == (61_538, *6 * (15_385,), *3 * (15_384,))
        root = experiment(1, p=1).allocation(200_000)
        assert root[0] / root[1] == pytest.approx(2, rel=1e-3)

    @given(problems, powers, st.integers(1, 100_000))
    def test_whole_answers_add_up_to_the_budget(self, sides, p, budget):
        problem = made(sides, p)
        answers, ideal = problem.allocation(budget), problem._ideal(budget)
        assert sum(answers) == budget
        assert all(abs(n - exact) < 1 for n, exact in zip(answers, ideal, strict=True))

    @given(problems, powers, st.data())
    def test_no_other_allocation_has_a_smaller_bound(self, sides, p, data):
        def numbers():
            each = st.floats(0.1, 10)
            return data.draw(st.lists(each, min_size=len(sides), max_size=len(sides)))

        weights, costs, other = numbers(), numbers(), np.array(numbers())
        problem = made(sides, p, weights=weights, costs=costs)
        priced = np.multiply(problem.complexities(), weights)
        best = problem._active(problem.complexities(), 1000)
        assert power_mean(priced / problem._ideal(1000), p) == pytest.approx(best)
        other *= 1000 / (other @ costs)
        assert power_mean(priced / other, p) >= best * (1 - 1e-9)

    def test_costs_are_kept(self):
        answers = Problem((SQUARE,) * 2, (10, 40), 1, costs=(1.0, 7.0)).allocation(1000)
        assert 993 < answers[0] + 7 * answers[1] <= 1000

    def test_a_problem_of_segments(self):
        segments = [Segment("a", SQUARE, weight=2), Segment("b", (30, 20), cost=3)]
        problem = Problem.of(segments, [10, 2], p=1)
        assert problem.shapes == (SQUARE, (30, 20))
        assert (problem.weights, problem.costs) == ((2, 1), (1, 3))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"shapes": ()}, "There are no shapes"),
            ({"ranks": (1, 2)}, "There are 2 ranks for 1 shapes"),
            ({"ranks": (201,)}, "rank is 201"),
            ({"weights": (0,)}, r"weights\[0\] is 0"),
            ({"costs": (1, 1)}, "There are 2 costs for 1 shapes"),
            ({"p": 0.5}, "p is 0.5"),
        ],
    )
    def test_bad_problems_are_refused(self, settings, message):
        with pytest.raises(InvalidInput, match=message):
            Problem(**({"shapes": (SQUARE,), "ranks": (10,)} | settings))

    def test_a_budget_is_positive(self):
        with pytest.raises(InvalidInput, match="budget is 0"):
            experiment(1).allocation(0)

    def test_the_information_limit_of_experiment_1(self):
        assert experiment(1, p=1).information_limit(200_000, noise=0.1) == pytest.approx(930, abs=1)


class TestLowerBounds:
    def test_the_constants(self):
        assert lower_constant("paper", SQUARE, 10) == 1 / 2048
        assert round(1 / lower_constant("corrected", SQUARE, 10)) == 36_933
        assert [round(1 / lower_constant("optimised", SQUARE, r)) for r in (10, 40)] == [3287, 3117]
        assert round(1 / lower_constant("optimised", (10**8, 10**8), 10**6)) == 2955

    @pytest.mark.parametrize("constant", ["corrected", "optimised"])
    @pytest.mark.parametrize(("shape", "rank"), [(SQUARE, 10), ((200, 70), 3), ((8, 8), 1)])
    def test_the_corrected_proof_step_by_step(self, constant, shape, rank):
        """From the level of the entries to the constant, with nothing taken from the code."""
        answers, bits = 5000.0, rank * max(shape)
        log_m = bits / 8 * math.log(2)
        level = hard_level(shape, rank, answers, constant=constant)
        kl = answers * level**2 / 2  # at most: the whole matrix at this level, noise 1
        share = kl / log_m
        copies = min(shape) / (2 * rank)  # at least: a floor is more than half
        apart = level**2 * copies * bits / 8
        chance = (1 - 2 * share - math.sqrt(2 * share / log_m)) / (1 + math.exp(-log_m / 2))
        bound = lower_constant(constant, shape, rank) * bits * math.prod(shape) / answers
        assert share < 0.25 + 1e-12
        if constant == "corrected":
            assert share == pytest.approx(1 / 8)
            assert chance >= 0.08
            chance = 0.08
        assert bound == pytest.approx(apart / 4 * chance)

    def test_optimised_is_the_best_share(self):
        log_m, shares = 250 * math.log(2), np.linspace(1e-4, 0.4, 100_001)
        values = shares * (1 - 2 * shares - np.sqrt(2 * shares / log_m))
        best = math.log(2) / 256 * values.max() / (1 + math.exp(-log_m / 2))
        assert lower_constant("optimised", SQUARE, 10) == pytest.approx(best)

    def test_the_papers_own_level_breaks_its_own_proof(self):
        level = hard_level(SQUARE, 10, 5000, constant="paper")
        assert 5000 * level**2 / 2 > 1 / 8 * 250 * math.log(2)

    def test_bounds_add_the_segments_up(self):
        problem = experiment(1)
        hidden = sum(r * 200**3 for r in RANKS[1])
        for constant in ("paper", "corrected", "two_point", "gaussian"):
            bound = problem.lower_bound(200_000, noise=2.0, constant=constant)
            a = lower_constant(constant, SQUARE, 10)
            assert bound == pytest.approx(a * 4 * hidden / 200_000)

    def test_only_the_gaussian_bound_grows_with_smaller_p(self):
        hidden = np.array(RANKS[1]) * 200**3 / 200_000
        for constant in ("corrected", "optimised", "two_point"):
            one, inf = (experiment(1, p).lower_bound(200_000, constant=constant) for p in (1, INF))
            assert one == inf
        one = experiment(1, 1).lower_bound(200_000, constant="gaussian")
        assert one == pytest.approx(np.sqrt(hidden).sum() ** 2)

    @given(problems, powers)
    def test_no_bound_is_above_the_information_limit(self, sides, p):
        problem = made(
            [(a, b, rank) for a, b, rank in sides if rank * 2 <= min(a, b)] or [(9, 9, 1)], p
        )
        limit = problem.information_limit(1000)
        bounds = [problem.lower_bound(1000, constant=a) for a in ("two_point", "gaussian")]
        assert max(bounds) <= limit * (1 + 1e-9)

    def test_a_matrix_too_small_for_the_proof_is_warned_of(self):
        tiny = Problem(((7, 7),), (1,))
        with pytest.warns(TheoryWarning, match="size: rank times longer side must be 8 at least"):
            tiny.lower_bound(100)
        assert tiny.lower_bound(100, constant="gaussian") == pytest.approx(3.43)


class TestHardInstances:
    """Who knows how a hard matrix is made, and does the best he can, is not below the bounds."""

    SHAPE, RANK, COPIES, RUNS = (40, 22), 4, 5, 200

    def errors(self, answers, level, guess) -> np.ndarray:
        """Squared Frobenius errors of guesses from the counts and sums of a block's answers."""
        found = []
        for run in range(self.RUNS):
            source = Synthetic.hard(self.SHAPE, self.RANK, level, noise=1.0, rng=run)
            counts, sums = self.block(source.observe(answers, rng=[1, run]))
            found.append(self.COPIES * ((guess(counts, sums) - source.left) ** 2).sum())
        return np.array(found)

    @pytest.mark.parametrize("answers", [600, 3000])
    def test_the_best_guess_of_two_point_matrices(self, answers):
        """Pinsker's inequality gives away about half."""
        level = hard_level(self.SHAPE, self.RANK, answers)
        errors = self.errors(
            answers, level, lambda n, total: level / (1 + np.exp(level * (n * level / 2 - total)))
        )
        bound = Problem((self.SHAPE,), (self.RANK,)).lower_bound(answers, constant="two_point")
        assert 1.5 * bound <= errors.mean() <= 2.5 * bound

    def test_least_squares_attains_the_gaussian_bound(self):
        """It knows the block and its copies; only chance differences in counts cost a little."""
        errors = self.errors(20_000, 5.0, lambda n, total: total / n)
        bound = Problem((self.SHAPE,), (self.RANK,)).lower_bound(20_000, constant="gaussian")
        margin = 4 * errors.std() / math.sqrt(self.RUNS)
        assert errors.mean() == pytest.approx(1.01 * bound, abs=margin)
        assert margin < 0.04 * bound

    def block(self, seen):
        """Count and sum the answers about each number of the block."""
        used = seen.cols < self.COPIES * self.RANK
        place = seen.rows[used] * self.RANK + seen.cols[used] % self.RANK
        size = self.SHAPE[0] * self.RANK
        counts = np.bincount(place, minlength=size)
        sums = np.bincount(place, seen.values[used], minlength=size)
        return (each.reshape(self.SHAPE[0], self.RANK) for each in (counts, sums))
