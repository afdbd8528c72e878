"""Supernets that train in a second, and contexts of selections around them."""

from __future__ import annotations

import torch

import eclose as ec
from eclose.spaces import Space
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.search import GradientSearch
from eclose.strategies.gradient.selection import Context

PLANTED = """
Net -> Sequential(conv(channels=8), Edge, Edge, Edge, head)
Edge -> zero | noise | conv(kernel=3)
"""
"""Three edges in a row: what passes one without `conv` says nothing about the input."""
SMALL = {"batch_size": 50, "crop": 0, "flip": False}


def context_of(space, *, subset: int = 300, seed: int = 0, settings=None, state=None, **recipe) -> Context:
    """Return the context of a supernet with its initial weights."""
    search = search_of(space, subset=subset, seed=seed, **recipe)
    made = search.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(seed))
    return around(search, made, settings=settings, state=state)


def search_of(space, *, subset: int = 300, seed: int = 0, **recipe) -> GradientSearch:
    """Return a search on digits."""
    place = ec.space(space) if isinstance(space, str) else space
    task = ec.task(f"digits:subset={subset}")
    return GradientSearch(place, task, Recipe(**{**SMALL, **recipe}), seed=seed, device="cpu")


def around(search: GradientSearch, made, *, settings=None, state=None) -> Context:
    """Return the context of a selection from a search's supernet."""
    return Context(
        made.supernet, made.rule, search.recipe, search.task, search.feeds(), search.plain, search.device,
        seed=search.seed, settings=settings or {}, state=state,
    )  # fmt: skip


def planted(*, settings=None) -> Context:
    """Return a supernet that was trained with weights set by hand: the operation that matters has not the largest."""
    search = search_of(Space.from_grammar(PLANTED, name="planted"), subset=600, step="none", epochs=8, rate=0.1)
    made = search.made(0)
    with torch.no_grad():
        for alpha in made.supernet.alphas.values():
            alpha.copy_(torch.tensor([1.0, -4.0, 0.0]))  # zero, noise, conv
    made.supernet.net.load_state_dict(_kept(search, made))
    return around(search, made, settings=settings)


_KEPT: dict[str, torch.Tensor] = {}  # trained once a process


def _kept(search: GradientSearch, made) -> dict[str, torch.Tensor]:
    if not _KEPT:
        search.loop(made, 0).run()
        _KEPT.update({name: tensor.clone() for name, tensor in made.supernet.net.state_dict().items()})
    return _KEPT


class Scripted(Context):
    """A context whose measurements are a function of the weights that are measured, and are counted."""

    calls: int = 0
    script = staticmethod(lambda weights: {"score": 50.0, "loss": 1.0})

    def score(self, weights, batches=None):
        """Return what the script says."""
        self.calls += 1
        return self.script(weights)


def scripted(context: Context, script) -> Scripted:
    """Return a context with scripted measurements."""
    found = Scripted(**vars(context))
    found.script = script
    return found
