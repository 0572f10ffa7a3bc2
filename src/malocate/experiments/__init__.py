"""Campaigns in memory: simulations, and the paper's experiments."""

from malocate.experiments.run import Run
from malocate.experiments.simulation import simulate

__all__ = ["Run", "simulate"]
