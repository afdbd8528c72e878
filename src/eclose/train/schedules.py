"""Schedules: a value as a pure function of where the training is.

Nothing is stepped, so nothing can be shifted by a resume or by an order of calls: the value of epoch 7 is
`schedule(Position(epoch=7, ...))`, whoever asks and whenever. They serve learning rates, drop-path rates,
temperatures and perturbation radii alike.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eclose.algebra.errors import RequestError

Unit: TypeAlias = Literal["epoch", "step"]


@dataclass(frozen=True)
class Position:
    """Where a training is: the step about to be taken.

    Attributes:
        epoch: finished epochs.
        step: finished steps of this epoch.
        epochs: epochs of the whole training.
        steps: steps of one epoch.
    """

    epoch: int
    step: int
    epochs: int
    steps: int

    @property
    def done(self) -> int:
        """Finished steps of the whole training."""
        return self.epoch * self.steps + self.step

    @property
    def total(self) -> int:
        """Steps of the whole training."""
        return self.epochs * self.steps

    def fraction(self, unit: Unit) -> float:
        """Return how much of the training is done, counted in whole epochs or in steps."""
        return self.epoch / self.epochs if unit == "epoch" else self.done / self.total


Schedule: TypeAlias = Callable[[Position], float]


@dataclass(frozen=True)
class Constant:
    """The same value always."""

    value: float

    def __call__(self, position: Position) -> float:
        """Return the value."""
        return self.value


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from `high` down to `low` (Loshchilov and Hutter 2017), without restarts.

    Args:
        high: the value of the first epoch (or step).
        low: the value that would follow the last one.
        unit: whether it changes every epoch or every step.
        period: epochs from high to low when that is not the whole training.
    """

    high: float
    low: float = 0.0
    unit: Unit = "epoch"
    period: int | None = None

    def __call__(self, position: Position) -> float:
        """Return the value at a position."""
        part = _part(position, self.unit, self.period)
        return self.low + (self.high - self.low) * (1.0 + math.cos(math.pi * part)) / 2.0


@dataclass(frozen=True)
class Linear:
    """A straight line from `high` to `low`, which may also be the larger one (a ramp); parameters as for `Cosine`."""

    high: float
    low: float = 0.0
    unit: Unit = "epoch"
    period: int | None = None

    def __call__(self, position: Position) -> float:
        """Return the value at a position."""
        return self.high + (self.low - self.high) * _part(position, self.unit, self.period)


@dataclass(frozen=True)
class Exponential:
    """`high * factor ** epoch`."""

    high: float
    factor: float

    def __call__(self, position: Position) -> float:
        """Return the value at a position."""
        return self.high * self.factor**position.epoch


@dataclass(frozen=True)
class Steps:
    """`high`, multiplied by `factor` at each milestone (in finished epochs or steps)."""

    high: float
    milestones: tuple[int, ...]
    factor: float = 0.1
    unit: Unit = "epoch"

    def __call__(self, position: Position) -> float:
        """Return the value at a position."""
        done = position.epoch if self.unit == "epoch" else position.done
        return self.high * self.factor ** bisect_right(sorted(self.milestones), done)


@dataclass(frozen=True)
class Warmup:
    """The first `epochs` rise evenly to the value `then` starts with: epoch e has (e + 1) / epochs of it.

    What follows is `then` over the remaining epochs, as in the large-batch recipes of PC-DARTS (Xu et al. 2020).
    With `unit="step"` the rise is step by step.
    """

    epochs: int
    then: Schedule
    unit: Unit = "epoch"

    def __call__(self, position: Position) -> float:
        """Return the value at a position."""
        rest = max(1, position.epochs - self.epochs)
        if position.epoch >= self.epochs:
            return self.then(Position(position.epoch - self.epochs, position.step, rest, position.steps))
        peak = self.then(Position(0, 0, rest, position.steps))
        if self.unit == "epoch":
            return peak * (position.epoch + 1) / self.epochs
        return peak * (position.done + 1) / (self.epochs * position.steps)


def _part(position: Position, unit: Unit, period: int | None) -> float:
    if unit not in ("epoch", "step"):
        raise RequestError(f"a schedule changes every 'epoch' or every 'step', not {unit!r}")
    if period is None:
        return position.fraction(unit)
    done = position.epoch if unit == "epoch" else position.done / position.steps
    return min(1.0, done / period)


__all__ = ["Constant", "Cosine", "Exponential", "Linear", "Position", "Schedule", "Steps", "Unit", "Warmup"]
