"""Validation schemes: which answers train, and which judge what was trained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from malocate.errors import InvalidInput
from malocate.problem import Observations
from malocate.problem.arrays import Index
from malocate.problem.counting import counted
from malocate.problem.settings import check_count, check_share
from malocate.problem.views import fold_numbers


@dataclass(frozen=True, eq=False)
class Part:
    """Which answers judge, and which train what is judged; they are cut out where they are needed.

    Unless others are named, all answers train that do not judge.
    """

    observations: Observations
    judges: Index
    named: Index | None = None

    @property
    def trains(self) -> Index:
        """Where the answers to train on are; a mask is made anew each time, and not kept."""
        if self.named is not None:
            return self.named
        trains = np.ones(len(self.observations), np.bool_)
        trains[self.judges] = False
        return trains

    @property
    def train(self) -> Observations:
        """The answers to train on: cut out anew each time, and not kept."""
        return self.observations.take(self.trains)

    @cached_property
    def judge(self) -> Observations:
        """The answers that judge."""
        return self.observations.take(self.judges)


class Scheme(Protocol):
    """Cuts answers into parts; `whole` says whether the judges speak for the whole matrix."""

    @property
    def name(self) -> str:
        """What the scheme is called."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the judged error is that of all entries, seen by the fit or not."""
        ...

    @property
    def permanent(self) -> bool:
        """Whether a draw that trains a part once never judges it later."""
        ...

    def parts(self, observations: Observations, salt: int | str, segment: str, /) -> list[Part]:
        """Cut the answers into parts."""
        ...


@dataclass(frozen=True)
class CrossFit:
    """Every fold judges the fit to all the others; the folds are fixed by each draw's number.

    `share` makes the folds smaller than an even split, so that the fits see nearly everything.

    >>> CrossFit(folds=4, share=0.05)
    CrossFit(folds=4, share=0.05)
    """

    folds: int = 5
    share: float | None = None
    name = "crossfit"
    permanent = True
    whole = True

    def __post_init__(self) -> None:
        check_count("folds", self.folds, least=2)
        if self.share is not None:
            check_share("share", self.share)
            if self.folds * self.share > 1 + 1e-9:
                raise InvalidInput(
                    f"share is {self.share}; {self.folds} folds of it must fit into the whole."
                )

    def parts(self, observations: Observations, salt: int | str, segment: str) -> list[Part]:
        """Give one part for each fold that has a judge.

        >>> answers = Observations([0] * 9, [0] * 9, range(9), shape=(1, 1))
        >>> [len(part.judge) for part in CrossFit(folds=3).parts(answers, "a salt", "")]
        [4, 2, 3]
        """
        if self.folds > len(observations):
            answers = counted(len(observations), "answer")
            raise InvalidInput(
                f"There are {self.folds} folds and {answers}; each fold needs an answer to judge "
                "by. Ask more, or take fewer folds."
            )
        return _folds(observations, self.folds, self.share, salt, segment)


@dataclass(frozen=True)
class HoldOut:
    """A share of the draws judges the fit to the rest: one fit a look.

    >>> answers = Observations([0] * 9, [0] * 9, range(9), shape=(1, 1))
    >>> [len(part.judge) for part in HoldOut(0.2).parts(answers, "a salt", "")]
    [1]
    """

    share: float = 0.2
    name = "holdout"
    permanent = True
    whole = True

    def __post_init__(self) -> None:
        check_share("share", self.share)

    def parts(self, observations: Observations, salt: int | str, segment: str) -> list[Part]:
        """Give the only part; none if no answer fell into it."""
        return _folds(observations, 1, self.share, salt, segment)


@dataclass(frozen=True)
class Halves:
    """The first half of the draws trains, the second judges: the paper's algorithm."""

    name = "halves"
    permanent = False
    whole = True

    def parts(self, observations: Observations, *_: int | str) -> list[Part]:
        """Give the only part; none if there is no second half."""
        first, second = observations.numbering.halves()
        part = Part(observations, second, named=first)
        return [part] if len(part.judge) else []


@dataclass(frozen=True)
class OnceVsMulti:
    """Entries seen once train, entries seen more often judge: the paper's experiments.

    What it estimates is the error at entries that the fit has *not* seen.
    """

    name = "once_vs_multi"
    permanent = False
    whole = False

    def parts(self, observations: Observations, *_: int | str) -> list[Part]:
        """Give the only part; none if no entry was seen twice."""
        often = observations.entries.visits[observations.entry_numbers] >= 2
        if not often.any():
            return []
        return [Part(observations, often)]


SCHEMES: dict[str, type[CrossFit | HoldOut | Halves | OnceVsMulti]] = {
    scheme.name: scheme for scheme in (CrossFit, HoldOut, Halves, OnceVsMulti)
}


def scheme_of(scheme: str | Scheme) -> Scheme:
    """Give the scheme of a name, with its defaults; a scheme is given back.

    >>> scheme_of("crossfit")
    CrossFit(folds=5, share=None)
    """
    if not isinstance(scheme, str) and hasattr(scheme, "parts") and not isinstance(scheme, type):
        return scheme
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise InvalidInput(f"scheme is {scheme!r}; choose from {', '.join(SCHEMES)}.")
    return SCHEMES[scheme]()


def _folds(
    observations: Observations, count: int, share: float | None, salt: int | str, segment: str
) -> list[Part]:
    """Give a part for each fold that has a judge."""
    small = np.min_scalar_type(-count)  # an eighth of the memory, where answers are many
    numbers = fold_numbers(observations, count, (salt, segment), share, small)
    folds = [fold for fold in range(count) if (numbers == fold).any()]
    return [Part(observations, numbers == fold) for fold in folds]
