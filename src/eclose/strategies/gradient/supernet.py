"""A supernet: the network of a relaxed term, with what a search must know about its decisions.

Every pick is opened (it has a weight an edge), so that an edge can be weighted, sampled or removed by the same means as
an operation. Nothing here knows how weights are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eclose.algebra.errors import RequestError
from eclose.algebra.grammar.rules import CHOICE, PICK
from eclose.algebra.grammar.selecting import selected, sites
from eclose.algebra.terms import Term, distinct, fold
from eclose.meanings.program import Program, compile_term
from eclose.meanings.program.completion import completed
from eclose.meanings.torch.build import build_net
from eclose.meanings.torch.net import Net
from eclose.operations.mixture import MixtureWeights
from eclose.spaces import Space
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.structure import structured
from eclose.tasks import Task

ZERO, SKIP = "zero", "id"


@dataclass(frozen=True)
class Site:
    """One decision of a supernet.

    Attributes:
        name: of its alphas.
        kind: `"choice"` or `"pick"`.
        labels: its alternatives as short texts.
        keep: how many of them a selection keeps.
        weighted: whether it has alphas of its own; an opened pick that has none adds its edges up.
        inside: the pick on whose edge a choice stands, or nothing.
        zeros: alternatives that give nothing.
        skips: alternatives that change nothing.
        decided: whether a selection says something about it; the edge weights of a node that keeps all do not.
        present: whether it stands in the network at all; a DARTS net of two cells has no normal cell.
        edges: of a pick: the choices that stand on each of its edges.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    keep: int = 1
    weighted: bool = True
    inside: str = ""
    zeros: tuple[int, ...] = ()
    skips: tuple[int, ...] = ()
    decided: bool = True
    present: bool = True
    edges: tuple[tuple[str, ...], ...] = ()

    @property
    def count(self) -> int:
        """The number of alternatives."""
        return len(self.labels)

    @property
    def selectable(self) -> tuple[int, ...]:
        """The alternatives that a selection may take: on an edge of a pick `none` takes part in the search only."""
        if not self.inside:
            return tuple(range(self.count))
        return tuple(index for index in range(self.count) if index not in self.zeros) or tuple(range(self.count))


@dataclass
class Supernet:
    """A network with decisions.

    Attributes:
        space: whose terms its selections are.
        relaxed: the space's relaxed term, which selections are made of.
        net: the network.
        sites: its decisions by name, inner ones first.
        notes: what people should know about it.
    """

    space: Space
    relaxed: Term
    net: Net
    sites: dict[str, Site]
    notes: tuple[str, ...] = ()

    @property
    def weighted(self) -> dict[str, Site]:
        """The decisions that have alphas."""
        return {name: site for name, site in self.sites.items() if site.weighted}

    @property
    def choices(self) -> dict[str, Site]:
        """The choices that stand in the network."""
        return {name: site for name, site in self.sites.items() if site.kind == CHOICE and site.present}

    @property
    def alphas(self) -> dict[str, torch.nn.Parameter]:
        """The alphas that a search moves."""
        return {name: self.net.alphas[name] for name in self.weighted}

    def term(self, decisions: Mapping[str, tuple[int, ...]]) -> Term:
        """Return the term of the space that decisions stand for: for each site the alternatives it keeps."""
        choices = {name: kept[0] for name, kept in decisions.items() if self.sites[name].kind == CHOICE}
        picks = {
            name: kept for name, kept in decisions.items() if self.sites[name].kind == PICK and self.sites[name].decided
        }
        return selected(self.relaxed, choices, picks, self.space.grammar.registry)

    def hard(self, decisions: Mapping[str, tuple[int, ...]]) -> dict[str, MixtureWeights]:
        """Return the weights under which the supernet computes the network of some decisions."""
        return {name: MixtureWeights(None, decisions[name]) for name, site in self.sites.items() if site.present}


class Weighted:
    """A network together with the weights of its decisions, called like the network itself."""

    def __init__(self, net: Any, weights: Mapping[str, MixtureWeights | Tensor]):
        self.net, self.weights = net, weights

    @property
    def training(self) -> bool:
        """Whether the network trains."""
        return bool(self.net.training)

    @property
    def program(self) -> Any:
        """The network's program."""
        return self.net.program

    def __call__(self, x: Tensor, taps: bool = False) -> Any:
        """Return what the network gives."""
        return self.net(x, taps=taps, weights=self.weights)


