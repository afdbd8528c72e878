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

WIDTH = 100  # of the lines in which settings are listed


@dataclass(frozen=True, kw_only=True)
class NamedStrategy:
    """A strategy by name.

    Attributes:
        name: what the catalogue calls it.
        kind: `"black-box"` for an ask/tell object over terms, `"gradient"` for a recipe of a supernet's training.
        build: `build(space, objective, **settings)` makes a fresh one; of a recipe, `build(**settings)`.
        settings: setting -> default.
        settings_of_paper: those of a recipe that differ from first-order DARTS.
        spaces: of a recipe, what differs on a space.
        explanation: how it searches, and what the settings do.
        source: the paper it comes from.
    """

    name: str
    kind: str = "black-box"
    build: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    settings_of_paper: Mapping[str, Any] = field(default_factory=dict)
    spaces: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    explanation: str = ""
    source: str = ""


STRATEGIES: Catalogue[NamedStrategy] = Catalogue("strategy")
for _name, _reference, _description in (
    ("random", "random:RANDOM", "terms drawn from the grammar, one independent of the other"),
    ("evolution", "evolution:EVOLUTION", "regularised evolution: the oldest of a population makes room for a mutant"),
    ("reinforce", "reinforce:REINFORCE", "a policy over the decisions of a small grammar, trained by policy gradient"),
):
    STRATEGIES.add(_name, f"eclose.strategies.blackbox.{_reference}", _description)
for _name, _reference, _description in (
    ("darts", "DARTS", "a softmax mixture, alphas on the validation loss, first order"),
    ("darts-2nd", "DARTS_SECOND", "the same through a virtual step of the weights, second order"),
    ("snas", "SNAS", "Gumbel-softmax samples, a single level"),
    ("gdas", "GDAS", "one path by Gumbel noise with the gradient of the soft weights"),
    ("dsnas", "DSNAS", "one path by its probability, score-function gradient, early fixing"),
    ("pc-darts", "PC_DARTS", "a quarter of the channels, edge normalisation"),
    ("drnas", "DRNAS", "mixtures drawn from a learned Dirichlet distribution"),
    ("drnas-progressive", "DRNAS_PROGRESSIVE", "the same in stages with fewer operations and more channels"),
    ("sdarts-rs", "SDARTS_RS", "weights trained under randomly perturbed mixtures"),
    ("sdarts-adv", "SDARTS_ADV", "weights trained under the worst mixtures nearby"),
    ("gaea", "GAEA", "weights on the simplex, moved by exponentiated gradient"),
    ("gaea-pc-darts", "GAEA_PC_DARTS", "the same for operations and edges of pc-darts"),
    ("nasp", "NASP", "proximal steps: the largest alpha alone is evaluated"),
    ("proxyless", "PROXYLESS", "one path for the weights, two for the alphas"),
    ("rs-ws", "RS_WS", "random search with shared weights"),
    ("enas", "ENAS", "paths drawn by a recurrent controller"),
    ("r-darts-dp", "R_DARTS_DP", "darts with cutout and drop-path in the supernet"),
    ("r-darts-l2", "R_DARTS_L2", "darts with more weight decay"),
    ("darts-es", "DARTS_ES", "darts, stopped by the curvature of the validation loss"),
    ("darts-ada", "DARTS_ADA", "darts that goes back and regularises more where the curvature says so"),
    ("supernet-sgd", "SUPERNET_SGD", "weights and alphas together on the training loss"),
):
    STRATEGIES.add(_name, f"eclose.strategies.gradient.named:{_reference}", _description)


def make(name: str, space: Any, objective: Any = None, **settings: Any) -> Any:
    """Return a fresh strategy.

    Args:
        name: as in `STRATEGIES`.
        space: what it searches.
        objective: what it makes large or small, an `Objective`; to maximise `score` without one.
        settings: to set otherwise than by default.
    """
    found = STRATEGIES.get(name)
    if found.kind != "black-box":
        raise RequestError(f"strategy {name!r} trains a supernet; it proposes no terms to be asked for")
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
    own = found.settings_of_paper
    rest = {key: value for key, value in found.settings.items() if key not in own}
    lines = [f"{found.name} ({found.kind})", *(f"  {line}" for line in found.explanation.strip().splitlines())]
    if found.kind == "black-box":
        lines += _listed("settings", rest) if rest else ["  no settings"]
    else:
        lines += _listed("its own settings", own) if own else []
        for spaces, changes in _alike(found.spaces):
            lines += _listed(f"on {', '.join(spaces)}", changes)
        lines += _listed("the others, as in darts" if own else "settings", rest)
    return "\n".join([*lines, f"  source: {found.source}"])


def _listed(title: str, settings: Mapping[str, Any]) -> list[str]:
    """Return settings under a title, several a line, as a command line would set them."""
    lines = [f"  {title}:"]
    line = ""
    for key, value in settings.items():
        entry = f"{key}={_written(value)}"
        if line and len(line) + 2 + len(entry) > WIDTH:
            lines.append(f"    {line}")
            line = ""
        line = f"{line}  {entry}" if line else entry
    return [*lines, f"    {line}"]


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if value and " " not in value else f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def _alike(spaces: Mapping[str, Mapping[str, Any]]) -> list[tuple[list[str], Mapping[str, Any]]]:
    """Return what differs on spaces, once for all that differ alike."""
    found: list[tuple[list[str], Mapping[str, Any]]] = []
    for space, changes in spaces.items():
        for names, known in found:
            if known == changes:
                names.append(space)
                break
        else:
            found.append(([space], changes))
    return found


__all__ = ["STRATEGIES", "NamedStrategy", "explained", "make"]
