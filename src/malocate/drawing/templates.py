"""Templates of pages: how they are read, and how numbers are written in them."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from malocate.drawing.numbers import number
from malocate.problem.counting import counted


def environment(package: str) -> Environment:
    """Give the templates of a package; what is put into them is escaped, and must be there."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "counted": counted}
    return made
