"""Public functions over what ships and what a user adds: operators, spaces, tasks, strategies, protocols."""

from __future__ import annotations

from typing import Any

from eclose._api.requests import as_space
from eclose.algebra.declarations import Operator
from eclose.algebra.errors import RequestError
from eclose.algebra.grammar import Grammar
from eclose.algebra.registry import default_registry
from eclose.spaces import SPACES, Space


def space(given: Space | Grammar | str) -> Space:
    """Return a space by its name, or around a grammar."""
    return as_space(given)


def register(thing: Operator | Space, name: str | None = None) -> Any:
    """Add an operator or a space of your own to those that ship, and return it.

    Args:
        thing: what to add; it is then known to `parse`, to grammars and to the command line (`--import your.module`).
        name: the name of a space, where it is not its own.
    """
    if isinstance(thing, Operator):
        return default_registry().add(thing)
    if isinstance(thing, Space):
        SPACES.add(name or thing.name, thing, thing.description)
        return thing
    raise RequestError(f"an operator or a space can be registered, not {type(thing).__name__}")