def supernet(space: Space, task: Task, recipe: Recipe, *, partial: int | None = None, seed: int = 0) -> Supernet:
    """Return the supernet of a space for a task, with the initial parameters that belong to a seed.

    Args:
        space: what is searched.
        task: what it is fed and gives.
        recipe: says its size and structure.
        partial: instead of the recipe's (a progressive search has one a stage).
        seed: of the initial weights.
    """
    relaxed = space.relaxed()
    found = sites(relaxed)
    if not found:
        raise RequestError(f"{space.name} leaves nothing to decide: a single term is no search")
    for site in found.values():
        if len(site.alternatives) == 1 and site.kind == CHOICE:
            raise RequestError(f"the choice {site.name!r} of {space.name} has a single alternative; write it alone")
    parts = recipe.partial if partial is None else partial
    changed = structured(relaxed, partial=parts)
    notes: list[str] = []
    if recipe.edge_normalisation:
        try:
            changed = structured(changed, edge_normalisation=True)
        except RequestError:
            notes.append(f"edge_normalisation changes nothing: no edges meet in the terms of {space.name}")
    own = {name for name, site in sites(changed).items() if site.kind == PICK and _has_logits(changed, name)}
    opened = _opened(changed)
    options = _options(space, recipe)
    whole = space.network(opened, input=task.input, output=task.output, **options)
    registry = space.grammar.registry
    whole = completed(whole, task.input, task.output, registry)
    program = compile_term(whole, task.input, task.output, registry=registry, policy="adapt")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = build_net(program)
    made = _sites(opened, set(found), own, set(program.choices))
    return Supernet(space, relaxed, net, made, (*notes, *_notes(made, program)))


def _notes(made: Mapping[str, Site], program: Program) -> tuple[str, ...]:
    """Return what people should know about a supernet."""
    notes = []
    absent = [name for name, site in made.items() if not site.present]
    if absent:
        notes.append(
            f"{len(absent)} of {len(made)} decisions stand nowhere in this supernet ({', '.join(absent[:3])}, ...); "
            "their first alternatives are taken. A deeper supernet (cells=) has them all"
        )
    adapters = sum("adapter_" in step.name for step in program.steps)
    if adapters:
        notes.append(
            f"{adapters} layers bring alternatives of unequal shapes together; a selected network has none of them"
        )
    return tuple(notes)


def _options(space: Space, recipe: Recipe) -> dict[str, Any]:
    """Return the options of the space's network: those of its supernet, and the recipe's size."""
    known = {**space.options, **space.supernet_options}
    options = dict(space.supernet_options)
    for key in ("channels", "cells"):
        value = getattr(recipe, key)
        if not value:
            continue
        if key not in known:
            raise RequestError(f"the network of {space.name} has no {key} to set; its terms say them themselves")
        options[key] = value
    return options


def _opened(term: Term) -> Term:
    """Return the term with weights on the edges of every pick."""

    def opened(node: Term, children: list[Term]) -> Term:
        if node.name == PICK and not node.get("logits", False):
            return node.replace(children=tuple(children), attributes={**dict(node.attributes), "logits": True})
        return node.replace(children=tuple(children)) if tuple(children) != node.children else node

    return fold(term, opened)


def _has_logits(term: Term, name: str) -> bool:
    return any(node.get("logits", False) for node in distinct(term) if node.name == PICK and node.get("name") == name)


def _sites(term: Term, decided: set[str], weighted_picks: set[str], present: set[str]) -> dict[str, Site]:
    """Return the decisions of an opened term."""
    found = sites(term)
    nearest = _nearest(term)
    inside: dict[str, str] = {}
    edges: dict[str, tuple[tuple[str, ...], ...]] = {}
    for site in found.values():
        if site.kind == PICK:
            edges[site.name] = tuple(nearest[id(child)] for child in site.alternatives)
            if site.name in decided:
                inside |= {name: site.name for names in edges[site.name] for name in names}
    result = {}
    for site in found.values():
        # Edges without a choice have nothing to be compared by but a weight of their own.
        bare = site.kind == PICK and site.keep < len(site.alternatives) and not all(edges[site.name])
        result[site.name] = Site(
            site.name,
            site.kind,
            tuple(_label(child) for child in site.alternatives),
            site.keep,
            (site.kind == CHOICE or bare or site.name in weighted_picks) and site.name in present,
            inside.get(site.name, ""),
            tuple(index for index, child in enumerate(site.alternatives) if child.name == ZERO),
            tuple(index for index, child in enumerate(site.alternatives) if child.name == SKIP),
            site.name in decided,
            site.name in present,
            edges.get(site.name, ()),
        )
    return result


def _nearest(term: Term) -> dict[int, tuple[str, ...]]:
    """Return for each subterm the choices in it that stand in no other decision of it."""
    found: dict[int, tuple[str, ...]] = {}
    for node in distinct(term):
        if node.name == CHOICE:
            found[id(node)] = (str(node.get("name")),)
        elif node.name == PICK:
            found[id(node)] = ()
        else:
            found[id(node)] = tuple(dict.fromkeys(name for child in node.children for name in found[id(child)]))
    return found


def _label(term: Term) -> str:
    text = str(term) if term.size < 40 else term.name
    return text if len(text) <= 80 else term.name


__all__ = ["SKIP", "ZERO", "Site", "Supernet", "Weighted", "supernet"]
