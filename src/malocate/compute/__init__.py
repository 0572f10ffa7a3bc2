"""Where repeated work is done: here, in threads or processes beside it, or on a Dask cluster.

Fits of folds and segments, runs of an experiment, twins of a plan: all of them go through
`Compute`, and come back with the same bits from wherever they were done, given one kind of
processor and one set of library versions. A task has one thread to itself, so that many tasks
never fight over cores. A worker that dies takes nothing with it: what it had not handed back is
done again by others.
"""

from malocate.compute.cluster import check_installed, forget
from malocate.compute.setting import Compute

__all__ = ["Compute", "check_installed", "forget"]
