"""The nouns of the problem: segments, their answers, and the loss over all of them."""

from malocate.problem.entries import Entries
from malocate.problem.loss import Loss
from malocate.problem.observations import Observations
from malocate.problem.segment import Segment

__all__ = ["Entries", "Loss", "Observations", "Segment"]
