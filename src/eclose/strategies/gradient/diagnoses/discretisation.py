"""The gap of discretisation: what is lost from the mixture to the architecture derived from it.

Two things become discrete. Every choice keeps its largest weight; every pick keeps its strongest edges. Both steps are
measured, each network with batch-norm statistics of its own. Beside the measured rise of the loss stands what its
curvature predicts (Chen and Hsieh 2020): 1/2 (b - a)^T H (b - a), for the mixture a and the one-hot weights b.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from eclose.diagnose.gap import sharpness
from eclose.diagnose.normalisation import preserved, recalibrated
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.decisions import Decisions, as_scores, decide
from eclose.strategies.gradient.diagnoses.curvature import probe_of
from eclose.strategies.gradient.selection.context import Context
from eclose.strategies.gradient.supernet import Weighted
from eclose.train.data import Batch
from eclose.train.meters import Meter


def discretisation(context: Context, *, batches: int | None = 5, probe: int = 0) -> dict[str, Any]:
    """Return scores of the mixture and of what is derived from it, and the rise of the loss, predicted and measured.

    Of the result, `supernet`, `discrete` (one operation an edge, all edges) and `derived` (the kept edges; None in a
    space that decides about none) are scores on held data; `gap` is what `discrete` is worse by. `loss_gap` is the
    rise of the loss on the probe's batch from mixture to one-hot weights, and `sharpness` the prediction for it.

    Args:
        context: a supernet.
        batches: batches of held data; None for all.
        probe: items of the probe's batch; 0 for one batch of the search.
    """
    thetas, net = context.thetas(), context.supernet
    decisions = decide(net.sites, as_scores(thetas))
    mixture = evaluated(context, context.rule.mixed(thetas), batches)
    discrete = evaluated(context, one_hot(context, decisions), batches)
    derived = None
    if any(site.kind == "pick" and site.decided and site.present for site in net.sites.values()):
        derived = evaluated(context, net.hard(decisions), batches)["score"]
    sign = 1.0 if context.task.metric.direction == "maximise" else -1.0
    predicted, measured = rise(context, thetas, decisions, probe)
    return {
        "supernet": mixture["score"],
        "discrete": discrete["score"],
        "derived": derived,
        "gap": sign * (mixture["score"] - discrete["score"]),
        "sharpness": predicted,
        "loss_gap": measured,
    }


def one_hot(context: Context, decisions: Decisions) -> dict[str, MixtureWeights]:
    """Return the weights under which every choice is decided and every pick still has all its edges."""
    hard = {name: MixtureWeights(None, decisions[name]) for name in context.supernet.choices}
    return {**context.rule.mixed(context.thetas()), **hard}


def rise(context: Context, thetas: Mapping[str, Tensor], decisions: Decisions, probe: int) -> tuple[float, float]:
    """Return the rise of the probe's loss from mixture to one-hot weights: what curvature predicts, what is measured.

    Both are of one function, the loss with batch statistics.
    """
    found = probe_of(context, probe)
    corner = dict(thetas)
    for name in context.supernet.choices:
        corner[name] = torch.zeros_like(thetas[name])
        corner[name][decisions[name][0]] = 1.0
    net = context.supernet.net
    training = net.training
    net.train()
    try:
        with preserved(net):
            predicted = sharpness(found.at_weights, thetas, corner)
            with torch.no_grad():
                measured = float(found.at_weights(corner)) - float(found.at_weights(thetas))
    finally:
        net.train(training)
    return predicted, measured


def evaluated(context: Context, weights: Mapping[str, MixtureWeights], batches: int | None) -> dict[str, float]:
    """Return loss and score on held data in evaluation mode, with batch-norm statistics that belong to the weights.

    The statistics are measured on about as many items of the training data.

    Args:
        context: a supernet.
        weights: of its decisions.
        batches: batches of held data; None for all.
    """
    net, held = context.supernet.net, context.feeds["held"]
    view: Any = Weighted(net, weights)
    steps = held.steps if batches is None else min(batches, held.steps)
    items = sum(len(held.batch(0, step).targets) for step in range(steps))
    meter = Meter(context.device, context.task.metric.measure)
    training = net.training
    with recalibrated(net, _training(context, items), lambda batch: view(batch.inputs)):
        net.eval()
        try:
            with torch.no_grad():
                for step in range(steps):
                    batch = held.batch(0, step)
                    outcome = context.plain(view, batch)
                    meter.add(outcome.loss, outcome.outputs, batch.targets)
        finally:
            net.train(training)
    return meter.means()


def _training(context: Context, items: int) -> Iterator[Batch]:
    """Yield batches of the training data, at least one, until they hold so many items."""
    feed, seen = context.feeds["train"], 0
    for step in range(feed.steps):
        batch = feed.batch(0, step)
        yield batch
        seen += len(batch.targets)
        if seen >= items:
            return


__all__ = ["discretisation", "evaluated", "one_hot", "rise"]
