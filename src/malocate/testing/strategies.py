"""What every strategy must do: a class of checks to derive from."""

from __future__ import annotations

import math

from malocate.strategies.base import Allocation, Standing, Strategy
from malocate.testing.settings import SettingsChecks
from malocate.testing.surveys import SURVEYS, TOLERANCE, Round, Survey


class StrategyChecks(SettingsChecks):
    """What any strategy must do; derive from it, name the class `Test…` and set `strategy`.

    Each check takes the strategy through whole budgets of made-up surveys, whose segments are
    called north, south, east and west.

    >>> from malocate import MALocate
    >>> class TestMALocate(StrategyChecks):
    ...     strategy = MALocate(p=1)
    >>> TestMALocate().test_the_budget_is_never_exceeded()
    """

    strategy: Strategy

    def make(self) -> Strategy:
        """Give the strategy to check; override it where a class attribute will not do."""
        return self.strategy

    # money

    def test_the_budget_is_never_exceeded(self) -> None:
        for survey in SURVEYS:
            for each in survey.run(self.make()):
                dearest = max(standing.cost for standing in each.standings)
                assert each.cost <= each.budget + TOLERANCE * dearest, _told(survey, each)

    def test_the_remainder_is_spent(self) -> None:
        for survey in SURVEYS:
            last = survey.run(self.make())[-1]
            assert not last.allocation, f"{survey.name}: still asking after {last.budget} is left"
            for standing in last.standings:
                assert _least(standing) > last.budget, _told(survey, last)

    def test_no_budget_gives_an_empty_allocation(self) -> None:
        for survey in SURVEYS:
            cheapest = min(each.cost * each.multiple for each in survey.segments)
            new = [each.standing(0) for each in survey.segments]
            later = [each.standing(10) for each in survey.segments]
            for standings in (new, later):
                for budget in (0.0, 0.9 * cheapest):
                    asked = self.make().plan(standings, budget).answers
                    assert asked == (0,) * len(standings), f"{survey.name}: {asked} of {budget}"

    def test_where_there_is_nobody_nobody_is_asked(self) -> None:
        assert self.make().plan([], 100.0) == Allocation((), ())

    # who is asked

    def test_no_segment_is_starved(self) -> None:
        for survey in SURVEYS:
            if survey.budget < survey.first_round():
                continue
            last = survey.run(self.make())[-1]
            for segment, standing in zip(survey.segments, last.standings, strict=True):
                assert standing.answers >= segment.standing(0).batch, _told(survey, last)

    def test_a_budget_smaller_than_a_first_round_is_shared(self) -> None:
        for survey in SURVEYS:
            if survey.budget >= survey.first_round():
                continue
            last = survey.run(self.make())[-1]
            assert all(standing.answers for standing in last.standings), _told(survey, last)

    def test_where_nothing_is_known_all_are_asked_again(self) -> None:
        for survey in SURVEYS:
            if any(each.unknown != math.inf for each in survey.segments):
                continue
            last = survey.run(self.make())[-1]
            for segment, standing in zip(survey.segments, last.standings, strict=True):
                assert standing.answers > segment.first, _told(survey, last)

    def test_caps_are_kept(self) -> None:
        for survey in SURVEYS:
            for each in survey.run(self.make()):
                for standing, count in zip(each.standings, each.allocation.answers, strict=True):
                    assert count <= max(0, standing.room), _told(survey, each)

    def test_floors_are_kept(self) -> None:
        for survey in SURVEYS:
            last = survey.run(self.make())[-1]
            for segment, standing in zip(survey.segments, last.standings, strict=True):
                assert standing.answers >= segment.floor, _told(survey, last)

    # what comes back

    def test_batches_are_whole_and_no_larger_than_scheduled(self) -> None:
        for survey in SURVEYS:
            for each in survey.run(self.make()):
                for standing, count in zip(each.standings, each.allocation.answers, strict=True):
                    assert type(count) is int, f"{survey.name}: {count!r} is not an int"
                    assert 0 <= count <= standing.batch, _told(survey, each)
                    assert count % standing.multiple == 0, _told(survey, each)

    def test_every_segment_has_an_index_that_is_a_number(self) -> None:
        for survey in SURVEYS:
            for each in survey.run(self.make()):
                index = each.allocation.index
                assert len(index) == len(each.standings), _told(survey, each)
                assert not any(math.isnan(value) for value in index), _told(survey, each)

    # what may not matter

    def test_the_same_standings_give_the_same_plan(self) -> None:
        strategy = self.make()
        for survey in SURVEYS:
            rounds = survey.run(strategy)
            assert rounds == survey.run(strategy), survey.name
            for each in reversed(rounds):
                again = strategy.plan(list(each.standings), each.budget)
                assert again == each.allocation, _told(survey, each)

    def test_nothing_given_is_changed(self) -> None:
        for survey in SURVEYS:
            for each in survey.run(self.make()):
                given = list(each.standings)
                self.make().plan(given, each.budget)
                assert [id(one) for one in given] == [id(one) for one in each.standings]


def _least(standing: Standing) -> float:
    """Give what the fewest answers cost that the segment can still be asked for."""
    if standing.batch < standing.multiple:
        return math.inf
    return standing.cost * (standing.multiple + TOLERANCE)


def _told(survey: Survey, each: Round) -> str:
    got = ", ".join(f"{one.name} {one.answers}" for one in each.standings)
    return (
        f"{survey.name}: with {each.budget:g} left, after {got}, it asks {each.allocation.answers}"
    )
