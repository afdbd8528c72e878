"""What one training step does: a sequence of parts, each of which may move some parameter groups.

A single-level step is one `Descent` of all groups on the training batch. A bilevel step is two: the alphas on a
validation batch, then the weights on a training batch. Any other part - an unrolled architecture step, a score-function
estimate, a perturbation - is a callable with the same three names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from eclose.algebra.errors import RequestError
from eclose.train.data import Batch
from eclose.train.schedules import Position

if TYPE_CHECKING:
    from eclose.train.loop import Loop


class Outcome(NamedTuple):
    """The loss of a batch and what the model said about it."""

    loss: Tensor
    outputs: Any


Objective = Callable[[nn.Module, Batch], Outcome]


@dataclass(frozen=True)
class TaskObjective:
    """A task's loss, with label smoothing and auxiliary heads.

    Args:
        loss: outputs and targets to a mean.
        label_smoothing: the share of every target that is spread evenly over the classes (Szegedy et al. 2016).
        auxiliary: the weight of the same loss at side outputs of the output's shape, or 0.
    """

    loss: Callable[[Any, Any], Tensor]
    label_smoothing: float = 0.0
    auxiliary: float = 0.0

    def __call__(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return the loss of a batch."""
        if not (self.auxiliary and model.training and has_taps(model)):
            outputs = model(batch.inputs)
            return Outcome(self._loss(outputs, batch.targets), outputs)
        outputs, taps = model(batch.inputs, taps=True)
        loss = self._loss(outputs, batch.targets)
        for side in taps.values():
            if side.shape == outputs.shape:
                loss = loss + self.auxiliary * self._loss(side, batch.targets)
        return Outcome(loss, outputs)

    def _loss(self, outputs: Any, targets: Any) -> Tensor:
        loss = self.loss(outputs, targets)
        if not self.label_smoothing:
            return loss
        even = -functional.log_softmax(outputs, 1).mean()
        return (1.0 - self.label_smoothing) * loss + self.label_smoothing * even


def has_taps(model: nn.Module) -> bool:
    """Return whether a model has side outputs, that is understands `model(x, taps=True)`."""
    program = getattr(model, "program", None)
    return bool(getattr(program, "taps", None) or getattr(model, "taps", None))


class Part(Protocol):
    """One part of a step.

    Attributes:
        name: under which its loss and score are reported; `"train"` is the training's own.
        feeds: the feeds whose batches it needs; its outcome is measured on the first.
    """

    @property
    def name(self) -> str:
        """Under which its figures are reported."""
        ...

    @property
    def feeds(self) -> tuple[str, ...]:
        """Whose batches it needs."""
        ...

    def active(self, position: Position) -> bool:
        """Return whether it takes place at a position."""
        ...

    def __call__(self, loop: Loop, batches: Mapping[str, Batch]) -> Outcome:
        """Do its work."""
        ...


@dataclass(frozen=True)
class Descent:
    """One gradient step of some parameter groups on the loss of one feed's batch.

    Only gradients of these groups are computed, so no step can see a stale one of the others.

    Args:
        objective: model and batch to a loss.
        groups: the groups that move.
        feed: whose batch the loss is taken on.
        start: the first epoch in which it happens (alphas are often frozen at first).
    """

    objective: Objective
    groups: tuple[str, ...] = ("weights",)
    feed: str = "train"
    start: int = 0

    @property
    def name(self) -> str:
        """The feed's name."""
        return self.feed

    @property
    def feeds(self) -> tuple[str, ...]:
        """The one feed."""
        return (self.feed,)

    def active(self, position: Position) -> bool:
        """Return whether the part takes place at a position."""
        return position.epoch >= self.start

    def __call__(self, loop: Loop, batches: Mapping[str, Batch]) -> Outcome:
        """Take the step."""
        outcome = loop.backward(self.objective, batches[self.feed], self.groups)
        loop.update(self.groups)
        return outcome


@dataclass(frozen=True)
class Step:
    """Parts in their order."""

    parts: tuple[Part, ...]
    _by_epoch: dict[int, tuple[Part, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if not names or len(set(names)) < len(names):
            raise RequestError(f"a step needs parts with names of their own, not {names}")

    def active(self, position: Position) -> tuple[Part, ...]:
        """Return the parts that take place at a position; what is active changes between epochs only."""
        if position.epoch not in self._by_epoch:
            self._by_epoch.clear()
            self._by_epoch[position.epoch] = tuple(part for part in self.parts if part.active(position))
        return self._by_epoch[position.epoch]


def single_level(objective: Objective, groups: Sequence[str] = ("weights",)) -> Step:
    """Return the step that moves all groups on the training loss."""
    return Step((Descent(objective, tuple(groups)),))


def bilevel(
    objective: Objective,
    *,
    upper: Sequence[str] = ("alphas",),
    lower: Sequence[str] = ("weights",),
    upper_first: bool = True,
    start: int = 0,
) -> Step:
    """Return the first-order bilevel step of DARTS (Liu et al. 2019).

    Args:
        objective: the loss of both levels.
        upper: groups that move on the validation batch.
        lower: groups that move on the training batch.
        upper_first: DARTS's order; NAS-Bench-201's reference moves the weights first.
        start: the first epoch in which the upper groups move.
    """
    above = Descent(objective, tuple(upper), "valid", start)
    below = Descent(objective, tuple(lower), "train")
    return Step((above, below) if upper_first else (below, above))


def split(batch: Batch, pieces: int) -> list[Batch]:
    """Cut a batch into at most `pieces` pieces of nearly the same size."""
    if pieces == 1 or not isinstance(batch.inputs, Tensor):
        return [batch]
    inputs = torch.tensor_split(batch.inputs, min(pieces, len(batch.inputs)))
    targets = torch.tensor_split(batch.targets, len(inputs))
    return [Batch(x, y) for x, y in zip(inputs, targets, strict=True)]


__all__ = [
    "Descent",
    "Objective",
    "Outcome",
    "Part",
    "Step",
    "TaskObjective",
    "bilevel",
    "has_taps",
    "single_level",
    "split",
]
