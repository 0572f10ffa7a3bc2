"""Lines of tables, under the name that they had here; `malocate.files` reads them."""

from malocate.files.lines import Line, told_at

__all__ = ["Line", "told_at"]
