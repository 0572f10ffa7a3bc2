"""The checks that any strategy must pass, applied to ours, and to bad ones that must fail."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from malocate import Allocation, GoodAllocation, MALocate, Oracle, Uniform
from malocate.strategies.choosing import affordable, choose
from malocate.testing import StrategyChecks
from malocate.testing.surveys import NAMES, SURVEYS


class TestMALocate(StrategyChecks):
    strategy = MALocate()


class TestMALocateOfOne(StrategyChecks):
    strategy = MALocate(p=1)


class TestMALocateByUpperBounds(StrategyChecks):
    strategy = MALocate(p=2, by="upper")


class TestMALocateByEstimatesAlone(StrategyChecks):
    strategy = MALocate(confidence=0)


class TestUniform(StrategyChecks):
    strategy = Uniform()


class TestUniformByEntries(StrategyChecks):
    strategy = Uniform(by="entries")


class TestOracle(StrategyChecks):
    strategy = Oracle(p=2)


class TestGoodAllocation(StrategyChecks):
    strategy = GoodAllocation(dict(zip(NAMES, (4.0, 1.0, 2.0, 8.0), strict=True)), p=1)


class TestMALocateOfTwoAtOnce(StrategyChecks):
    strategy = MALocate(parallel_segments=2)


class TestMALocateOfThreeAtOnce(StrategyChecks):
    strategy = MALocate(p=1, by="upper", parallel_segments=3)


class TestMALocateOfMoreAtOnceThanThereAre(StrategyChecks):
    strategy = MALocate(p=2, parallel_segments=50)


class TestUniformOfTwoAtOnce(StrategyChecks):
    strategy = Uniform(parallel_segments=2)


class TestOracleOfThreeAtOnce(StrategyChecks):
    strategy = Oracle(parallel_segments=3)


class TestGoodAllocationOfTwoAtOnce(StrategyChecks):
    strategy = GoodAllocation(
        dict(zip(NAMES, (4.0, 1.0, 2.0, 8.0), strict=True)), parallel_segments=2
    )


# checks that cannot fail are no checks: each bad strategy below breaks the one it is named by


@dataclass(frozen=True)
class Sound:
    """A sound strategy; the bad ones differ from it in one thing."""

    share: float = 1.0

    def plan(self, standings, budget):
        return choose(standings, budget, self.index)

    def index(self, standing):
        return -standing.answers


class TestSound(StrategyChecks):
    strategy = Sound()


@dataclass(frozen=True)
class Changed(Sound):
    """Plans soundly and then changes the answers."""

    def plan(self, standings, budget):
        allocation = super().plan(standings, budget)
        counts = [
            self.change(*each, budget) for each in zip(standings, allocation.answers, strict=True)
        ]
        return replace(allocation, answers=tuple(counts))


class OverSpender(Changed):
    def change(self, standing, count, budget):
        return min(standing.batch, 2 * count) if count < standing.batch else count


class IgnoresCosts(Sound):
    def plan(self, standings, budget):
        return super().plan([replace(each, cost=1.0) for each in standings], budget)


class RoundsSharesDown(Changed):
    def change(self, standing, count, budget):
        return count if count == standing.batch else 0


class NeverStops(Changed):
    def change(self, standing, count, budget):
        return max(count, int(budget < 1e-9))


class AsksOnCredit(Changed):
    def change(self, standing, count, budget):
        return max(count, min(standing.batch, standing.multiple))


class NeedsSomebody(Sound):
    def plan(self, standings, budget):
        max(self.index(each) for each in standings)
        return super().plan(standings, budget)


class Starver(Sound):
    """The first segment has the largest bound for ever: the mistake of a plain `max`."""

    def plan(self, standings, budget):
        index = tuple(each.upper * each.entries for each in standings)
        can = [place for place, each in enumerate(standings) if affordable(each, budget)]
        counts = [0] * len(standings)
        if can:
            chosen = max(can, key=lambda place: index[place])
            counts[chosen] = affordable(standings[chosen], budget)
        return Allocation(tuple(counts), index)


class FirstComeFirstServed(Sound):
    def plan(self, standings, budget):
        counts, left = [], budget
        for each in standings:
            counts.append(affordable(each, left))
            left -= counts[-1] * each.cost
        return Allocation(tuple(counts), tuple(each.estimate for each in standings))


class AsksByPosition(Sound):
    def index(self, standing):
        return -NAMES.index(standing.name)


class BreaksCaps(Sound):
    def plan(self, standings, budget):
        return super().plan([replace(each, batch=10, room=1e9) for each in standings], budget)


class ForgetsFloors(Sound):
    def plan(self, standings, budget):
        return super().plan([replace(each, short=0) for each in standings], budget)

    def index(self, standing):
        return standing.estimate


class AsksHalves(Changed):
    def change(self, standing, count, budget):
        return count / 2 if count > 1 else count


class AsksOddNumbers(Changed):
    def change(self, standing, count, budget):
        return max(0, count - 1) if standing.multiple > 1 else count


class HasNoNumber(Sound):
    def plan(self, standings, budget):
        allocation = super().plan(standings, budget)
        return replace(allocation, index=tuple(each.estimate for each in standings))


class Gambler(Sound):
    def index(self, standing):
        return random.random()


class CountsItsPlans:
    def __init__(self):
        self.plans = 0

    def plan(self, standings, budget):
        self.plans += 1
        return choose(standings, budget, lambda each: hash((each.name, self.plans)))


class SortsTheStandings(Sound):
    def plan(self, standings, budget):
        allocation = super().plan(standings, budget)
        if isinstance(standings, list):
            standings.sort(key=lambda each: each.answers + len(each.name), reverse=True)
            standings.append(None)
        return allocation


class Changeable:
    def __init__(self):
        self.share = 1.0

    def __repr__(self):
        return "a strategy"

    plan = Sound.plan
    index = Sound.index


BROKEN = [
    (OverSpender(), "test_the_budget_is_never_exceeded"),
    (IgnoresCosts(), "test_the_budget_is_never_exceeded"),
    (AsksOnCredit(), "test_the_budget_is_never_exceeded"),
    (RoundsSharesDown(), "test_the_remainder_is_spent"),
    (NeverStops(), "test_the_remainder_is_spent"),
    (AsksOnCredit(), "test_no_budget_gives_an_empty_allocation"),
    (NeedsSomebody(), "test_where_there_is_nobody_nobody_is_asked"),
    (Starver(), "test_no_segment_is_starved"),
    (Starver(), "test_a_budget_smaller_than_a_first_round_is_shared"),
    (FirstComeFirstServed(), "test_a_budget_smaller_than_a_first_round_is_shared"),
    (Starver(), "test_where_nothing_is_known_all_are_asked_again"),
    (AsksByPosition(), "test_where_nothing_is_known_all_are_asked_again"),
    (BreaksCaps(), "test_caps_are_kept"),
    (ForgetsFloors(), "test_floors_are_kept"),
    (AsksHalves(), "test_batches_are_whole_and_no_larger_than_scheduled"),
    (AsksOddNumbers(), "test_batches_are_whole_and_no_larger_than_scheduled"),
    (HasNoNumber(), "test_every_segment_has_an_index_that_is_a_number"),
    (Gambler(), "test_the_same_standings_give_the_same_plan"),
    (CountsItsPlans(), "test_the_same_standings_give_the_same_plan"),
    (SortsTheStandings(), "test_nothing_given_is_changed"),
    (Changeable(), "test_settings_are_fixed_when_it_is_made"),
    (Changeable(), "test_equal_settings_are_equal_and_hash_alike"),
    (Changeable(), "test_it_reads_as_its_settings"),
]


@pytest.mark.parametrize(
    ("broken", "check"), BROKEN, ids=[f"{type(b).__name__}-{check}" for b, check in BROKEN]
)
def test_a_broken_strategy_is_caught(broken, check):
    class Checks(StrategyChecks):
        strategy = broken

    with pytest.raises((AssertionError, ValueError)):
        getattr(Checks(), check)()


def test_every_check_can_fail():
    checks = {name for name in dir(StrategyChecks) if name.startswith("test_")}
    assert checks == {check for _, check in BROKEN}


def test_the_surveys_hold_what_the_checks_are_about():
    made = [each for survey in SURVEYS for each in survey.segments]
    assert any(survey.budget < survey.first_round() for survey in SURVEYS)
    assert any(len(survey.segments) == 1 for survey in SURVEYS)
    assert {each.cost for each in made} > {0.1, 1.0}
    assert {each.multiple for each in made} == {1, 2}
    assert any(each.standing(40).estimate < 0 for each in made)
