"""What every mixture is: alphas in, weights out, and what a search must know besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.supernet import Site
from eclose.train.callbacks import Callback

Level: TypeAlias = Literal["weights", "architecture"]
"""Whose step asks: that of the network's weights or that of the alphas."""

INITIAL_SCALE = 1e-3  # alpha ~ 1e-3 N(0, 1)


class MixtureRule:
    """The plain relaxation; subclasses override what they do otherwise.

    Args:
        sites: the decisions of a supernet.
        recipe: the settings of the search.

    Attributes:
        allowed: for each decision with alphas the alternatives that take part; a progressive search drops some.
    """

    captures = True
    """Whether all of it happens on the device: a captured step repeats what the host did only once."""
    samples_edges = False
    """Whether picks are sampled like everything else; without it an opened pick adds all its edges up."""
    trained = True
    """Whether its alphas are parameters that an optimiser moves."""

    def __init__(self, sites: Mapping[str, Site], recipe: Recipe):
        self.sites, self.recipe = dict(sites), recipe
        self.names = tuple(name for name, site in self.sites.items() if site.weighted)
        self.allowed = {name: tuple(range(self.sites[name].count)) for name in self.names}
        self._indices: dict[tuple[Any, ...], Tensor] = {}

    # What a search asks for

    def initialise(self, alphas: Mapping[str, nn.Parameter], generator: torch.Generator) -> None:
        """Give alphas their first values."""
        with torch.no_grad():
            for alpha in alphas.values():
                alpha.copy_(INITIAL_SCALE * torch.randn(alpha.shape, generator=generator))

    def __call__(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, MixtureWeights]:
        """Return the weights of a step for every decision of the supernet."""
        return self.mixed(self.thetas(alphas, level))

    def thetas(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, Tensor]:
        """Return the weights of every decision that has alphas, as tensors."""
        return self.expected(alphas)

    def expected(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights without their noise: for selection, for the log and for an evaluation of the supernet."""
        return self.by_rows(alphas, lambda rows: torch.softmax(rows, -1))

    def updated(self, alphas: Mapping[str, nn.Parameter]) -> None:
        """Bring alphas back into their domain after an optimiser's step."""

    def callbacks(self) -> Sequence[Callback]:
        """Return what must happen around steps and epochs."""
        return ()

    def state_dict(self) -> dict[str, Any]:
        """Return what must survive a resume."""
        return {"allowed": {name: list(kept) for name, kept in self.allowed.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        self.allowed = {name: tuple(kept) for name, kept in state["allowed"].items()}

    def drop_none(self) -> None:
        """Leave `none` out of every choice that offers something else."""
        for name, kept in self.allowed.items():
            left = tuple(index for index in kept if index not in self.sites[name].zeros)
            if self.sites[name].kind == "choice" and left:
                self.allowed[name] = left

    # What rules are made of

    def present(self) -> dict[str, Site]:
        """Return the decisions that stand in the network."""
        return {name: site for name, site in self.sites.items() if site.present}

    def mixed(self, thetas: Mapping[str, Tensor]) -> dict[str, MixtureWeights]:
        """Return tensors as the weights of a forward pass; opened picks add their edges up."""
        found: dict[str, MixtureWeights] = {}
        for name, site in self.present().items():
            if name not in thetas:
                found[name] = MixtureWeights(None)
                continue
            kept = self.allowed[name]
            found[name] = MixtureWeights(thetas[name], None if len(kept) == site.count else kept)
        return found

    def by_rows(self, alphas: Mapping[str, Tensor], change: Any) -> dict[str, Tensor]:
        """Apply a function of rows to the alphas that take part; what does not has the weight 0.

        Decisions with as many alternatives are one matrix, so a step takes a few operations instead of a few for each.
        """
        groups: dict[tuple[int, int], list[str]] = {}
        for name in self.names:
            groups.setdefault((self.sites[name].count, len(self.allowed[name])), []).append(name)
        found: dict[str, Tensor] = {}
        for (count, kept), names in groups.items():
            rows = torch.stack([alphas[name] for name in names])
            if kept == count:
                changed = change(rows)
            else:
                where = self._kept(names, rows.device)
                changed = torch.zeros_like(rows).scatter(1, where, change(rows.gather(1, where)))
            found.update(zip(names, changed.unbind(0), strict=True))
        return found

    def _kept(self, names: Sequence[str], device: torch.device) -> Tensor:
        key = (device, tuple((name, self.allowed[name]) for name in names))
        if key not in self._indices:
            self._indices = {key_: value for key_, value in self._indices.items() if key_[1] == key[1]}
            self._indices[key] = torch.tensor([self.allowed[name] for name in names], device=device)
        return self._indices[key]


__all__ = ["INITIAL_SCALE", "Level", "MixtureRule"]
