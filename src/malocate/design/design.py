"""The design: all that decides a campaign, fixed and checked before the first answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal

from malocate.compute import Compute
from malocate.confidence.bounds import BOUNDS, Bound, bound_of, check_honest
from malocate.confidence.checks import check_noise
from malocate.confidence.estimates import estimate_of
from malocate.confidence.schemes import CrossFit, Scheme, scheme_of
from malocate.confidence.spending import Anytime
from malocate.design.questions import Question, questions_of
from malocate.design.schedules import Growing, Schedule, capped
from malocate.errors import InvalidInput, InvalidType, MalocateError
from malocate.estimators.base import Estimator
from malocate.estimators.low_rank import LowRankLeastSquares
from malocate.problem import Loss, Segment
from malocate.problem.checks import list_of
from malocate.problem.settings import (
    check_count,
    check_positive,
    check_share,
    check_switch,
    check_word,
)
from malocate.strategies import MALocate
from malocate.strategies.base import Strategy

SMALL = 0.05
"""The share of the answers in each fold where no certificate asks for more."""


@dataclass(frozen=True)
class Design:
    """Everything that decides a campaign; the same design and answers give the same decisions.

    - `segments`, `budget`: what can be asked, and what all answers may cost together.
    - `loss`: what is to become small.
    - `estimator`, `validation`, `estimate`, `bound`, `deliver`: how a matrix is completed and
      judged, as in `error_band`. `noise_variance` is that of one answer, where it is known.
      Without a `validation`, five folds judge where all segments have a scale, so that bands can
      be certified, and four small ones elsewhere.
    - `strategy`, `schedule`: which segment is asked next, and for how many answers.
    - `replicates`: the share of draws that re-ask an earlier draw on purpose; "auto" asks just
      enough for about 200 pairs in a segment.
    - `pooled`: whether segments lend each other their noise level when deciding where to ask.
    - `keep`: "latest" delivers a segment's latest completion; "best" the one with the lowest
      bound so far, as the paper's algorithm does.
    - `delta`: the chance of error of all bands of all segments at all looks together.
    - `epsilon`, `rmse`: stop once the loss is bounded by `epsilon`, or once every segment's root
      mean squared error is bounded by `rmse` (a number, or one for each segment's name: a segment
      that is not named needs no more than its first look). Floors are kept before any goal ends it.
    - `seed`: decides which cells are drawn.
    - `questions`: what people are asked, by language; the first is asked unless another is wanted.
    - `compute`: where fits are done, and how many at a time. It decides nothing: designs that
      differ in it alone are equal.

    >>> from malocate import Design, Loss, Segment
    >>> north, south = Segment("north", (60, 40), scale=(1, 5)), Segment("south", (30, 40))
    >>> design = Design([north, south], budget=5_000, loss=Loss(p=1))
    >>> design.strategy.p, [grid.size(1) for grid in design.grids]
    (1.0, [400, 280])
    >>> Design.from_toml(design.to_toml()) == design
    True
    """

    segments: tuple[Segment, ...]
    budget: float
    loss: Loss = field(default_factory=Loss)
    estimator: Estimator = field(default_factory=lambda: LowRankLeastSquares(tune="auto"))
    validation: Scheme | str = "auto"
    estimate: str = "residual"
    bound: str | Bound = "auto"
    deliver: Literal["refit", "ensemble"] = "refit"
    noise_variance: float | None = None
    strategy: Strategy = field(default_factory=MALocate)
    schedule: Schedule = field(default_factory=Growing)
    replicates: float | Literal["auto"] = "auto"
    pooled: bool = True
    keep: Literal["latest", "best"] = "latest"
    delta: float = 0.05
    epsilon: float | None = None
    rmse: float | Mapping[str, float] | None = None
    seed: int = 0
    questions: Mapping[str, Question] | None = None
    compute: Compute = field(default_factory=Compute, compare=False)

    def __post_init__(self) -> None:
        segments = tuple(list_of(self.segments, Segment, "segments"))
        object.__setattr__(self, "segments", segments)
        object.__setattr__(self, "validation", _scheme(self.validation, segments))
        object.__setattr__(self, "questions", questions_of(self.questions))
        check_segments(segments)
        self._check_money()
        self._check_weights()
        self._check_judging()
        self._check_asking()
        strategy: Any = self.strategy
        if is_dataclass(strategy) and getattr(strategy, "p", 0) is None:
            filled: Any = replace(strategy, p=self.loss.p)  # type: ignore[type-var]
            object.__setattr__(self, "strategy", filled)
        if isinstance(self.rmse, Mapping):
            object.__setattr__(self, "rmse", dict(self.rmse))

    def __hash__(self) -> int:
        return hash((self.segments, self.budget, self.seed))

    @cached_property
    def scheme(self) -> Scheme:
        """The validation scheme: which answers judge which fit."""
        return scheme_of(self.validation)

    @cached_property
    def grids(self) -> tuple[Anytime, ...]:
        """The sizes of each segment's looks, and the chance of error that each look spends."""
        count = len(self.segments)
        return tuple(
            capped(self.schedule.grid(segment, self.delta, count), segment.cap)
            for segment in self.segments
        )

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """How much a unit of squared Frobenius error of each segment counts in the loss."""
        if isinstance(self.loss.weights, tuple):
            return self.loss.weights
        each = self.loss.weights == "per_entry"
        return tuple(
            segment.weight / (segment.n_askable if each else 1) for segment in self.segments
        )

    @cached_property
    def targets(self) -> tuple[float, ...] | None:
        """The root mean squared error that each segment is to reach; infinite for any."""
        if self.rmse is None:
            return None
        if isinstance(self.rmse, Mapping):
            return tuple(self.rmse.get(segment.name, math.inf) for segment in self.segments)
        return (self.rmse,) * len(self.segments)

    def to_toml(self) -> str:
        """Write everything down, defaults too, as TOML."""
        from malocate.design import files

        return files.to_toml(self)

    @classmethod
    def from_toml(cls, text: str) -> Design:
        """Read a design that was written as TOML; what is left out has its default."""
        from malocate.design import files

        return files.from_toml(text)

    def to_json(self) -> str:
        """Write everything down, defaults too, as JSON."""
        from malocate.design import files

        return files.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Design:
        """Read a design that was written as JSON; what is left out has its default."""
        from malocate.design import files

        return files.from_json(text)

    @classmethod
    def load(cls, path: Any) -> Design:
        """Read a design from a file that ends in .toml or .json."""
        from malocate.design import files

        return files.load(path)

    def save(self, path: Any) -> None:
        """Write the design to a file that ends in .toml or .json."""
        from malocate.design import files

        files.save(self, path)

    @classmethod
    def paper_algorithm(
        cls, segments: Iterable[Segment], budget: float, p: float = math.inf, **settings: Any
    ) -> Design:
        """Give the paper's Algorithm 1; see `malocate.design.presets`."""
        from malocate.design import presets

        return presets.paper_algorithm(segments, budget, p, **settings)

    @classmethod
    def paper_experiment(
        cls, segments: Iterable[Segment], budget: float, p: float = math.inf, **settings: Any
    ) -> Design:
        """Give the design of the paper's experiments; see `malocate.design.presets`."""
        from malocate.design import presets

        return presets.paper_experiment(segments, budget, p, **settings)

    def _check_money(self) -> None:
        check_positive("budget", self.budget)
        needed = sum(segment.floor * segment.cost for segment in self.segments)
        if needed > self.budget:
            raise InvalidInput(
                f"The floors of the segments cost {needed:,g} and the budget is {self.budget:,g}; "
                "raise the budget or lower the floors."
            )

    def _check_weights(self) -> None:
        if not isinstance(self.loss, Loss):
            raise InvalidType(f"loss is {self.loss!r}; it must be a Loss, such as Loss(p=1).")
        if not isinstance(self.loss.weights, tuple):
            return
        if len(self.loss.weights) != len(self.segments):
            raise InvalidInput(
                f"The loss has {len(self.loss.weights)} weights and there are "
                f"{len(self.segments)} segments; give each segment one."
            )
        if any(segment.weight != 1.0 for segment in self.segments):
            raise InvalidInput(
                "The segments and the loss both have weights; give them in one place, as "
                "Segment(…, weight=…) or as Loss(weights=…)."
            )

    def _check_judging(self) -> None:
        if isinstance(self.estimator, type) or not isinstance(self.estimator, Estimator):
            raise InvalidType(
                f"estimator is {self.estimator!r}; it must have a `fit`, such as "
                "LowRankLeastSquares()."
            )
        estimate_of(self.estimate)
        if not isinstance(self.bound, Bound) and self.bound not in ("auto", *BOUNDS):
            names = ", ".join(("auto", *BOUNDS))
            raise InvalidInput(f"bound is {self.bound!r}; choose from {names}.")
        check_word("deliver", self.deliver, ("refit", "ensemble"))
        check_word("keep", self.keep, ("latest", "best"))
        check_share("delta", self.delta)
        for segment in self.segments:
            self._check_segment(segment)
        if self.epsilon is not None:
            check_positive("epsilon", self.epsilon)
        self._check_targets()

    def _check_segment(self, segment: Segment) -> None:
        """Refuse what would be refused at the segment's first look, after people were asked."""
        nothing = segment.observations([], [], [])
        try:
            check_noise(self.noise_variance, segment.scale)
            bound = bound_of(self.bound, nothing, self.scheme.whole)
            check_honest(bound, self.estimate, self.scheme.whole, nothing)
        except MalocateError as problem:
            raise type(problem)(f"Segment {segment.name!r}: {problem}") from None

    def _check_targets(self) -> None:
        if not isinstance(self.rmse, Mapping):
            if self.rmse is not None:
                check_positive("rmse", self.rmse)
            return
        names = {segment.name for segment in self.segments}
        for name, target in self.rmse.items():
            check_positive(f"rmse of {name!r}", target)
            if name not in names:
                raise InvalidInput(
                    f"rmse names a segment {name!r}; there are {', '.join(sorted(names))}."
                )

    def _check_asking(self) -> None:
        if isinstance(self.strategy, type) or not hasattr(self.strategy, "plan"):
            raise InvalidType(
                f"strategy is {self.strategy!r}; it must have a `plan`, such as MALocate()."
            )
        if isinstance(self.schedule, type) or not hasattr(self.schedule, "grid"):
            raise InvalidType(
                f"schedule is {self.schedule!r}; it must have a `grid`, such as Growing()."
            )
        if self.replicates is False or self.replicates not in ("auto", 0):
            check_share("replicates", self.replicates)
            if self.schedule.fresh:
                raise InvalidInput(
                    f"replicates is {self.replicates} and the schedule judges fresh draws alone, "
                    "which do not see the draws that they repeat; set replicates to 0."
                )
        if hasattr(self.strategy, "check"):
            self.strategy.check([segment.name for segment in self.segments])
        if not isinstance(self.compute, Compute):
            raise InvalidType(f"compute is {self.compute!r}; it must be a Compute(…).")
        check_switch("pooled", self.pooled)
        check_count("seed", self.seed, least=0)


def _scheme(validation: Scheme | str, segments: tuple[Segment, ...]) -> Scheme:
    """Give the scheme of a name; "auto" takes large folds where bands can be certified.

    Five folds of a fifth give the narrowest certificates. Where some segment has no scale, there
    is none to be had, and four small folds judge fits that are nearly as good as what is
    delivered: near the number of answers at which a matrix becomes known, that decides.
    """
    if isinstance(validation, str) and validation == "auto":
        certified = all(segment.scale is not None for segment in segments)
        return CrossFit() if certified else CrossFit(folds=4, share=SMALL)
    return scheme_of(validation)


def check_segments(segments: tuple[Segment, ...]) -> None:
    """Refuse no segments, and two of one name."""
    if not segments:
        raise InvalidInput("segments is empty; a design needs at least one.")
    seen: dict[str, int] = {}
    for place, segment in enumerate(segments):
        if seen.setdefault(segment.name, place) != place:
            raise InvalidInput(
                f"segments[{seen[segment.name]}] and segments[{place}] are both called "
                f"{segment.name!r}; each needs a name of its own."
            )
