"""The registry that ships: every family's declarations together."""

from __future__ import annotations

from eclose.algebra.declarations import resolve
from eclose.algebra.registry import Registry

FAMILIES = ("wirings", "motifs", "convolutions", "functions", "sequences", "ends", "choices", "channels", "nasbench101")

_registry: Registry | None = None


def standard() -> Registry:
    """Return the shared registry of the operators that ship (and those a user has registered)."""
    global _registry
    if _registry is None:
        _registry = Registry(
            operator for family in FAMILIES for operator in resolve(f"eclose.operators.{family}:OPERATORS")
        )
    return _registry
