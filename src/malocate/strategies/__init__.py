"""Strategies: where to ask next."""
