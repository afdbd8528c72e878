"""Strategies: how a space is searched.

A named strategy is an entry of `STRATEGIES`: how to make a fresh one, its settings with their defaults, and where it
comes from. Listing the catalogue imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eclose.algebra.catalogue import Catalogue
from eclose.algebra.errors import RequestError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class NamedStrategy:
    """A strategy by name.

    Attributes:
        name: what the catalogue calls it.
        kind: `"black-box"` for an ask/tell object over terms.
        build: `build(space, objective, **settings)` makes a fresh one.
        settings: setting -> default.
        explanation: how it searches, and what the settings do.
        source: the paper it comes from.
    """

    name: str
    kind: str = "black-box"
    build: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    explanation: str = ""
    source: str = ""


STRATEGIES: Catalogue[NamedStrategy] = Catalogue("strategy")
for _name, _reference, _description in (
    ("random", "random:RANDOM", "terms drawn from the grammar, one independent of the other"),
    ("evolution", "evolution:EVOLUTION", "regularised evolution: the oldest of a population makes room for a mutant"),
    ("reinforce", "reinforce:REINFORCE", "a policy over the decisions of a small grammar, trained by policy gradient"),
):
    STRATEGIES.add(_name, f"eclose.strategies.blackbox.{_reference}", _description)


def make(name: str, space: Any, objective: Any = None, **settings: Any) -> Any:
    """Return a fresh strategy.

    Args:
        name: as in `STRATEGIES`.
        space: what it searches.
        objective: what it makes large or small, an `Objective`; to maximise `score` without one.
        settings: to set otherwise than by default.
    """
    found = STRATEGIES.get(name)
    for setting in settings:
        if setting not in found.settings:
            listed = ", ".join(f"{key}={value!r}" for key, value in found.settings.items()) or "none"
            hint = did_you_mean(setting, found.settings)
            raise RequestError(f"strategy {name!r} has no setting {setting!r}{hint} (settings: {listed})")
    if objective is None:
        from eclose.study.results import Objective

        objective = Objective()
    return found.build(space, objective, **{**found.settings, **settings})


def explained(name: str) -> str:
    """Return what a strategy does, its settings with their defaults, and where it comes from, as text for people."""
    found = STRATEGIES.get(name)
    lines = [f"{found.name} ({found.kind})", *(f"  {line}" for line in found.explanation.strip().splitlines())]
    width = max((len(key) for key in found.settings), default=0)
    lines += [f"  {key:<{width}} = {value!r}" for key, value in found.settings.items()] or ["  no settings"]
    return "\n".join([*lines, f"  source: {found.source}"])


__all__ = ["STRATEGIES", "NamedStrategy", "explained", "make"]
