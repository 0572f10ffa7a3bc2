"""Fits that several runs share: strategies with one seed see the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from malocate.confidence.judgement import Done, Job, Map
from malocate.estimators.base import Completion

Key = tuple[str, int, int, int]


@dataclass(eq=False)
class SharedFits:
    """Remembers each fit by its segment, its draws at this look and at the last, and its fold.

    What a look fits depends on these alone, as long as the runs have one seed, one estimator,
    one validation and one schedule that re-uses answers, and keep the latest: then a look starts
    from the look before it, which is the same in every run. Pass `map_of` to `simulate`. `map` is
    how to run those that are not known. All fits are kept, for as long as this object is.
    """

    fits: dict[Key, Completion] = field(default_factory=dict)
    map: Map = map

    def map_of(self, segment: str, before: int, asked: int) -> Map:
        """Give the map for one look's fits: those that are known are not run again."""

        def mapped(fit: Callable[[Job], Done], jobs: list[Job]) -> Iterable[Done]:
            last = len(jobs) - 1  # the fit to all answers, whether or not folds come before it
            keys = {
                job[0]: (segment, before, asked, -1 if place == last else place)
                for place, job in enumerate(jobs)
            }
            missing = [job for job in jobs if keys[job[0]] not in self.fits]
            missing.reverse()  # the fit to all answers takes longest: begun first, it ends soonest
            self.fits.update((keys[place], done) for place, done in self.map(fit, missing))
            return [(place, self.fits[key]) for place, key in keys.items()]

        return mapped
