"""What the process that a crowd is forked from imports: all code loaded, one survey simulated.

Its children then have the compiled kernels, and no database was opened.
"""

from __future__ import annotations

from crowd import design

from malocate import Synthetic, simulate

_shapes = {segment.name: segment.shape for segment in design().segments}
_sources = {name: Synthetic.low_rank(shape, rank=1, rng=1) for name, shape in _shapes.items()}
simulate(design(100), _sources, progress=False)
