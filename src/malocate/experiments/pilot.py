"""Twins that are like a pilot: plausible matrices, as many as a small sample leaves open.

A pilot of some hundred answers tells how far answers scatter, how noisy they are and whether rows
or columns differ; of ranks it tells little. So likenesses are drawn by chance, from few patterns
to many and fading ones, each with a noise that the pilot's replicates allow; each is asked the
pilot's own questions, and those whose answers look most like the pilot's are kept (approximate
Bayesian computation). What the pilot cannot tell stays as open as it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from malocate.confidence.noise import replicate_noise
from malocate.confidence.pooling import pooled_noise
from malocate.design import Design
from malocate.errors import InvalidInput, InvalidType
from malocate.experiments.likeness import Likeness
from malocate.problem import Observations, Segment
from malocate.problem.arrays import Floats
from malocate.problem.checks import a
from malocate.sources import Synthetic
from malocate.sources.base import Asked

FEWEST = 20
"""Answers below which a segment's pilot is too small to say anything of it."""

TRIES = 20
"""Likenesses that are tried for each one that is kept."""

FADING = (0.7, 2.2)
"""How fast patterns may fade, where all count: the i-th is as strong as i to minus this power."""

WIDEST = 150
"""Rows and columns among which rectangles are looked for; of more, those with most answers."""

Twins = tuple[dict[str, Likeness], dict[str, Synthetic]]


def plausible_twins(
    design: Design, pilot: Mapping[str, Observations], count: int, seed: int = 0
) -> list[Twins]:
    """Give `count` sets of twins of a design's segments that may all be behind a pilot.

    A segment with fewer than 20 answers in the pilot is taken to be like one of the others.

    >>> source = Synthetic.ratings((30, 20), rank=2, rng=0)
    >>> design = Design([source.segment("north"), source.segment("south")], budget=1_000)
    >>> found = plausible_twins(design, {"north": source.observe(150)}, count=3)
    >>> [sorted(sources) for _, sources in found]
    [['north', 'south'], ['north', 'south'], ['north', 'south']]
    """
    told = _told(design, pilot)
    noises = _noises(design, told)
    streams = np.random.default_rng(seed).spawn(len(design.segments))
    kept: dict[str, list[tuple[Likeness, Synthetic]]] = {}
    for segment, rng in zip(design.segments, streams, strict=True):
        if segment.name in told:
            guess = _Guess.of(segment, told[segment.name], noises[segment.name])
            kept[segment.name] = guess.closest(count, rng)
    for segment, rng in zip(design.segments, streams, strict=True):
        if segment.name not in kept:
            kept[segment.name] = _borrowed(design, segment, told, kept, rng)
    names = [segment.name for segment in design.segments]
    return [
        ({n: kept[n][place][0] for n in names}, {n: kept[n][place][1] for n in names})
        for place in range(count)
    ]


def _told(design: Design, pilot: Any) -> dict[str, Observations]:
    """Give the segments of which the pilot says enough; refuse what belongs to none."""
    if not isinstance(pilot, Mapping):
        raise InvalidType(f"pilot is {a(pilot)}; give Observations by the segments' names.")
    shapes = {segment.name: segment.shape for segment in design.segments}
    for name, each in pilot.items():
        if name not in shapes:
            raise InvalidInput(
                f"The pilot has answers of a segment {name!r}; there are {', '.join(shapes)}."
            )
        if not isinstance(each, Observations):
            raise InvalidType(f"The pilot of {name!r} is {a(each)}; it must be Observations.")
        if each.shape != shapes[name]:
            raise InvalidInput(
                f"The pilot of {name!r} has shape {each.shape}, the segment {shapes[name]}; make it"
                " with `segment.observations`."
            )
    found = {name: each for name, each in pilot.items() if len(each) >= FEWEST}
    if not found:
        most = max((len(each) for each in pilot.values()), default=0)
        raise InvalidInput(
            f"The pilot has {most} answers at most of a segment; at least one segment needs "
            f"{FEWEST}. Ask more, or plan without a pilot."
        )
    return found


def _noises(design: Design, told: Mapping[str, Observations]) -> dict[str, tuple[float, float]]:
    """Give each segment's noise variance and its relative error; nan where nobody was asked twice.

    The fewer pairs a segment has, the more it borrows from the others.
    """
    if design.noise_variance is not None:
        return dict.fromkeys(told, (design.noise_variance, 0.0))
    found = [replicate_noise(each, None) for each in told.values()]
    spreads = [float(each.variances.var(ddof=1)) if each.entries > 1 else 0.0 for each in found]
    counts = [each.entries for each in found]
    pooled = pooled_noise([each.value for each in found], counts, spreads)
    return {
        name: (float(value), float(error / value) if value > 0 else 0.0)
        for name, value, error in zip(told, pooled.values, pooled.errors, strict=True)
    }


def _borrowed(
    design: Design,
    segment: Segment,
    told: Mapping[str, Observations],
    kept: Mapping[str, list[tuple[Likeness, Synthetic]]],
    rng: np.random.Generator,
) -> list[tuple[Likeness, Synthetic]]:
    """Make twins of a segment that the pilot leaves out: each is like one of the others."""
    alike = [each.name for each in design.segments if each.name in told]
    scales = {each.name: each.scale for each in design.segments}
    alike = [name for name in alike if scales[name] == segment.scale]
    if not alike:
        raise InvalidInput(
            f"The pilot has fewer than {FEWEST} answers of segment {segment.name!r}, and no segment"
            " that it tells of has the same scale; ask some more there."
        )
    count = len(next(iter(kept.values())))
    likes = [kept[alike[int(rng.integers(len(alike)))]][place][0] for place in range(count)]
    return [(like, like.source(segment, rng)) for like in likes]


