"""Pictures of completions, runs and the paper's experiments; they need the extra `plots`."""

from malocate.plots.comparison import comparison_picture
from malocate.plots.completed import completed_picture
from malocate.plots.completion import completion_picture
from malocate.plots.paper import experiment_picture
from malocate.plots.plan import plan_picture
from malocate.plots.run import run_picture

__all__ = [
    "comparison_picture",
    "completed_picture",
    "completion_picture",
    "experiment_picture",
    "plan_picture",
    "run_picture",
]
