"""A band as a file keeps it: everything that it says, without the answers it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NoReturn

from malocate.confidence.band import Band
from malocate.errors import InvalidInput
from malocate.problem.plain import finite


@dataclass(frozen=True)
class SavedBand:
    """What a band said when it was saved; its fields are those of `Band`.

    The answers that judged the completion are not kept, so there are no intervals for cells.

    >>> from malocate import SoftImpute, Synthetic, error_band
    >>> source = Synthetic.ratings(shape=(40, 30), rank=2, rng=0)
    >>> band = error_band(SoftImpute(2.0), source.observe(1500, rng=1))
    >>> saved = SavedBand.of(band)
    >>> saved.upper == band.upper, str(saved) == str(band)
    (True, True)
    """

    estimate: float
    se: float
    upper: float
    ensemble_upper: float
    label: str
    given: str
    reason: str
    noise: float
    replicated: int
    answers: int
    delivered: str
    delta: float
    certainty: float
    rmse: float
    rmse_upper: float
    words: str

    @classmethod
    def of(cls, band: Band | SavedBand) -> SavedBand:
        """Give what a band says."""
        if isinstance(band, SavedBand):
            return band
        names = [each.name for each in fields(cls) if each.name != "words"]
        return cls(**{name: getattr(band, name) for name in names}, words=str(band))

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> SavedBand:
        """Make a band of what `to_plain` gave."""
        kinds = {each.name: each.type for each in fields(cls)}
        unknown = sorted(kinds.keys() ^ values.keys())
        if unknown:
            raise InvalidInput(f"A saved band has or lacks {', '.join(unknown)}.")
        numbers = {n: float(v) for n, v in values.items() if kinds[n] == "float"}
        return cls(**(values | numbers))

    def to_plain(self) -> dict[str, Any]:
        """Give what JSON can hold: numbers that are not finite are text."""
        told: dict[str, Any] = finite(asdict(self))
        return told

    def __str__(self) -> str:
        """Say it in a sentence or two."""
        return self.words

    def interval(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the answers that an interval would rest on are not kept."""
        raise InvalidInput(
            "This band was read from a file, which keeps no answers: it has no intervals for "
            "cells. Simulate again, or ask the band of the run before it is saved."
        )
