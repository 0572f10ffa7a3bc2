"""The nouns of the problem: one segment's answers and what they say about each entry."""

from malocate.problem.entries import Entries
from malocate.problem.observations import Observations

__all__ = ["Entries", "Observations"]
