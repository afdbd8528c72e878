"""Batch-norm statistics of another network than the one they were gathered with.

A supernet's running means and variances belong to its mixture. A sub-network with the same weights sees other
activations, and scored with those statistics it is near chance; they are measured anew for it, on train data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from eclose.algebra.errors import RequestError


def recalibrate(model: nn.Module, batches: Iterable[Any], forward: Callable[[Any], Any]) -> None:
    """Measure the running statistics of a model's batch norms anew, as plain means over batches.

    Only the batch norms are in training mode meanwhile: dropout would widen the variances that are measured, and draw
    random numbers. A batch norm that no batch reaches keeps its statistics. Modes and momenta are as before
    afterwards, and where `forward` fails the statistics are too.

    Args:
        model: whose batch norms are measured; those that keep no running statistics have none to measure.
        batches: at least one.
        forward: passes one batch through the model.
    """
    layers = _layers(model)
    kept = _copies(layers)
    momenta = [layer.momentum for layer in layers]
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # torch's word for the mean of all batches, each with the same weight
            layer.train()
        seen = 0
        with torch.no_grad():
            for batch in batches:
                forward(batch)
                seen += 1
        if not seen:
            raise RequestError("batch-norm statistics are measured on at least one batch; there was none")
        unseen = [layer.num_batches_tracked.item() == 0 for layer in layers]  # type: ignore[union-attr]
    except BaseException:
        _put_back(layers, kept)
        raise
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        for module, mode in modes:
            module.training = mode
    _put_back(
        [layer for layer, missed in zip(layers, unseen, strict=True) if missed],
        [copies for copies, missed in zip(kept, unseen, strict=True) if missed],
    )


@contextmanager
def recalibrated(model: nn.Module, batches: Iterable[Any], forward: Callable[[Any], Any]) -> Iterator[None]:
    """Recalibrate a model for a `with` block; the statistics from before it are back, bit for bit, after it.

    Args:
        model: as for `recalibrate`.
        batches: as for `recalibrate`.
        forward: as for `recalibrate`.
    """
    with preserved(model):
        recalibrate(model, batches, forward)
        yield


@contextmanager
def preserved(model: nn.Module) -> Iterator[None]:
    """Put a model's batch-norm statistics back, bit for bit, after a `with` block that may change them."""
    layers = _layers(model)
    kept = _copies(layers)
    try:
        yield
    finally:
        _put_back(layers, kept)


def _layers(model: nn.Module) -> list[_BatchNorm]:
    return [
        module
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats and module.running_mean is not None
    ]


def _copies(layers: list[_BatchNorm]) -> list[dict[str, torch.Tensor]]:
    return [{name: buffer.detach().clone() for name, buffer in layer.named_buffers(recurse=False)} for layer in layers]


def _put_back(layers: list[_BatchNorm], copies: list[dict[str, torch.Tensor]]) -> None:
    """Copy into the buffers rather than replace them: others may hold on to them."""
    with torch.no_grad():
        for layer, kept in zip(layers, copies, strict=True):
            for name, buffer in layer.named_buffers(recurse=False):
                buffer.copy_(kept[name])


__all__ = ["preserved", "recalibrate", "recalibrated"]
