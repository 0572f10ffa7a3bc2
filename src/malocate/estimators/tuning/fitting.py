"""A fit in full: the centre is chosen, its track searched or retuned, and the best place refitted.

What a completion remembers of it lets a later look go on from there, fold by fold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from malocate.estimators.base import Completion, Memory, Status
from malocate.estimators.centring import CentreKind
from malocate.estimators.engine.blas import pinned
from malocate.estimators.engine.threads import in_threads
from malocate.estimators.tuning import search
from malocate.estimators.tuning.inner import Split
from malocate.estimators.tuning.ridge_path import NOWHERE, Pair, Place
from malocate.estimators.tuning.track import Track
from malocate.problem import Observations

WORTHWHILE = 0.01
"""Share of the held-out error that a kind of centring must save to be tried along the path.

To it comes what centring saves on any low-rank matrix, whose lines do not average to zero.
"""

LOCAL_JUDGES, LOCAL_FOLDS = 250, 4
"""Entries that should judge a local fit, and the most folds whose factors are remembered for it."""


@dataclass(frozen=True)
class Fitting:
    """What is settled of a fit: its rank, ridge and kind of centring; what is None is searched."""

    rank: int | None
    ridge: float | None
    centre: CentreKind | None

    def completed(
        self, observations: Observations, start: Completion | None, growth: float
    ) -> Completion:
        """Complete the matrix, going on from a `start` if answers have grown by less than that."""
        split = Split.of(observations.grouped(in_threads), observations.scale)
        with pinned():
            if start is not None and self._near(start, split, growth):
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
        if self.centre is not None:
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
        if None not in (self.rank, self.ridge, self.centre):
            folds = 0  # there is nothing to judge
        return Track.of(split, kind, self.rank, self.ridge, folds)

    def _retuned(self, split: Split, start: Completion) -> tuple[Track, search.Errors]:
        """Go on from an earlier fit, around its place."""
        memory = start.memory
        folds = _unpacked(memory)
        track = self._track(split, memory["centre"], len(folds))
        place = Place(memory["end"], memory["departure"])
        return track, track.retuned(start.factors, folds[: len(track.panel.folds)], place)

    def _near(self, start: Completion, split: Split, growth: float) -> bool:
        """Tell whether `start` is a fit of this kind with components, to not much fewer answers."""
        memory = start.memory
        same = memory.get("settings") == self._settings and memory.get("share") == split.share
        return same and start.rank > 0 and split.entries.n_answers < growth * memory["answers"]

    @property
    def _settings(self) -> str:
        rank, ridge, centre = (
            "auto" if each is None else each for each in (self.rank, self.ridge, self.centre)
        )
        return f"LowRankLeastSquares(rank={rank}, ridge={ridge}, centre={centre})"

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

    def nothing(self, shape: tuple[int, int]) -> Memory:
        """Give the memory of a fit to no answers, from which no later fit goes on."""
        return {
            "answers": 0,
            "centre": self.centre or "none",
            "settings": self._settings,
            "ridge": math.nan if self.ridge is None else self.ridge,
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
