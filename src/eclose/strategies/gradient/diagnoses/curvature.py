"""The curvature of the loss in the alphas: it rises before a search collapses (Zela et al. 2020)."""

from __future__ import annotations

from typing import Any

import torch

from eclose.diagnose.hessian import Method
from eclose.strategies.gradient.probe import Probe
from eclose.strategies.gradient.selection.context import Context
from eclose.train.data import Batch


def curvature(context: Context, *, method: Method = "auto", probe: int = 0, seed: int = 0) -> dict[str, Any]:
    """Return the largest eigenvalue, the norm and the trace of the Hessian of the alphas' loss.

    The weight decay of the alphas' optimiser counts as a part of the loss, as in the authors' code.

    Args:
        context: a supernet.
        method: `"dense"`, `"lanczos"`, or the cheaper of both.
        probe: items of the batch that the loss is taken on; 0 for one batch of the search.
        seed: of the Lanczos iteration.
    """
    found = probe_of(context, probe).spectrum(method=method, weight_decay=context.recipe.architecture_decay, seed=seed)
    return {"largest": found.largest, "norm": found.norm, "trace": found.trace, "method": found.method}


def probe_of(context: Context, items: int = 0) -> Probe:
    """Return the probe of a supernet: its loss on the first items that its alphas were trained on."""
    return Probe(context.supernet.net, context.rule, context.plain, probe_batch(context, items))


def probe_batch(context: Context, items: int = 0) -> Batch:
    """Return the first items of the alphas' data as one batch, the same at every epoch; fewer where there are fewer."""
    feed = context.feeds["valid"]
    batch = feed.batch(0, 0)
    if not items:
        return batch
    inputs, targets, count = [batch.inputs], [batch.targets], len(batch.targets)
    for step in range(1, feed.steps):
        if count >= items:
            break
        batch = feed.batch(0, step)
        inputs.append(batch.inputs)
        targets.append(batch.targets)
        count += len(batch.targets)
    return Batch(torch.cat(inputs)[:items], torch.cat(targets)[:items])


__all__ = ["curvature", "probe_batch", "probe_of"]
