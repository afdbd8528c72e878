"""Architectures scored with the weights of a supernet, to be compared with what they score when they are trained."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from eclose.strategies.gradient.decisions import Decisions
from eclose.strategies.gradient.mixtures.paths import UniformPath
from eclose.strategies.gradient.selection.context import Context
from eclose.strategies.gradient.selection.sampled import leads_somewhere
from eclose.train.randomness import key_of

PATIENCE = 50  # draws for every architecture wanted; a small space may hold fewer


def drawn(context: Context, samples: int, seed: int = 0) -> dict[str, Decisions]:
    """Return different architectures, drawn evenly, by their terms.

    Args:
        context: a supernet.
        samples: how many; fewer where the space has no more.
        seed: of the draws.
    """
    path = UniformPath(context.supernet.sites, context.recipe).path
    found: dict[str, Decisions] = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key_of(seed, "correlation") % 2**63)
        for _ in range(PATIENCE * samples):
            if len(found) == samples:
                break
            decisions = path()
            if leads_somewhere(context, decisions):
                found.setdefault(str(context.supernet.term(decisions)), decisions)
    return found


def shared_scores(
    context: Context, architectures: dict[str, Decisions], *, batches: int | None = 5
) -> Iterator[tuple[str, float]]:
    """Yield each term with its score under the supernet's weights, on held data with batch statistics."""
    for term, decisions in architectures.items():
        yield term, context.discrete(decisions, batches)["score"]


__all__ = ["drawn", "shared_scores"]
