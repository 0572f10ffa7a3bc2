"""LowRankLeastSquares: factored ridge least squares that finds its own rank, ridge and centre.

Three choices have to be made: what is taken off before (the centre), how many components are
kept, and how much they are shrunk. All three are made by held-out error inside the fit's own
data: `inner` splits the entries, `ridge_path` is the family of fits to choose from, `search`
finds the best place on it, and the same walk is then taken with all of the data. The kinds of
centring are compared without components first; those that help compete along the path.

A *local* fit starts from an earlier completion: every inner fold goes on from its own factors
of that look, which never saw the fold, and only the neighbouring ridges are tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from malocate.estimators.base import Completion, Memory, Status, check_start, empty_completion
from malocate.estimators.centring import CentreKind, check_kind
from malocate.estimators.engine.threads import pinned
from malocate.estimators.tuning import search
from malocate.estimators.tuning.inner import Split
from malocate.estimators.tuning.ridge_path import NOWHERE, Pair, Place
from malocate.estimators.tuning.track import Track
from malocate.problem import Observations
from malocate.problem.settings import check_count, check_positive, check_word

Floats = npt.NDArray[np.float64]

WORTHWHILE = 0.01
"""Share of the held-out error that a kind of centring must save to be tried along the path.

To it comes what centring saves on any low-rank matrix, whose lines do not average to zero.
"""

FAR = 1.3
"""Growth of the answers from which on ``tune="auto"`` searches everything anew."""

LOCAL_JUDGES, LOCAL_FOLDS = 250, 4
"""Entries that should judge a local fit, and the most folds whose factors are remembered for it."""


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
        if len(observations) == 0:
            return empty_completion(observations, self._nothing(observations.shape))
        split = Split.of(observations.entries, observations.scale)
        with pinned():
            if start is not None and self._knows(start, split) and self._near(start, split):
                track, errors = self._retuned(split, start)
            else:
                track, errors = self._searched(split)
            place = search.best(errors)
            done = track.refitted(place)
            return Completion(
                done.left,
                done.right,
                track.centre,
                Status.CONVERGED if done.settled else Status.OUT_OF_STEPS,
                clip=observations.scale,
                labels=observations.labels,
                memory=self._memory(split, track, place, errors[place]),
            )

    def _searched(self, split: Split) -> tuple[Track, search.Errors]:
        """Search the kinds of centring that may help by a few folds, and the best by all."""
        tracks = self._tracks(split)
        found = [track.explored() for track in tracks]
        best = int(np.argmin([min(errors.values()) for errors in found]))
        return tracks[best], tracks[best].confirmed(found[best])

    def _tracks(self, split: Split) -> list[Track]:
        """Give the kinds of centring, simplest first, that each save something by themselves."""
        if self.centre != "auto":
            return [self._track(split, self.centre)]
        if not split.usable:
            return [self._track(split, "mean")]
        tracks: list[Track] = []
        least, saving = math.inf, WORTHWHILE + sum(1 / side for side in split.entries.shape)
        for track in (self._track(split, kind) for kind in get_args(CentreKind)):
            error = track.panel.few().error(NOWHERE)
            if not tracks or error < (1 - saving) * least:
                tracks, least = [*tracks, track], error
        return tracks

    def _track(self, split: Split, kind: CentreKind, folds: int | None = None) -> Track:
        rank = None if self.rank == "auto" else int(self.rank)
        ridge = None if self.ridge == "auto" else float(self.ridge)
        if "auto" not in (self.rank, self.ridge, self.centre):
            folds = 0  # there is nothing to judge
        return Track.of(split, kind, rank, ridge, folds)

    def _retuned(self, split: Split, start: Completion) -> tuple[Track, search.Errors]:
        """Go on from an earlier fit, around its place."""
        memory = start.memory
        folds = _unpacked(memory)
        track = self._track(split, memory["centre"], len(folds))
        place = Place(memory["end"], memory["departure"])
        return track, track.retuned(start.factors, folds[: len(track.panel.folds)], place)

    def _knows(self, start: Completion, split: Split) -> bool:
        """Tell whether `start` is a fit with these settings and this split, with components."""
        memory = start.memory
        same = memory.get("settings") == self._settings and memory.get("share") == split.share
        return same and start.rank > 0

    def _near(self, start: Completion, split: Split) -> bool:
        """Tell whether a search may stay in the neighbourhood of `start`."""
        if self.tune == "auto":
            return split.entries.n_answers < FAR * int(start.memory["answers"])
        return self.tune == "local"

    @property
    def _settings(self) -> str:
        return f"LowRankLeastSquares(rank={self.rank}, ridge={self.ridge}, centre={self.centre})"

    def _memory(self, split: Split, track: Track, place: Place, error: float) -> Memory:
        folds = track.panel.few(LOCAL_JUDGES, least=1).first(LOCAL_FOLDS)
        return {
            "answers": split.entries.n_answers,
            "centre": track.kind,
            "settings": self._settings,
            "ridge": track.walk.grid[max(0, place.end)],
            "held_out_error": error,
            "departure": place.departure,
            "end": place.end,
            "share": split.share,
            **_packed(folds.pairs(place), split.entries.shape),
        }

    def _nothing(self, shape: tuple[int, int]) -> Memory:
        """Give the memory of a fit to no answers, from which no later fit goes on."""
        return {
            "answers": 0,
            "centre": "none" if self.centre == "auto" else self.centre,
            "settings": self._settings,
            "ridge": math.nan if self.ridge == "auto" else float(self.ridge),
            "held_out_error": math.nan,
            "departure": NOWHERE.departure,
            "end": NOWHERE.end,
            "share": math.nan,
            **_packed([], shape),
        }


def _packed(pairs: list[Pair], shape: tuple[int, int]) -> dict[str, Any]:
    """Lay the folds' factors side by side, so that a completion can remember them."""
    ranks = np.array([pair[0].shape[1] for pair in pairs], dtype=np.int64)
    left, right = ([np.zeros((side, 0))] for side in shape)
    left += [pair[0] for pair in pairs]
    right += [pair[1] for pair in pairs]
    return {"fold_ranks": ranks, "fold_left": np.hstack(left), "fold_right": np.hstack(right)}


def _unpacked(memory: Memory) -> list[Pair]:
    cuts = np.cumsum(memory["fold_ranks"])[:-1]
    lefts, rights = (np.split(memory[name], cuts, axis=1) for name in ("fold_left", "fold_right"))
    return list(zip(lefts, rights, strict=True)) if len(memory["fold_ranks"]) else []
