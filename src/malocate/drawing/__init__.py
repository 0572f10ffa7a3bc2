"""Charts and heat maps as SVG and tables of HTML, for the server's pages and for reports."""

from malocate.errors import MissingDependency

try:
    import markupsafe  # noqa: F401  # so that a missing one is told of in a sentence
except ImportError as error:
    raise MissingDependency(
        "Pages and reports need Jinja2, which is not installed: pip install 'malocate[campaign]'"
    ) from error
