"""Where answers come from when nobody has to be asked: made-up matrices and recorded answers."""

from malocate.sources.adapters import as_source
from malocate.sources.base import Asked, Source
from malocate.sources.replay import Replay
from malocate.sources.synthetic import Synthetic

__all__ = ["Asked", "Replay", "Source", "Synthetic", "as_source"]
