"""Strategies: how a space is searched."""
