"""Losses by name, and a user's own function as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eclose.algebra.catalogue import Catalogue
from eclose.algebra.errors import RequestError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Loss:
    """A loss with its name; calling it gives the mean over a batch.

    Keyword arguments go to the function: `label_smoothing=` for `cross-entropy`.
    """

    name: str
    function: Callable[..., Any]

    def __call__(self, outputs: Any, targets: Any, **settings: Any) -> Tensor:
        """Return the mean loss of a batch."""
        value: Tensor = self.function(outputs, targets, **settings)
        if not hasattr(value, "backward"):
            raise RequestError(f"the loss {self.name!r} returned {type(value).__name__}; it must return a tensor")
        return value if value.dim() == 0 else value.mean()


LOSSES: Catalogue[Loss] = Catalogue("loss")
for _name, _constant, _description in (
    ("cross-entropy", "CROSS_ENTROPY", "logits against labels"),
    ("binary-cross-entropy", "BINARY_CROSS_ENTROPY", "logits against yes/no targets of the same shape"),
    ("mean-squared-error", "MEAN_SQUARED_ERROR_LOSS", "mean squared difference"),
    ("mean-absolute-error", "MEAN_ABSOLUTE_ERROR_LOSS", "mean absolute difference"),
    ("huber", "HUBER", "squared near zero, absolute beyond 1"),
    ("relative-l2", "RELATIVE_L2_LOSS", "mean over the items of |prediction - target| / |target|"),
    (
        "frame-negative-log-likelihood",
        "FRAME_NEGATIVE_LOG_LIKELIHOOD_LOSS",
        "yes/no targets: -log p summed over a frame's channels, mean over its frames",
    ),
):
    LOSSES.add(_name, f"eclose.tasks.measures:{_constant}", _description)


def as_loss(loss: str | Loss | Callable[[Any, Any], Any]) -> Loss:
    """Return a loss from its name, itself, or any function `(outputs, targets) -> tensor`."""
    if isinstance(loss, str):
        return LOSSES.get(loss)
    if isinstance(loss, Loss):
        return loss
    if not callable(loss):
        raise RequestError(f"loss must be a name or a function of outputs and targets, not {loss!r}")
    return Loss(getattr(loss, "__name__", type(loss).__name__), loss)


__all__ = ["LOSSES", "Loss", "as_loss"]
