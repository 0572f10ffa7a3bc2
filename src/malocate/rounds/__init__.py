"""The pure core: which draws are asked next, what a look finds, and when to stop."""

from malocate.rounds.asking import Questions, questions
from malocate.rounds.forecast import answers_left
from malocate.rounds.looks import Finding, Look, take_look
from malocate.rounds.standings import spent, standings_of
from malocate.rounds.step import (
    Batch,
    Round,
    Stop,
    begin,
    bounds_label,
    close,
    loss_bound,
    loss_of,
    plan,
)

__all__ = [
    "Batch",
    "Finding",
    "Look",
    "Questions",
    "Round",
    "Stop",
    "answers_left",
    "begin",
    "bounds_label",
    "close",
    "loss_bound",
    "loss_of",
    "plan",
    "questions",
    "spent",
    "standings_of",
    "take_look",
]
