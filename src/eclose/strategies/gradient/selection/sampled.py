"""Selection by sampling: the best of many architectures by the shared weights (Li and Talwalkar 2019)."""

from __future__ import annotations

from typing import Any

import torch

from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.decisions import decide
from eclose.strategies.gradient.mixtures.paths import UniformPath
from eclose.strategies.gradient.selection.context import Context, Selection
from eclose.strategies.gradient.selection.magnitude import with_parameters
from eclose.train.randomness import key_of

FIRST_BATCHES = 10  # that every architecture is scored on
FINALISTS = 10  # that are scored on all held data


def sampled(context: Context) -> Selection:
    """Return the best of `samples` architectures: all scored on a few batches, the best again on all held data.

    They are drawn evenly, or by the controller of a search that has one.
    """
    net, recipe = context.supernet, context.recipe
    rule = context.rule if context.rule.samples_edges else UniformPath(net.sites, recipe)
    drawn: dict[str, dict[str, tuple[int, ...]]] = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key_of(context.seed, "selection") % 2**63)
        for _ in range(recipe.samples):
            decisions = rule.path()  # type: ignore[attr-defined]
            found = net.term(decisions)
            if leads_somewhere(context, decisions) and found in net.space and allowed(context, decisions):
                drawn.setdefault(str(found), decisions)
    if not drawn:
        raise RequestError(
            f"none of {recipe.samples} architectures drawn is in the space, within its limits, and computes anything; "
            "draw more (samples=)"
        )
    sign = 1.0 if context.task.metric.direction == "maximise" else -1.0
    rough = {}
    for number, (term, decisions) in enumerate(drawn.items()):
        rough[term] = sign * context.discrete(decisions, FIRST_BATCHES)["score"]
        if context.watch is not None:
            context.watch("selection", (number + 1, len(drawn), term))
    finalists = sorted(rough, key=lambda term: -rough[term])[:FINALISTS]
    fine = {term: sign * context.discrete(drawn[term])["score"] for term in finalists}
    best = max(finalists, key=lambda term: fine[term])
    steps = tuple({"term": term, "score": sign * fine[term]} for term in finalists)
    return Selection(net.term(drawn[best]), drawn[best], sign * fine[best], steps)


def allowed(context: Context, decisions: dict[str, tuple[int, ...]]) -> bool:
    """Return whether decisions keep the recipe's limits."""
    recipe, sites = context.recipe, context.supernet.sites
    limits: dict[str, Any] = {"most_skips": recipe.most_skips, "least_features": recipe.least_features}
    if recipe.least_features:
        limits["features"] = with_parameters(context.supernet.net.program)
    try:
        decide(sites, {}, fixed=decisions, **limits)
    except RequestError:
        return False
    return True


def leads_somewhere(context: Context, decisions: dict[str, tuple[int, ...]]) -> bool:
    """Return whether anything that decisions keep reaches the output."""
    sites = context.supernet.sites
    return not all(
        set(kept) <= set(sites[name].zeros) for name, kept in decisions.items() if sites[name].kind == "choice"
    )


__all__ = ["sampled"]
