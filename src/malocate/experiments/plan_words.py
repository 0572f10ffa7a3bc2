"""A plan in sentences: what a target costs, what a budget buys, and what all that rests on."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from malocate.errors import InvalidInput

if TYPE_CHECKING:
    from malocate.experiments.survey_plan import Range, SurveyPlan

_TARGET = re.compile(r"\s*rmse\s*(?:<=|<|≤)\s*([0-9.eE+-]+)\s*", re.IGNORECASE)


def target_of(text: str) -> float:
    """Read a target such as "rmse<=0.15".

    >>> target_of("RMSE <= 0.15")
    0.15
    """
    found = _TARGET.fullmatch(text)
    try:
        number = float(found[1]) if found else math.nan
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise InvalidInput(
            f"The target {text!r} cannot be read; write it as rmse<=0.15, with a number above 0."
        )
    return number


def sentences(plan: SurveyPlan) -> list[str]:
    """Give what there is to say: the target, the budget, theory, and what it rests on."""
    target = [] if plan.design.targets is None else [_target(plan)]
    return [*target, _budget(plan), _theory(plan), *_basis(plan)]


def _target(plan: SurveyPlan) -> str:
    own, *others = plan.strategies
    price = _price(plan, own)
    if math.isinf(price.middle):
        missed = f"is not met with {plan.cap:,.0f} {_unit(plan)}, the most that was tried"
        return f"{_goal(plan)} {missed}, in more than half of the twins."
    start = f"For {_goal(plan, small=True)} you need about {_ranged(price, plan)} with {own}"
    if price.high <= _first(plan):
        start = f"{_goal(plan)} is met by the first questions, {_count(_first(plan))} in all"
    rest = [f"{_about(_price(plan, name))} {_way(name)}" for name in others]
    return f"{start}; {', '.join(rest)}."


def _budget(plan: SurveyPlan) -> str:
    told = [
        f"{found.middle:.2g} ({found.low:.2g}–{found.high:.2g}) {_way(name)}"
        for name in plan.strategies
        for found in [plan.worst(name)]
    ]
    spent = f"{plan.design.budget:,.0f} {_unit(plan)}"
    return f"With {spent} the worst segment's RMSE will be about {', '.join(told)}."


def _theory(plan: SurveyPlan) -> str:
    problem = plan.problem
    ranks = ", ".join(map(str, problem.ranks))
    fails = [each.name for each in problem.conditions(plan.design.budget) if not each.holds]
    start = (
        f"Theory: for ranks {ranks} the bound of asking all alike is {problem.advantage():.2g} "
        "times MALocate's"
    )
    if not fails:
        return f"{start}."
    return f"{start}; unproven here, for its conditions fail ({', '.join(fails)})."


def _basis(plan: SurveyPlan) -> list[str]:
    chance = f"{plan.level:.0%}".replace("%", " %")
    seen = (
        f"Seen in simulation, no promise: medians of {len(plan.runs)} made-up twins; in brackets, "
        f"where {chance} of further twins would be."
    )
    if plan.told is None:
        how = (
            "The twins have the ranks and the noise that you gave, or defaults; whether your "
            "segments are like them, only a pilot tells."
        )
        return [seen, how]
    silent = [name for name in plan.names if name not in plan.told]
    how = (
        "The twins would have answered the pilot much as your people did; assumed is that cells "
        "are drawn by chance, and that later answers are like the pilot's, which do not count."
    )
    more = [f"Not in the pilot, and taken to be like the others: {', '.join(silent)}."]
    return [seen, how, *(more if silent else [])]


def _goal(plan: SurveyPlan, small: bool = False) -> str:
    goals = {t for t in plan.design.targets or () if math.isfinite(t)}
    where = "in every segment" if len(goals) == 1 else "and less, as asked, in each segment"
    start = "an" if small else "An"
    return f"{start} RMSE of {max(goals, default=math.inf):g} or less {where}"


def _price(plan: SurveyPlan, strategy: str) -> Range:
    price = plan.needed(strategy)
    if price is None:
        raise InvalidInput("The plan has no target; give one.")
    return price


def _way(name: str) -> str:
    words = {"uniform": "asking all alike", "good allocation": "if you knew the ranks"}
    return words.get(name, f"with {name}")


def _unit(plan: SurveyPlan) -> str:
    ones = all(segment.cost == 1.0 for segment in plan.design.segments)
    return "answers" if ones else "units of the budget"


def _first(plan: SurveyPlan) -> float:
    sizes = zip(plan.design.segments, plan.design.grids, strict=True)
    return sum(segment.cost * grid.size(1) for segment, grid in sizes)


def _ranged(price: Range, plan: SurveyPlan) -> str:
    ends = f"{_count(price.low)}–{_count(price.high)}"
    if math.isinf(price.high):
        ends = f"{_count(price.low)} to more than {plan.cap:,.0f}"
    return f"{_count(price.middle)} {_unit(plan)} ({ends})"


def _about(price: Range) -> str:
    return "too many to tell" if math.isinf(price.middle) else _count(price.middle)


def _count(number: float) -> str:
    """Write a number of answers with two digits that count, or three of large ones.

    >>> _count(5234.0), _count(812.0), _count(42.0), _count(20_000.0)
    ('5,200', '810', '42', '20,000')
    """
    if not math.isfinite(number):
        return "more than was tried"
    unit = 10 ** max(0, len(str(int(number))) - 2) if number >= 100 else 1
    return f"{round(number / unit) * unit:,}"
