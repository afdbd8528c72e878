"""How a selection compares: one number of a supernet under some weights, larger for better; and how it concludes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.decisions import Decisions, as_scores, decide
from eclose.strategies.gradient.selection.context import Context
from eclose.strategies.gradient.selection.magnitude import decided_within, with_parameters
from eclose.strategies.gradient.supernet import Site
from eclose.train.randomness import key_of

CRITERIA = ("score", "loss")
WORST = -1e30  # of a measurement that is no number


class Measurement:
    """Measures a supernet on the held data; equal draws of dropout for whatever is compared.

    Args:
        context: the supernet and its data.
        criterion: `"score"`, the task's metric, or `"loss"`.
        batches: how many batches; 0 for all.
    """

    def __init__(self, context: Context, criterion: str, batches: int):
        self.context, self.criterion, self.batches = context, criterion, batches or None
        maximised = criterion == "score" and context.task.metric.direction == "maximise"
        self._sign = 1.0 if maximised else -1.0

    def __call__(self, weights: Mapping[str, MixtureWeights]) -> float:
        """Return the loss or the score as it is measured."""
        with seeded(self.context):
            return self.context.score(weights, self.batches)[self.criterion]

    def value(self, measured: float) -> float:
        """Return a measurement so that larger is better."""
        return self._sign * measured if math.isfinite(measured) else WORST


@contextmanager
def seeded(context: Context) -> Iterator[None]:
    """Draw from a generator of the selection's own for a `with` block."""
    with torch.random.fork_rng(devices=[context.device] if context.device.type == "cuda" else []):
        torch.manual_seed(key_of(context.seed, "measurement") % 2**63)
        yield


def candidates(context: Context, site: Site) -> tuple[int, ...]:
    """Return the alternatives that a choice may keep: none that the search has dropped, nor `none` on a pick's edge."""
    allowed = context.rule.allowed.get(site.name, tuple(range(site.count)))
    return tuple(index for index in site.selectable if index in allowed) or site.selectable


def concluded(context: Context, decided: Decisions, importance: Mapping[str, Sequence[float]]) -> Decisions:
    """Return the decisions of a whole architecture.

    A pick that was not decided keeps its edges of largest weight. Where the recipe limits skip connections or asks for
    operations with parameters, the least important operations give way, on the edges that are kept.

    Args:
        context: with the recipe.
        decided: what was decided.
        importance: for each choice a number for every alternative, by which one gives way to another.
    """
    sites, recipe = context.supernet.sites, context.recipe
    found = decide(sites, as_scores(context.thetas()), fixed=decided)
    inside = context.supernet.term(found) in context.supernet.space
    if recipe.most_skips < 0 and not recipe.least_features and inside:
        return found
    scores = {name: list(importance.get(name, (1.0,) * site.count)) for name, site in sites.items()}
    return decided_within(
        context.supernet,
        scores,
        fixed={name: kept for name, kept in found.items() if sites[name].kind == "pick"},
        most_skips=recipe.most_skips,
        least_features=recipe.least_features,
        features=with_parameters(context.supernet.net.program) if recipe.least_features else None,
    )


__all__ = ["CRITERIA", "Measurement", "candidates", "concluded", "seeded"]
