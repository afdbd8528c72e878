"""The losses and metrics that ship, on tensors.

Outputs are channels first: logits (N, K), maps and token distributions (N, K, *positions). Every function refuses
shapes that would only meet by broadcasting, the classic silent error of regression.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from eclose.algebra.errors import ShapeError
from eclose.tasks.losses import Loss
from eclose.tasks.metrics import Metric

IGNORED = -100  # a label that counts neither in the loss nor in the accuracy


def _labels(outputs: Tensor, targets: Tensor) -> Tensor:
    expected = (outputs.shape[0], *outputs.shape[2:])
    if outputs.dim() < 2 or tuple(targets.shape) != expected:
        raise ShapeError(
            f"outputs of shape {tuple(outputs.shape)} need labels of shape {expected}, not {tuple(targets.shape)}"
        )
    if targets.is_floating_point():
        raise ShapeError(f"labels must be whole numbers, not {targets.dtype}")
    return targets.long()


def _aligned(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the targets in the outputs' shape and dtype; a missing axis of one channel is added."""
    if targets.dim() == outputs.dim() - 1 and outputs.shape[1] == 1:
        targets = targets.unsqueeze(1)
    if targets.shape != outputs.shape:
        raise ShapeError(f"outputs of shape {tuple(outputs.shape)} do not fit targets of shape {tuple(targets.shape)}")
    return targets.to(outputs.dtype)


def cross_entropy(outputs: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Cross-entropy of logits (N, K, ...) against labels (N, ...), mean over all labels."""
    return functional.cross_entropy(
        outputs.float(), _labels(outputs, targets), label_smoothing=label_smoothing, ignore_index=IGNORED
    )


def binary_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy of logits against yes/no targets of the same shape."""
    outputs = outputs.float()
    return functional.binary_cross_entropy_with_logits(outputs, _aligned(outputs, targets))


def mean_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean squared difference."""
    return functional.mse_loss(outputs.float(), _aligned(outputs, targets).float())


def mean_absolute_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean absolute difference."""
    return functional.l1_loss(outputs.float(), _aligned(outputs, targets).float())


def huber(outputs: Tensor, targets: Tensor) -> Tensor:
    """Squared near zero, absolute beyond 1."""
    return functional.huber_loss(outputs.float(), _aligned(outputs, targets).float())


def _relative(outputs: Tensor, targets: Tensor) -> Tensor:
    targets = _aligned(outputs, targets).float().flatten(1)
    return (outputs.float().flatten(1) - targets).norm(dim=1) / targets.norm(dim=1).clamp_min(1e-12)


def relative_l2(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean over the items of |prediction - target| / |target|."""
    return _relative(outputs, targets).mean()


def _frames(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed -log p of all frames and their number; frames marked -1 lie behind a sequence's end."""
    outputs, targets = outputs.float(), _aligned(outputs, targets).float()
    known = (targets >= 0).float()
    values = functional.binary_cross_entropy_with_logits(outputs, targets.clamp_min(0.0), weight=known, reduction="sum")
    return values, known[:, 0].sum()


def frame_negative_log_likelihood(outputs: Tensor, targets: Tensor) -> Tensor:
    """Yes/no targets (N, K, L): -log p summed over the K channels, mean over all frames."""
    total, count = _frames(outputs, targets)
    return total / count.clamp_min(1.0)


CROSS_ENTROPY = Loss("cross-entropy", cross_entropy)
BINARY_CROSS_ENTROPY = Loss("binary-cross-entropy", binary_cross_entropy)
MEAN_SQUARED_ERROR_LOSS = Loss("mean-squared-error", mean_squared_error)
MEAN_ABSOLUTE_ERROR_LOSS = Loss("mean-absolute-error", mean_absolute_error)
HUBER = Loss("huber", huber)
RELATIVE_L2_LOSS = Loss("relative-l2", relative_l2)
FRAME_NEGATIVE_LOG_LIKELIHOOD_LOSS = Loss("frame-negative-log-likelihood", frame_negative_log_likelihood)


def _top(outputs: Tensor, targets: Tensor, k: int) -> tuple[Tensor, Tensor]:
    labels = _labels(outputs, targets)
    known = labels != IGNORED
    likeliest = outputs.topk(min(k, outputs.shape[1]), dim=1).indices
    right = (likeliest == labels.unsqueeze(1)).any(dim=1) & known
    return 100.0 * right.sum().float(), known.sum().float()


def accuracy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """100 for every label predicted right."""
    labels = _labels(outputs, targets)
    known = labels != IGNORED
    right = (outputs.argmax(dim=1) == labels) & known
    return 100.0 * right.sum().float(), known.sum().float()


def top_5_accuracy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """100 for every label among the five likeliest classes."""
    return _top(outputs, targets, 5)


def binary_accuracy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """100 for every yes/no target that its logit's sign predicts."""
    right = (outputs > 0) == (_aligned(outputs, targets) > 0.5)
    return 100.0 * right.sum().float(), _number(right)


def _squared(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return (outputs.float() - _aligned(outputs, targets).float()).square().sum(), _number(outputs)


def _absolute(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return (outputs.float() - _aligned(outputs, targets).float()).abs().sum(), _number(outputs)


def _relative_sum(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    values = _relative(outputs, targets)
    return values.sum(), _number(values)


def _likelihood(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    labels = _labels(outputs, targets)
    total = functional.cross_entropy(outputs.float(), labels, ignore_index=IGNORED, reduction="sum")
    return total, (labels != IGNORED).sum().float()


def _number(values: Tensor) -> Tensor:
    return torch.full((), float(values.numel()), device=values.device)


ACCURACY = Metric("accuracy", "maximise", accuracy, unit="%")
TOP_5_ACCURACY = Metric("top-5-accuracy", "maximise", top_5_accuracy, unit="%")
BINARY_ACCURACY = Metric("binary-accuracy", "maximise", binary_accuracy, unit="%")
MEAN_SQUARED_ERROR = Metric("mean-squared-error", "minimise", _squared)
MEAN_ABSOLUTE_ERROR = Metric("mean-absolute-error", "minimise", _absolute)
RELATIVE_L2 = Metric("relative-l2", "minimise", _relative_sum)
NEGATIVE_LOG_LIKELIHOOD = Metric("negative-log-likelihood", "minimise", _likelihood)
FRAME_NEGATIVE_LOG_LIKELIHOOD = Metric("frame-negative-log-likelihood", "minimise", _frames)
