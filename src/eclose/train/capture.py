"""A whole training step as one CUDA graph: gathering the batch, augmentation, forward, backward, clipping, optimisers,
metrics.

A replay costs one launch where the eager step costs thousands, so small networks train several times faster. What
changes from step to step lies in device memory that the graph reads: the items of the batch, the epoch's key, learning
rates, other scheduled scalars, the random generator's offset. What changes the work itself (a part that becomes active,
a drop-path rate) makes another variant, which is captured anew. The steps before a capture are ordinary steps of the
training on the capture's stream; they initialise libraries and optimiser states, and the last of them shows whether the
step waits for the device anywhere, which a graph cannot. Numbers are those of the eager step.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Hashable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from eclose.train.data import ResidentFeed

if TYPE_CHECKING:
    from eclose.train.loop import Loop

WARM_STEPS = 3  # as many as torch recommends before a capture


def obstacle(loop: Loop) -> str:
    """Return why a loop's step cannot be captured, or nothing."""
    if loop.device.type != "cuda":
        return f"the device is {loop.device.type}; only CUDA has graphs"
    if loop.scaler is not None:
        return "float16 gradients are scaled by a factor that the host adapts; bfloat16 can be captured"
    for name, feed in loop.feeds.items():
        if not isinstance(feed, ResidentFeed):
            return f"the {name} data come from a loader and not from the device's memory"
    for group in loop.groups.values():
        if group.obstacle:
            return group.obstacle
    return ""


class CapturedStep:
    """Takes a loop's steps: some eagerly to warm up, then by replaying their graph.

    Args:
        loop: a loop without an `obstacle`; its feeds are resident.

    Attributes:
        reason: why steps are eager after all, or nothing.
    """

    def __init__(self, loop: Loop):
        self.loop = loop
        self.reason = ""
        self._feeds: dict[str, ResidentFeed] = {
            name: feed for name, feed in loop.feeds.items() if isinstance(feed, ResidentFeed)
        }
        self._items: dict[str, Tensor] = {}
        self._keys: dict[str, Tensor] = {}
        for name, feed in self._feeds.items():
            self._items[name] = torch.zeros(feed.batch_size, dtype=torch.long, device=loop.device)
            self._keys[name] = torch.zeros((), dtype=torch.long, device=loop.device)
        self._epochs: dict[str, int] = {}
        self._stream = torch.cuda.Stream(loop.device)
        self.forget()

    def forget(self) -> None:
        """Drop the graph: what it points to was replaced."""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = 0
        self._variant: Hashable = None

    def __call__(self) -> None:
        """Take the step at the loop's position."""
        loop = self.loop
        variant = loop.variant()
        if variant != self._variant:
            self.forget()
            self._variant = variant
        whole = True
        for name in loop.needed():
            feed = self._feeds[name]
            epoch, step = loop.address(name)
            items = feed.items(epoch, step)
            if len(items) < feed.batch_size:
                whole = False
                break
            self._items[name].copy_(items)
            if self._epochs.get(name) != epoch:
                self._keys[name].fill_(feed.key(epoch))
                self._epochs[name] = epoch
        if not whole or self.reason:
            loop.take_step(loop.batches())
        elif self._graph is not None:
            self._graph.replay()
        elif self._warm < WARM_STEPS:
            self._warm_up()
        else:
            self._capture()

    def _warm_up(self) -> None:
        self._warm += 1
        current = torch.cuda.current_stream(self.loop.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            watched = self._warm == WARM_STEPS
            before = torch.cuda.get_sync_debug_mode()
            try:
                torch.cuda.set_sync_debug_mode("warn" if watched else before)
                self._static_step()
            finally:
                torch.cuda.set_sync_debug_mode(before)
        current.wait_stream(self._stream)
        for warning in caught:
            if "synchronizing CUDA operation" in str(warning.message):
                where = f"{warning.filename}, line {warning.lineno}"
                self.reason = f"the step waits for the device ({where})"
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)

    def _capture(self) -> None:
        self.loop.clear_gradients()  # the backward pass then allocates them in the graph's own memory
        graph = torch.cuda.CUDAGraph()
        gc.collect()
        collecting = gc.isenabled()
        gc.disable()  # an older graph that is freed meanwhile would spoil this one
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self._static_step()
        except RuntimeError as error:
            torch.cuda.synchronize(self.loop.device)
            self.reason = f"the step could not be captured: {str(error).splitlines()[0]}"
            self.loop.clear_gradients()
            self.loop.take_step(self.loop.batches())
            return
        finally:
            if collecting:
                gc.enable()
        self._graph = graph
        graph.replay()

    def _static_step(self) -> None:
        batches = {name: self._feeds[name].gather(self._items[name], self._keys[name]) for name in self.loop.needed()}
        self.loop.take_step(batches)


__all__ = ["WARM_STEPS", "CapturedStep", "obstacle"]
