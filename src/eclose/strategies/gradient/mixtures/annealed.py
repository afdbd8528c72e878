"""A scheduled number where a step can read it: a scalar on the device, filled anew at every epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from eclose.train.callbacks import Callback
from eclose.train.schedules import Schedule

if TYPE_CHECKING:
    from eclose.train.loop import Loop


class Annealed(Callback):
    """The value of a schedule as a scalar tensor; a captured step sees it change.

    Args:
        schedule: a function of the position.
        first: the value before any epoch.
    """

    def __init__(self, schedule: Schedule, first: float):
        self.schedule = schedule
        self._value = torch.tensor(first)

    def before_epoch(self, loop: Loop) -> None:
        """Take the value of the epoch."""
        if self._value.device != loop.device:
            self._value = self._value.to(loop.device)
        self._value.fill_(self.schedule(loop.position))

    def like(self, tensor: Tensor) -> Tensor:
        """Return the value on a tensor's device."""
        if self._value.device != tensor.device:
            self._value = self._value.to(tensor.device)
        return self._value

    def set(self, value: float) -> None:
        """Set the value by hand, outside of a training."""
        self._value.fill_(value)


__all__ = ["Annealed"]
