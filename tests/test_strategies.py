"""Where to ask next: indices by hand, the rules that all strategies share, and their words."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standings import OURS, SEGMENTS, SEVERAL, asked, standing

import malocate
from malocate import (
    GoodAllocation,
    InvalidInput,
    InvalidType,
    MALocate,
    Oracle,
    Segment,
    Standing,
    Uniform,
)
from malocate.strategies import find_strategy, strategy_names, why
from malocate.strategies.choosing import affordable, choose, first_batches
from malocate.theory import Problem, complexity

NAN, INF = math.nan, math.inf


# the index


@pytest.mark.parametrize(
    ("p", "index"),
    [(1, 2 * 30 * 0.5 / 64), (2, 2 * 30 * 0.5 / 8), (3, 2 * 30 * 0.5 / 4), (INF, 30.0), (None, 30)],
)
@pytest.mark.parametrize("by", ["estimate", "upper", "truth"])
def test_the_index_by_hand(p, index, by):
    known = {
        "estimate": {"estimate": 0.4, "se": 0.1},
        "upper": {"upper": 0.5},
        "truth": {"error": 0.5},
    }[by]
    one = standing(entries=30, answers=32, weight=2.0, cost=2.0, **known)
    strategy = Oracle(p) if by == "truth" else MALocate(p, by)
    assert strategy.plan([one], 100).index == (pytest.approx(index),)


def test_the_margin_is_so_many_standard_errors():
    one = standing(estimate=0.4, se=0.1)
    for confidence, error in ((0, 0.4), (1, 0.5), (2.5, 0.65)):
        index = MALocate(confidence=confidence).plan([one], 100).index
        assert index == (pytest.approx(100 * error),)


def test_without_confidence_an_unknown_standard_error_does_not_count():
    one, two = standing(estimate=0.4, se=INF), standing("south", estimate=0.5, se=NAN)
    assert MALocate(confidence=0).plan([one, two], 9).index == (40.0, 50.0)


def test_the_largest_error_is_asked_at_infinity_and_the_largest_gain_at_one():
    few, many = standing(estimate=0.2), standing("south", answers=200, estimate=0.3)
    assert asked(MALocate(), few, many) == (0, 10)
    assert asked(MALocate(p=1), few, many) == (10, 0)


def test_an_estimate_below_zero_is_clipped_before_it_is_multiplied():
    few, many = standing(estimate=-0.4), standing("south", answers=200, estimate=-0.4)
    assert MALocate(p=1).plan([few, many], 100).index == (0.0, 0.0)
    assert asked(MALocate(p=1), many, few) == (0, 10)  # unclipped, more answers would look worse


def test_an_estimate_below_zero_does_not_eat_its_margin():
    low, high = standing(estimate=-0.4, se=0.2), standing("south", estimate=0.05, se=0.1)
    index = MALocate().plan([low, high], 100).index
    assert index == (pytest.approx(20.0), pytest.approx(15.0))
    assert asked(MALocate(), low, high) == (10, 0)


def test_weights_sizes_and_costs_decide():
    one, two = standing(estimate=0.2), standing("south", estimate=0.3)
    assert asked(MALocate(), one, two) == (0, 10)
    assert asked(MALocate(), replace(one, weight=2.0), two) == (10, 0)
    assert asked(MALocate(), replace(one, entries=200), two) == (10, 0)
    assert asked(MALocate(p=1), one, replace(two, cost=2.0)) == (10, 0)
    assert asked(MALocate(), one, replace(two, cost=2.0)) == (0, 10)  # cost is outside the maximum


# ties, and what is not known


def test_a_tie_goes_to_the_fewest_answers_and_then_to_position():
    one = standing(answers=60, estimate=0.2)
    two, three = standing("south", estimate=0.2), standing("east", estimate=0.2)
    assert asked(MALocate(), one, two, three) == (0, 10, 0)
    assert asked(MALocate(), two, two) == (10, 0)


@pytest.mark.parametrize("strategy", [MALocate(), MALocate(p=1), MALocate(by="upper"), Oracle()])
@pytest.mark.parametrize("unknown", [INF, NAN])
def test_what_is_not_known_goes_first(strategy, unknown):
    bands = {"estimate": unknown, "se": unknown, "upper": unknown, "error": unknown}
    known = standing(entries=10**9, estimate=9.0, upper=9.0, error=9.0)
    many, few = standing("south", answers=70, **bands), standing("east", answers=60, **bands)
    allocation = strategy.plan([known, many, few], 1_000)
    assert allocation.answers == (0, 0, 10)
    assert allocation.index[1:] == (INF, INF)
    assert asked(strategy, known, few, replace(few, name="west")) == (0, 10, 0)


def test_an_index_that_is_not_a_number_counts_as_unknown():
    pair = [standing("north"), standing("south")]
    by_name = {"north": 5.0, "south": NAN}
    allocation = choose(pair, 100, lambda each: by_name[each.name])
    assert allocation.answers == (0, 10)
    assert allocation.index == (5.0, INF)


# first batches


def test_the_first_batches_go_out_all_at_once():
    new = [Standing("a", 100, batch=30), standing("b", estimate=9.0), Standing("c", 9, batch=7)]
    assert asked(MALocate(), *new) == (30, 0, 7)


@pytest.mark.parametrize(
    ("batches", "budget", "expected"),
    [
        ((30, 30), 60, (30, 30)),
        ((30, 30), 59, (30, 29)),
        ((30, 60, 10), 50, (15, 30, 5)),
        ((200, 3, 40, 9), 50, (39, 1, 8, 2)),  # the smallest keeps one; the rest is in proportion
        ((100, 100, 100), 2, (1, 1, 0)),
        ((5, 5, 5), 4, (2, 1, 1)),
        ((5,), 0.5, (0,)),
    ],
)
def test_a_budget_too_small_for_the_first_batches_is_shared(batches, budget, expected):
    new = [Standing(str(place), 100, batch=batch) for place, batch in enumerate(batches)]
    assert asked(MALocate(), *new, budget=budget) == expected


def test_shares_of_a_first_round_are_whole_multiples():
    new = [Standing(name, 100, batch=40, multiple=2) for name in "abc"]
    assert asked(MALocate(), *new, budget=41) == (14, 14, 12)


def test_where_not_all_can_be_asked_once_the_cheapest_are():
    new = [Standing(str(cost), 100, batch=9, cost=cost) for cost in (5.0, 2.0, 3.0)]
    assert asked(MALocate(), *new, budget=5.5) == (0, 1, 1)


def test_a_segment_too_dear_for_its_first_answer_stops_nobody():
    dear, known = Standing("a", 100, batch=9, cost=50.0), standing("b", estimate=0.1)
    assert asked(MALocate(), dear, known, budget=20) == (0, 10)


def test_who_may_not_be_asked_gets_no_first_batch():
    assert asked(MALocate(), Standing("a", 9, batch=0), Standing("b", 9, batch=4)) == (0, 4)


# floors, caps, costs


def test_who_is_short_of_the_floor_goes_before_the_largest_error():
    hard = standing(estimate=9.0, answers=20)
    short = [standing(name, estimate=0.0, answers=n, short=5) for name, n in (("b", 40), ("c", 30))]
    assert asked(MALocate(), hard, *short) == (0, 0, 10)
    assert asked(MALocate(), hard, replace(short[0], batch=0)) == (10, 0)


def test_a_batch_is_cut_to_the_budget_the_cap_and_the_multiple():
    assert affordable(standing(), 7.9) == 7
    assert affordable(standing(room=3), 100) == 3
    assert affordable(standing(multiple=4), 7.9) == 4
    assert affordable(standing(cost=0.1), 0.3) == 3  # 0.3 / 0.1 is a little less than 3
    assert affordable(standing(multiple=2), 1.0) == 0
    assert affordable(standing(), INF) == 10
    assert affordable(standing(), -1.0) == 0


def test_who_cannot_be_asked_leaves_the_maximum():
    full, other = standing(estimate=9.0, batch=0), standing("south", estimate=0.1)
    dear = standing("east", estimate=9.0, cost=500.0)
    assert asked(MALocate(), full, dear, other, budget=499) == (0, 0, 10)
    assert asked(MALocate(), full, dear, budget=499) == (0, 0)
    assert not MALocate().plan([], 100)


@given(st.lists(SEGMENTS, max_size=8), st.floats(0, 3_000), OURS, SEVERAL)
def test_every_plan_keeps_the_common_rules(standings, budget, strategy, several):
    strategy = replace(strategy, parallel_segments=several)
    allocation = strategy.plan(standings, budget)
    rows = list(zip(standings, allocation.answers, strict=True))
    assert math.fsum(each.cost * n for each, n in rows) <= budget * (1 + 1e-9) + 1e-8
    assert all(0 <= n <= each.batch and n % each.multiple == 0 for each, n in rows)
    assert not any(math.isnan(value) for value in allocation.index)
    chosen = [each for each, n in rows if n]
    new = [each for each in standings if each.answers == 0 and affordable(each, budget)]
    could = [each for each in standings if affordable(each, budget)]
    assert bool(chosen) == bool(could)
    if new:
        assert all(each.answers == 0 for each in chosen)
    elif could:
        assert 1 <= len(chosen) <= several
        short = [each for each in could if each.short > 0]
        assert all(each.short > 0 for each in chosen) or not short
        left = budget - math.fsum(each.cost * n for each, n in rows)
        unasked = [each for each, n in rows if not n and each in (short or could)]
        assert len(chosen) == several or not any(affordable(e, left - 1e-6) for e in unasked)


@given(st.lists(SEGMENTS, min_size=1, max_size=8), st.floats(0, 1))
def test_a_first_round_is_in_proportion_and_wastes_nothing(standings, share):
    new = [replace(each, answers=0) for each in standings]
    full = [affordable(each, INF) for each in new]
    whole = math.fsum(n * each.cost for n, each in zip(full, new, strict=True))
    units = math.fsum(e.multiple * e.cost for n, e in zip(full, new, strict=True) if n)
    budget = max(share * whole, units)
    counts = first_batches(new, budget)
    assert all(counts.get(place, 0) for place, n in enumerate(full) if n)  # none is left out
    left = budget - math.fsum(n * new[place].cost for place, n in counts.items())
    cut = [place for place, n in counts.items() if n < full[place]]
    dearest = max((new[place].multiple * new[place].cost for place in cut), default=INF)
    assert -1e-6 <= left < dearest * 1.000001
    many = [(place, n, new[place].multiple) for place, n in counts.items() if n > 1]
    shares = [((n - unit) / full[k], (n + unit) / full[k]) for k, n, unit in many if n > unit]
    if shares:  # one scale fits all that got more than one unit
        assert max(low for low, _ in shares) <= min(high for _, high in shares) + 1e-6


# uniform, the oracle, the good allocation


def spend(strategy, standings, budget):
    """Ask until nobody can be asked; the errors stay as they are."""
    standings = list(standings)
    while allocation := strategy.plan(standings, budget):
        for place, count in enumerate(allocation.answers):
            one = standings[place]
            budget -= count * one.cost
            standings[place] = replace(one, answers=one.answers + count)
    return [each.answers for each in standings]


def test_uniform_goes_round():
    new = [Standing(name, entries, batch=8) for name, entries in (("a", 10), ("b", 40), ("c", 50))]
    assert spend(Uniform(), new, 240) == [80, 80, 80]
    assert spend(Uniform(), [replace(new[0], cost=4.0), *new[1:]], 240) == [40, 40, 40]
    assert spend(Uniform("entries"), [replace(each, batch=1) for each in new], 200) == [20, 80, 100]


def test_the_oracle_wants_a_known_truth():
    words = "error of segment 'north' is not known; only a simulation with a known truth can run"
    with pytest.raises(InvalidInput, match=words):
        Oracle().plan([standing()], 100)
    assert asked(Oracle(), Standing("north", 9, batch=4)) == (4,)  # nothing to be known yet


def experiment_one():
    segments = [Segment(f"k{place}", (200, 200)) for place in range(10)]
    return segments, [40] + 9 * [10]


@pytest.mark.parametrize(
    ("p", "expected"), [(INF, 4.0), (None, 4.0), (1, 4.0**0.5), (2, 4.0 ** (2 / 3))]
)
def test_the_good_allocation_of_experiment_one(p, expected):
    segments, ranks = experiment_one()
    good = GoodAllocation.of(segments, ranks, p)
    new = [Standing(each.name, each.n_askable, batch=100) for each in segments]
    answers = spend(good, new, 200_000)
    assert sum(answers) == 200_000
    assert answers[0] == pytest.approx(200_000 * expected / (expected + 9), rel=0.005)
    ratios = [answers[0] / expected, *answers[1:]]
    ahead = [(answers[0] - 100) / expected, *(each - 100 for each in answers[1:])]
    assert max(ahead) <= min(ratios)  # nobody is ahead by more than the last batch


def test_the_good_allocation_minimises_the_loss_of_errors_that_fall_like_one_over_answers():
    known, costs, budget, p = {"a": 5.0, "b": 40.0, "c": 90.0}, (1.0, 3.0, 0.5), 1_000.0, 2.0
    good = GoodAllocation(known, p)
    rows = [Standing(name, 9, cost=cost) for name, cost in zip("abc", costs, strict=True)]

    def loss(targets):
        scale = budget / sum(t * cost for t, cost in zip(targets, costs, strict=True))
        return sum((known[name] / (scale * t)) ** p for name, t in zip("abc", targets, strict=True))

    best = [good.target(each) for each in rows]
    for place in range(3):
        for factor in (0.97, 1.03):
            moved = [t * factor if place == k else t for k, t in enumerate(best)]
            assert loss(moved) > loss(best)


@pytest.mark.parametrize("p", [1.0, 2.0, INF])
def test_the_targets_are_those_of_the_theory(p):
    segments = [
        Segment("a", (30, 80), cost=3.0),
        Segment("b", (60, 60), weight=2.0),
        Segment("c", (9, 9), cost=0.5),
    ]
    good, whole = GoodAllocation.of(segments, (5, 9, 2), p), 10**8
    rows = [Standing(s.name, s.n_askable, weight=s.weight, cost=s.cost) for s in segments]
    targets = [good.target(each) for each in rows]
    scale = whole / sum(t * each.cost for t, each in zip(targets, rows, strict=True))
    expected = Problem.of(segments, (5, 9, 2), p).allocation(whole)
    assert [scale * t for t in targets] == pytest.approx(expected, rel=1e-4)


def test_complexities_come_from_shapes_ranks_and_masks():
    wide, masked = (
        Segment("a", (30, 80)),
        Segment("b", (4, 4), mask=[[True] * 4] + 3 * [[False] * 4]),
    )
    good = GoodAllocation.of([wide, masked], {"b": 2, "a": 5}, p=1)
    (a, wide_one), (b, masked_one) = good.complexities
    assert (a, b) == ("a", "b")
    assert wide_one == complexity((30, 80), 5)
    assert masked_one == pytest.approx(0.75 * complexity((4, 4), 2))


def test_a_good_allocation_is_made_of_plain_values():
    good = GoodAllocation({"a": 3, "b": 4.5}, p=2)
    assert good.complexities == (("a", 3.0), ("b", 4.5))
    assert GoodAllocation(**asdict(good)) == good
    assert GoodAllocation([["a", 3.0], ["b", 4.5]], 2.0) == good


# settings


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: MALocate(p=0.5), InvalidInput, "p is 0.5; it must be at least 1"),
        (lambda: Oracle(p=NAN), InvalidInput, "p is nan"),
        (lambda: MALocate(p="inf"), InvalidType, "p is 'inf'; it must be a number"),
        (lambda: MALocate(by="bound"), InvalidInput, "by is 'bound'; it must be 'estimate' or 'up"),
        (lambda: Uniform(by=3), InvalidInput, "by is 3; it must be 'segment' or 'entries'"),
        (lambda: MALocate(confidence=-1), InvalidInput, "confidence is -1; it must be 0 or more"),
        (lambda: MALocate(confidence=INF), InvalidInput, "confidence is inf"),
        (lambda: MALocate(confidence="1"), InvalidType, "confidence is '1'; it must be a number"),
        (
            lambda: GoodAllocation({"a": 0}),
            InvalidInput,
            r"complexities\['a'\] is 0; it",
        ),
        (lambda: GoodAllocation(3), InvalidType, "complexities is 3; it must be a mapping"),
        (lambda: MALocate(parallel_segments=0), InvalidInput, "parallel_segments is 0; it must be"),
        (lambda: Uniform(parallel_segments=2.0), InvalidType, "parallel_segments is 2.0; it must"),
        (lambda: Oracle(parallel_segments=True), InvalidType, "parallel_segments is True"),
        (
            lambda: GoodAllocation({"a": 1}, parallel_segments=-1),
            InvalidInput,
            "parallel_segments is -1; it must be at least 1",
        ),
        (lambda: GoodAllocation([3]), InvalidType, r"complexities is \[3\]; it must be a mapping"),
        (lambda: GoodAllocation([("a", 1), ("a", 2)]), InvalidInput, "names a segment twice"),
    ],
)
def test_a_wrong_setting_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([1, 2], "There are 2 ranks and 1 segments"),
        ({"south": 1}, "ranks and segments differ in north, south"),
        ([4], r"Segment 'north': rank is 4; for shape \(5, 3\) it can be 3 at most"),
        ([0], "Segment 'north': rank is 0; it must be at least 1"),
    ],
)
def test_wrong_ranks_are_refused(ranks, words):
    with pytest.raises(InvalidInput, match=words):
        GoodAllocation.of([Segment("north", (5, 3))], ranks)


def test_a_segment_without_a_complexity_is_named():
    with pytest.raises(InvalidInput, match="no complexity for segment 'north', only for south"):
        GoodAllocation({"south": 1.0}).plan([standing()], 10)


# words


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (MALocate(), "largest error still expected, 0.31 per cell on 4,000 cells"),
        (MALocate(by="upper"), "largest bound on the error, 0.5 per cell on 4,000 cells"),
        (Oracle(), "largest true error, 123 per cell on 4,000 cells"),
        (
            MALocate(p=1),
            (
                "its next answers should take most off the loss, error still expected "
                "0.31 per cell on 4,000 cells"
            ),
        ),
        (Uniform(), "fewest answers so far"),
        (Uniform("entries"), "fewest answers for its 4,000 cells"),
        (GoodAllocation({"north": 1.0}), "furthest below its share of the good allocation"),
        (None, "index 0.5"),
    ],
)
def test_a_round_says_why(strategy, expected):
    one = standing(entries=4_000, answers=1_600, estimate=0.29, se=0.02, upper=0.5, error=123.2)
    allocation = (strategy or MALocate()).plan([one], 100)
    if strategy is None:
        allocation = replace(allocation, index=(0.5,))
    assert why(allocation, [one], strategy) == f"north: {expected}, after 1,600 answers"


def test_why_in_special_cases():
    new = [Standing(name, 9, batch=400) for name in "abcde"]
    plan = MALocate().plan
    assert why(plan(new, 2_000), new) == "a, b, c and 2 more: never asked before, 2,000 answers"
    assert why(plan(new, 0), new).startswith("nobody can be asked: the budget is spent")
    short = [standing(short=1_200)]
    assert why(plan(short, 9), short) == "north: 1,200 short of its floor, after 50 answers"
    unknown = [standing()]
    told = why(plan(unknown, 9), unknown, MALocate())
    assert told == "north: nothing is known of its error yet, after 50 answers"
    heavy = [standing(estimate=0.5, weight=3.0)]
    assert "cells, weight 3, after" in why(plan(heavy, 9), heavy, MALocate())


# names and speed


@pytest.mark.parametrize("name", ["GoodAllocation", "MALocate", "Oracle", "Uniform"])
def test_ours_are_found_by_name(name):
    assert name in strategy_names()
    assert find_strategy(name) is getattr(malocate, name)


def test_strategies_are_light():
    code = "import sys, malocate.strategies; print('scipy' in sys.modules, 'numba' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["False", "False"]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidInput, match=r"no strategy 'Malocate'; .* Did you mean 'MALocate'"):
        find_strategy("Malocate")


def test_planning_for_a_thousand_segments_takes_a_few_milliseconds():
    known = [standing(str(n), answers=50 + n, estimate=0.1 + n % 7, se=0.1) for n in range(1_000)]
    new = [Standing(each.name, 100, batch=40 + n % 9) for n, each in enumerate(known)]
    for standings, budget in ((known, 1e6), (new, 1e6), (new, 9_999.0), (new, 500.0)):
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            MALocate(p=2).plan(standings, budget)
            seconds.append(time.perf_counter() - start)
        assert min(seconds) < 0.02
