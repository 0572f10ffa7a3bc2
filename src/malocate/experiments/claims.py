"""The paper's four claims about its figures, each with its numbers and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malocate.confidence.tails import student_reach
from malocate.problem.arrays import Floats

if TYPE_CHECKING:
    import pandas

POINTS = 101
"""Budgets, evenly spaced from the first look to the last, at which curves are compared."""

SLIGHTLY = 1.1
"""How far above the oracle is only slightly worse."""

BEHIND = 1.02
"""A ratio up to which uniform is not behind."""

FLAT = 1.05
"""A maximum loss that falls by less than this factor is flat."""

AFTER = 3
"""The fewest rounds after the cap that show whether the loss is flat then."""

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the budget at which uniform is compared."""


@dataclass(frozen=True)
class Claim:
    """One number behind a claim: a mean over runs, its 95 % interval, and what it says."""

    number: int
    recipe: str
    measure: str
    value: float
    low: float
    high: float
    verdict: str


class Curves:
    """The losses of one recipe's strategies at common budgets: runs × budgets."""

    def __init__(self, rows: pandas.DataFrame) -> None:
        self.rows, self.recipe = rows, str(rows["recipe"].iloc[0])
        ends = rows.groupby(["run", "strategy"])["spent"].agg(["min", "max"])
        followed = ends[~ends.index.get_level_values("strategy").str.startswith("floor")]
        self.budgets: Floats = np.linspace(followed["min"].max(), followed["max"].max(), POINTS)

    def of(self, strategy: str, loss: str) -> Floats:
        """Give a strategy's losses; between two looks that of the earlier one."""
        rows = self.rows[self.rows["strategy"] == strategy]
        return np.array([self._at(run, loss) for _, run in rows.groupby("run")])

    def _at(self, run: pandas.DataFrame, loss: str) -> Floats:
        spent, values = run["spent"].to_numpy(), run[loss].to_numpy()
        place = np.searchsorted(spent, self.budgets * (1 + 1e-12), side="right") - 1
        return np.asarray(values[np.maximum(place, 0)], dtype=np.float64)

    def ratio(self, one: str, two: str, loss: str) -> Floats:
        """Give, run by run, how many times larger one strategy's loss is than another's.

        It is averaged over the run on a log scale; both saw the same answers.
        """
        apart = np.log(self.of(one, loss)) - np.log(self.of(two, loss))
        return np.asarray(np.exp(apart.mean(axis=1)))

    def ratio_at(self, share: float, one: str, two: str, loss: str) -> Floats:
        """Give the ratio at a share of the budget, run by run."""
        place = round(share * (POINTS - 1))
        return np.asarray(self.of(one, loss)[:, place] / self.of(two, loss)[:, place])


def claims(rows: pandas.DataFrame) -> list[Claim]:
    """Give the numbers and verdicts of all four claims for each recipe in the rows."""
    found: list[Claim] = []
    for _, part in rows.groupby("recipe", sort=False):
        curves = Curves(part)
        found += [*_beats(curves), *_near_the_oracle(curves), *_catches_up(curves)]
        found += [*_flattens(curves, "malocate-inf"), *_flattens(curves, "oracle")]
    return found


def _beats(curves: Curves) -> list[Claim]:
    """Claim 1: MALocate(p) beats the others on the loss that it was started for."""
    contests = [
        ("uniform", "malocate-1", "loss_1"),
        ("malocate-inf", "malocate-1", "loss_1"),
        ("uniform", "malocate-inf", "loss_inf"),
        ("malocate-1", "malocate-inf", "loss_inf"),
    ]
    found = []
    for rival, own, loss in contests:
        mean, low, high = interval(curves.ratio(rival, own, loss))
        verdict = _by(low > 1, high < 1)
        measure = f"{loss} of {rival} over {own}"
        found.append(Claim(1, curves.recipe, measure, mean, low, high, verdict))
    return found


