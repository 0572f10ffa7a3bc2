"""A design: everything that decides a campaign, written down before it begins."""

from malocate.design.design import Design
from malocate.design.questions import Question
from malocate.design.schedules import Batches, Doubling, Growing

__all__ = ["Batches", "Design", "Doubling", "Growing", "Question"]
