"""`python -m malocate` is the command line."""

from malocate.cli import app

if __name__ == "__main__":
    app(prog_name="malocate")
