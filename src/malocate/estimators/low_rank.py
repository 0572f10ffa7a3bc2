"""LowRankLeastSquares: factored ridge least squares that finds its own rank, ridge and centre.

Three choices have to be made: what is taken off before (the centre), how many components are
kept, and how much they are shrunk. All three are made by held-out error inside the fit's own
data, in the package `tuning`: `inner` splits the entries, `ridge_path` is the family of fits to
choose from, `search` finds the best place on it, and the same walk is then taken with all of the
data. The kinds of centring are compared without components first; those that help compete along
the path.

A *local* fit starts from an earlier completion: every inner fold goes on from its own factors
of that look, which never saw the fold, and only the neighbouring ridges are tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from malocate.estimators.base import Completion, check_start, empty_completion
from malocate.estimators.centring import CentreKind, check_kind
from malocate.problem import Observations
from malocate.problem.settings import check_count, check_positive, check_word

if TYPE_CHECKING:
    from malocate.estimators.tuning.fitting import Fitting

FAR = 1.3
"""Growth of the answers from which on ``tune="auto"`` searches everything anew."""


@dataclass(frozen=True)
class LowRankLeastSquares:
    """Ridge least squares on low-rank factors; rank, ridge and centre are found by held-out error.

    Minimises ½ Σ_e visits_e (mean_e − u_i·v_j)² plus a ridge on each component of the factors,
    after the centre was taken off. Whatever is not "auto" is used as it is given: `rank` is then
    the most components there may be, `ridge` is the same for all components, and `centre` is
    one of "none", "mean" and "additive". Answers on a declared scale give a completion clipped
    to it.

    With ``tune="local"`` and a `start` from an earlier fit with the same settings, only the
    neighbourhood of that fit's choice is searched, at a fraction of the cost. Without such a
    start, and with ``tune="full"``, everything is searched and a `start` changes nothing. In
    small steps a local search keeps up; in large ones it falls behind where a matrix is just
    becoming known, so ``tune="auto"`` goes on locally only while answers grow by less than 30 %
    at a time.

    `memory` tells what was found, such as `centre`, `ridge` and `held_out_error`.

    >>> from malocate import LowRankLeastSquares, Synthetic
    >>> source = Synthetic.low_rank(shape=(60, 40), rank=2, noise=0.1, rng=0)
    >>> done = LowRankLeastSquares().fit(source.observe(1200, rng=1))
    >>> done.rank, done.memory["centre"]
    (2, 'none')
    >>> more = LowRankLeastSquares(tune="local").fit(source.observe(1300, rng=1), start=done)
    >>> bool(((more.dense() - source.truth) ** 2).mean() < 0.005)
    True
    """

    rank: int | Literal["auto"] = "auto"
    ridge: float | Literal["auto"] = "auto"
    centre: CentreKind | Literal["auto"] = "auto"
    tune: Literal["full", "local", "auto"] = "full"

    def __post_init__(self) -> None:
        if self.rank != "auto":
            check_count("rank", self.rank, least=0, instead="'auto'")
        if self.ridge != "auto":
            check_positive("ridge", self.ridge, "it must be a positive number, or 'auto'")
        if self.centre != "auto":
            check_kind(self.centre)
        check_word("tune", self.tune, ("full", "local", "auto"))

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        """Complete the matrix; a `start` saves work when ``tune="local"``."""
        check_start(observations, start)
        fitting = self._fitting()
        if len(observations) == 0:
            return empty_completion(observations, fitting.nothing(observations.shape))
        growth = {"full": 0.0, "local": math.inf, "auto": FAR}[self.tune]
        return fitting.completed(observations, start, growth)

    def _fitting(self) -> Fitting:
        from malocate.estimators.tuning.fitting import Fitting  # its kernels load at the first fit

        return Fitting(
            None if self.rank == "auto" else int(self.rank),
            None if self.ridge == "auto" else float(self.ridge),
            None if self.centre == "auto" else self.centre,
        )
