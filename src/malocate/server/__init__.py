"""The web: an HTTP API over campaigns, with tokens."""

from malocate.server.app import create_app

__all__ = ["create_app"]