@dataclass(frozen=True, eq=False)
class _Guess:
    """What a pilot of one segment shows, to hold likenesses against."""

    segment: Segment
    asked: Asked
    mean: float
    variance: float
    noise: tuple[float, float]
    signs: Floats

    @classmethod
    def of(cls, segment: Segment, pilot: Observations, noise: tuple[float, float]) -> _Guess:
        rows, cols = pilot.rows.astype(np.int64), pilot.cols.astype(np.int64)
        asked = Asked(rows, cols, np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64))
        values = np.asarray(pilot.values, dtype=np.float64)
        variance = max(float(values.var()), 1e-12)
        signs = _signs(asked, values, segment.shape)
        return cls(segment, asked, float(values.mean()), variance, noise, signs)

    def closest(self, count: int, rng: np.random.Generator) -> list[tuple[Likeness, Synthetic]]:
        """Give the likenesses whose answers to the pilot's questions are most like the pilot's."""
        tried = [self._tried(rng) for _ in range(TRIES * count)]
        signs = np.array([found for _, _, found in tried])
        centre = np.median(signs, axis=0)
        spread = np.median(np.abs(signs - centre), axis=0) + 1e-9
        far = (((signs - self.signs) / spread) ** 2).sum(axis=1)
        best = rng.permutation(np.argsort(far, kind="stable")[:count])
        return [(tried[place][0], tried[place][1]) for place in best]

    def _tried(self, rng: np.random.Generator) -> tuple[Likeness, Synthetic, Floats]:
        like = self._drawn(rng)
        source = like.source(self.segment, rng)
        values = source.answer(self.asked, int(rng.integers(2**62)))
        return like, source, _signs(self.asked, values, self.segment.shape)

    def _drawn(self, rng: np.random.Generator) -> Likeness:
        """Draw a likeness by chance: variances as the pilot allows, patterns of all kinds."""
        error = math.sqrt(4 / len(self.asked))
        variance = self.variance * math.exp(error * rng.standard_normal())
        value, relative = self.noise
        if math.isnan(value):
            noise = variance * rng.uniform(0.02, 0.95)
        else:
            noise = min(value * math.exp(relative * rng.standard_normal()), 0.98 * variance)
        lines = rng.uniform(0, 0.7, 2) * (rng.random(2) < 0.5)
        rows, cols = (lines / max(1.0, lines.sum() / 0.9)).tolist()
        rank, decay = self._patterns(rng)
        return Likeness(self.mean, variance, noise, rows, cols, rank, decay)

    def _patterns(self, rng: np.random.Generator) -> tuple[int, float]:
        """Draw how many patterns there are and how they fade: few alike, or all, ever weaker."""
        shorter = min(self.segment.shape)
        if rng.random() < 0.5:
            return shorter, float(rng.uniform(*FADING))
        return max(1, round(math.exp(rng.uniform(-0.3, math.log(max(1.0, shorter / 2)))))), 0.0


def _signs(asked: Asked, values: Floats, shape: tuple[int, int]) -> Floats:
    """Give what shows of a matrix in some answers, whatever their noise.

    How far they scatter; how alike answers of one row are, and those of one column; and how
    rectangles of four cells go together, which is the more the fewer patterns there are.
    """
    variance = max(float(values.var()), 1e-12)
    counts, sums = (np.zeros(shape) for _ in range(2))
    np.add.at(counts, (asked.rows, asked.cols), 1.0)
    np.add.at(sums, (asked.rows, asked.cols), (values - values.mean()) / math.sqrt(variance))
    means, seen = sums / np.maximum(counts, 1.0), (counts > 0).astype(np.float64)
    means, seen = _fullest(means, seen)
    return np.array(
        [
            math.log(variance),
            _alike(means, seen),
            _alike(means.T, seen.T),
            _rooted(_rectangles(means) / max(_rectangles(seen), 1.0)),
        ]
    )


def _fullest(means: Floats, seen: Floats) -> tuple[Floats, Floats]:
    """Give the rows and columns with the most answers."""
    rows = np.sort(np.argsort(-seen.sum(axis=1), kind="stable")[:WIDEST])
    cols = np.sort(np.argsort(-seen.sum(axis=0), kind="stable")[:WIDEST])
    return means[np.ix_(rows, cols)], seen[np.ix_(rows, cols)]


def _alike(means: Floats, seen: Floats) -> float:
    """Give the mean product of two cells of one row."""
    products = (means.sum(axis=1) ** 2 - (means**2).sum(axis=1)).sum()
    pairs = (seen.sum(axis=1) ** 2 - seen.sum(axis=1)).sum()
    return float(products / max(pairs, 1.0))


def _rectangles(means: Floats) -> float:
    """Give the sum, over pairs of rows and pairs of columns, of the product of their four cells."""
    short = means if means.shape[0] <= means.shape[1] else means.T
    squares = short**2
    products = (short @ short.T) ** 2 - squares @ squares.T
    return float(products.sum() - np.trace(products)) / 4


def _rooted(value: float) -> float:
    """Give a square root that keeps the sign."""
    return math.copysign(math.sqrt(abs(value)), value)