def _near_the_oracle(curves: Curves) -> list[Claim]:
    """Claim 2: MALocate(∞) is only slightly worse than the oracle on the maximum loss."""
    mean, low, high = interval(curves.ratio("malocate-inf", "oracle", "loss_inf"))
    limit = f"{100 * (SLIGHTLY - 1):.0f} %"
    verdict = _by(high <= SLIGHTLY, low > SLIGHTLY, f"holds: within {limit}", f"not within {limit}")
    measure = "loss_inf of malocate-inf over oracle"
    return [Claim(2, curves.recipe, measure, mean, low, high, verdict)]


def _catches_up(curves: Curves) -> list[Claim]:
    """Claim 3: uniform catches up only when the budget is large."""
    found = []
    for loss, own in (("loss_1", "malocate-1"), ("loss_inf", "malocate-inf")):
        ratios = [interval(curves.ratio_at(share, "uniform", own, loss)) for share in SHARES]
        for share, (mean, low, high) in zip(SHARES, ratios, strict=True):
            verdict = _caught(ratios) if share == 1.0 else ""
            measure = f"{loss} of uniform over {own} at {share:.0%} of the way"
            found.append(Claim(3, curves.recipe, measure, mean, low, high, verdict))
    return found


def _caught(ratios: list[tuple[float, float, float]]) -> str:
    """Say whether uniform was ever behind, and whether it is at the end."""
    if not any(low > 1 for _, low, _ in ratios):
        never = all(high <= BEHIND for _, _, high in ratios)
        return "fails: uniform was never behind" if never else "undecided"
    _, low, high = ratios[-1]
    if high <= SLIGHTLY:
        return "holds: it has caught up"
    not_yet = low > SLIGHTLY
    return f"holds: {'it has not caught up by then' if not_yet else 'undecided if it caught up'}"


def _flattens(curves: Curves, strategy: str) -> list[Claim]:
    """Claim 4: the maximum loss flattens when the hardest matrix reaches its cap."""
    capped = _capped(curves, strategy)
    known = around_the_caps(curves, strategy)
    measure = f"loss_inf of {strategy} falls by a factor,"
    if not len(known):
        words = f"no verdict: fewer than {AFTER} rounds after the cap"
        nothing = (math.nan, math.nan, math.nan)
        claim = Claim(4, curves.recipe, f"{measure} in the rounds after the cap", *nothing, words)
        return [claim] if capped else []
    texts = ("in the rounds after the cap", "in as many rounds before")
    intervals = [interval(each) for each in known.T]
    (_, low, high), (_, low_before, high_before) = intervals
    verdict = _by(high < FLAT < low_before, low > FLAT or high_before < FLAT)
    return [
        Claim(4, curves.recipe, f"{measure} {text}", *each, word)
        for text, each, word in zip(texts, intervals, (verdict, ""), strict=True)
    ]


def around_the_caps(curves: Curves, strategy: str) -> Floats:
    """Give, run by run, the factors by which the maximum loss falls after the cap and before."""
    falls = [_around_the_cap(run) for run in _capped(curves, strategy)]
    return np.array([each for each in falls if each is not None])


def _capped(curves: Curves, strategy: str) -> list[pandas.DataFrame]:
    """Give the runs in which the hardest matrix reached its cap."""
    rows = curves.rows[curves.rows["strategy"] == strategy]
    return [run for _, run in rows.groupby("run") if run["capped"].any()]


def _around_the_cap(run: pandas.DataFrame) -> tuple[float, float] | None:
    """Give the factors by which the loss falls after the cap and in as many rounds before.

    None where too few rounds follow.
    """
    losses, place = run["loss_inf"].to_numpy(), int(np.argmax(run["capped"].to_numpy(dtype=bool)))
    length = len(losses) - 1 - place
    if length < AFTER:
        return None
    return losses[place] / losses[-1], losses[max(0, place - length)] / losses[place]


def _by(holds: bool, fails: bool, yes: str = "holds", no: str = "fails") -> str:
    """Give a verdict by what the whole interval says; one run has no interval and decides none."""
    return yes if holds else no if fails else "undecided"


def interval(values: Floats) -> tuple[float, float, float]:
    """Give the geometric mean over runs and its 95 % interval (Student t on the log scale)."""
    logs = np.log(values)
    mean, reach = float(logs.mean()), float(student_reach(logs))
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)
