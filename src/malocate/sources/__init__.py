"""Where answers come from when nobody has to be asked: made-up matrices and recorded answers."""

from malocate.sources.synthetic import Synthetic

__all__ = ["Synthetic"]
