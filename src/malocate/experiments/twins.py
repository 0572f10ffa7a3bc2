"""Synthetic twins: made-up matrices for the segments of a design, to try it on before the field."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import numpy as np

from malocate.design import Design
from malocate.errors import InvalidInput
from malocate.experiments.likeness import whole_scale
from malocate.problem import Segment
from malocate.problem.settings import check_count
from malocate.sources import Synthetic

RANK = 3
"""The rank of a twin of which nothing else is said, where the segment's sides allow it."""

ON_A_SCALE, ELSEWHERE = 1 / 8, 0.1
"""Default noise: this share of the scale's length, or this beside entries of variance 1."""


def twins(
    design: Design,
    ranks: Mapping[str, int] | int | None = None,
    *,
    noise: float | None = None,
    seed: int = 0,
) -> dict[str, Synthetic]:
    """Give a source for each segment of a design: ratings on its scale, or a low-rank matrix.

    `ranks` is one for all or by segment; those left out have rank 3. `noise` is the standard
    deviation of an answer before rounding: by default an eighth of the scale's length, or 0.1
    without a scale.

    >>> from malocate import Design, Segment
    >>> design = Design([Segment("a", (9, 8), scale=(1, 5)), Segment("b", (9, 2))], budget=100)
    >>> made = twins(design, {"a": 5})
    >>> [source.left.shape[1] for source in made.values()], made["a"].noise, made["b"].scale
    ([5, 2], 0.5, None)
    """
    given = _by_name(design, ranks)
    seeds = np.random.default_rng(seed).integers(2**32, size=len(design.segments))
    return {
        segment.name: _twin(segment, given.get(segment.name), noise, int(own))
        for segment, own in zip(design.segments, seeds, strict=True)
    }


def _by_name(design: Design, ranks: Mapping[str, int] | int | None) -> dict[str, int]:
    names = [segment.name for segment in design.segments]
    given = dict(ranks) if isinstance(ranks, Mapping) else {}
    if ranks is not None and not isinstance(ranks, Mapping):
        given = dict.fromkeys(names, ranks)
    for name, rank in given.items():
        if name not in names:
            near = get_close_matches(name, names, n=1)
            known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}."
            raise InvalidInput(f"A rank is given for a segment {name!r}, which is none; {known}")
        check_count(f"rank of {name!r}", rank)
    return given


def _twin(segment: Segment, rank: int | None, noise: float | None, seed: int) -> Synthetic:
    most = min(segment.shape)
    rank = min(RANK, most) if rank is None else rank
    if rank > most:
        raise InvalidInput(
            f"rank of {segment.name!r} is {rank}; for shape {segment.shape} it is {most} at most."
        )
    if segment.scale is None:
        spread = ELSEWHERE if noise is None else noise
        return Synthetic.low_rank(segment.shape, rank, spread, rng=seed)
    low, high = whole_scale(segment)
    spread = (high - low) * ON_A_SCALE if noise is None else noise
    return Synthetic.ratings(segment.shape, rank, spread, (low, high), rng=seed)
