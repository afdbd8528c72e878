"""Metrics: a sum and a count a batch, added up on the device, so that a score needs no synchronisation a step.

A metric by name comes from `METRICS`; a user's own is a `Metric` or any function of outputs and targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eclose.algebra.catalogue import Catalogue
from eclose.algebra.errors import RequestError, did_you_mean

if TYPE_CHECKING:
    from torch import Tensor

DIRECTIONS = ("maximise", "minimise")


@dataclass(frozen=True)
class Metric:
    """What a score is.

    Attributes:
        name: for people and files.
        direction: `"maximise"` or `"minimise"`.
        measure: outputs and targets of a batch -> `(sum, count)`, two scalar tensors on their device; the score of a
            part is the total of the sums over the total of the counts.
        unit: printed behind the score, `"%"` for accuracies.
    """

    name: str
    direction: str
    measure: Callable[[Any, Any], tuple[Tensor, Tensor]]
    unit: str = ""

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            hint = did_you_mean(str(self.direction), DIRECTIONS)
            raise RequestError(f"a metric's direction is 'maximise' or 'minimise', not {self.direction!r}{hint}")
        if not callable(self.measure):
            raise RequestError(f"the metric {self.name!r} needs a function measure(outputs, targets)")

    def better(self, score: float, other: float) -> bool:
        """Return whether a score beats another; nothing is beaten by NaN."""
        return score > other if self.direction == "maximise" else score < other


METRICS: Catalogue[Metric] = Catalogue("metric")
for _name, _description in (
    ("accuracy", "share of labels predicted right, in percent"),
    ("top-5-accuracy", "share of labels among the five likeliest classes, in percent"),
    ("binary-accuracy", "share of yes/no targets predicted right by the sign of their logits, in percent"),
    ("mean-squared-error", "mean squared difference"),
    ("mean-absolute-error", "mean absolute difference"),
    ("relative-l2", "mean over the items of |prediction - target| / |target|"),
    ("negative-log-likelihood", "mean of -log p(label), natural logarithm"),
    ("frame-negative-log-likelihood", "yes/no targets: -log p summed over a frame's channels, mean over its frames"),
):
    METRICS.add(_name, f"eclose.tasks.measures:{_name.replace('-', '_').upper()}", _description)


@dataclass(frozen=True)
class _Averaged:
    """A user's function as a measure: it returns one number for the batch or one an item."""

    function: Callable[[Any, Any], Any]

    def __call__(self, outputs: Any, targets: Any) -> tuple[Tensor, Tensor]:
        import torch

        returned = self.function(outputs, targets)
        try:
            values = torch.as_tensor(returned, device=outputs.device).double()
        except (TypeError, ValueError, RuntimeError):
            kind = type(returned).__name__
            raise RequestError(f"a metric returns one number, or one an item, not {kind}") from None
        count = torch.tensor(float(len(targets)) if values.dim() == 0 else float(values.numel()), device=outputs.device)
        return (values * count if values.dim() == 0 else values.sum()), count


def as_metric(metric: str | Metric | Callable[[Any, Any], Any], direction: str | None = None) -> Metric:
    """Return a metric from its name, itself, or a function `(outputs, targets) -> number or one number an item`."""
    if isinstance(metric, str):
        metric = METRICS.get(metric)
    if isinstance(metric, Metric):
        if direction is not None and direction != metric.direction:
            raise RequestError(f"the metric {metric.name!r} says {metric.direction}, but direction={direction!r}")
        return metric
    if not callable(metric):
        raise RequestError(f"metric must be a name, a Metric or a function of outputs and targets, not {metric!r}")
    name = getattr(metric, "__name__", type(metric).__name__)
    if direction is None:
        raise RequestError(f"give direction='maximise' or 'minimise' for the metric function {name!r}")
    return Metric(name, direction, _Averaged(metric))


__all__ = ["DIRECTIONS", "METRICS", "Metric", "as_metric"]
