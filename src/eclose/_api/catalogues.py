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


def register(thing: Any, name: str | None = None, description: str = "") -> Any:
    """Add an operator, space, strategy, protocol or task of your own to those that ship, and return it.

    Args:
        thing: an `Operator`, a `Space`, a `strategies.NamedStrategy`, a `train.protocols.Protocol`, or a function that
            builds a `Task`. What is added is known by its name everywhere, on the command line with
            `--import your.module`.
        name: of a task; of a space or strategy where it is not its own.
        description: one line for the lists; that of the thing, or of its docstring, without.
    """
    from eclose.strategies import STRATEGIES, NamedStrategy

    if isinstance(thing, Operator):
        return default_registry().add(thing)
    if isinstance(thing, Space):
        SPACES.add(name or thing.name, thing, description or thing.description)
    elif isinstance(thing, NamedStrategy):
        STRATEGIES.add(name or thing.name, thing, description or _first_line(thing.explanation))
    elif _is_protocol(thing):
        from eclose.train.protocols import PROTOCOLS

        PROTOCOLS.add(name or thing.name, thing, description or thing.source)
    elif callable(thing) and not isinstance(thing, type):
        from eclose.tasks.names import TASKS

        if name is None:
            raise RequestError("a function that builds a task is registered with name=")
        TASKS.add(name, thing, description or _first_line(thing.__doc__ or ""))
    else:
        raise RequestError(
            f"an operator, a space, a strategy, a protocol or a function that builds a task can be registered, "
            f"not {type(thing).__name__}"
        )
    return thing


def _is_protocol(thing: Any) -> bool:
    """Return whether a thing is a training protocol; those modules are loaded only where one may have been made."""
    return type(thing).__module__ == "eclose.train.protocols"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
