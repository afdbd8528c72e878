"""What a user's data show: the network's input and output, the usual loss and metric for such targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eclose.algebra.errors import RequestError
from eclose.algebra.shapes import Classes, Input, Map, Output, Tokens, Values
from eclose.tasks.checks import as_tensor
from eclose.tasks.losses import Loss
from eclose.tasks.metrics import Metric
from eclose.tasks.parts import Arrays, Batches, Items, known_labels

if TYPE_CHECKING:
    from torch import Tensor

Sources = Mapping[str, "Arrays | Items | Batches"]


def infer_input(sources: Sources) -> Input:
    """Return what goes into a network for these data."""
    import torch

    first = example(sources["train"], "train")[0]
    if first.dim() == 0:
        raise RequestError("each input must be an array, not a single number; give inputs of shape (items, features)")
    shape = tuple(first.shape)
    if first.dtype == torch.uint8 and len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] > 4:
        raise RequestError(
            f"inputs of shape {shape} look like images with the channels last; give them channels first "
            "(inputs.transpose(0, 3, 1, 2)), or say input= if they are"
        )
    if first.is_floating_point() or first.dtype == torch.uint8:
        return shape
    if len(shape) != 1:
        raise RequestError(
            f"inputs of dtype {str(first.dtype).removeprefix('torch.')} and shape {shape} are neither images (uint8), "
            "measurements (float32) nor token sequences (whole numbers, shape (length,)); convert them"
        )
    vocab = 0
    for part, source in sources.items():
        if not isinstance(source, Arrays):
            raise RequestError("give input=Tokens(length, vocab): the vocabulary cannot be read off a dataset")
        if int(source.inputs.min()) < 0:
            raise RequestError(f"the {part} inputs hold the token {int(source.inputs.min())}; tokens start at 0")
        vocab = max(vocab, int(source.inputs.max()) + 1)
    return Tokens(shape[0], vocab)


def widened(source: Arrays | Items | Batches, input: Input) -> Arrays | Items | Batches:
    """Return token arrays as int64, others as they are."""
    if isinstance(source, Arrays) and isinstance(input, Tokens) and not source.inputs.is_floating_point():
        return Arrays(source.inputs.long(), source.targets, source.rows)
    return source


NUMBERS = frozenset(
    {
        "binary-cross-entropy",
        "frame-negative-log-likelihood",
        "huber",
        "mean-absolute-error",
        "mean-squared-error",
        "relative-l2",
    }
)
"""Losses and metrics that compare numbers; the others that ship compare logits with labels."""
NUMBER_METRICS = NUMBERS | {"binary-accuracy"}
LABEL_METRICS = frozenset({"accuracy", "top-5-accuracy", "negative-log-likelihood"})


def infer_output(sources: Sources, input: Input, loss: Loss | None) -> Output:
    """Return what a network for these targets gives."""
    inputs, target = example(sources["train"], "train")
    spatial = () if isinstance(input, Tokens) else tuple(inputs.shape[1:])
    shape = tuple(target.shape)
    if target.is_floating_point() or (loss is not None and loss.name in NUMBERS):
        if spatial and shape == spatial:
            return Map(1)
        if spatial and len(shape) == len(spatial) + 1 and shape[1:] == spatial:
            return Map(shape[0])
        if len(shape) <= 1:
            return Values(shape[0] if shape else 1)
    elif not shape:
        return Classes(_labels(sources, "classes=10"))
    elif isinstance(input, Tokens) and shape == (input.length,):
        return Tokens(vocab=_labels(sources, "output=Tokens(vocab=...)"), length=0)
    elif spatial and shape == spatial:
        return Map(_labels(sources, "output=Map(...)"))
    raise RequestError(
        f"cannot tell what targets of shape {shape} for inputs of shape {tuple(inputs.shape)} mean; give output="
    )


def _labels(sources: Sources, wanted: str) -> int:
    """Return one more than the largest label of any part."""
    most = 0
    for part, source in sources.items():
        labels = source.targets if isinstance(source, Arrays) else known_labels(source)
        if labels is None:
            raise RequestError(f"the number of classes cannot be read off the {part} dataset; give {wanted}")
        most = max(most, int(labels.max()))
    if most == 0:
        raise RequestError(f"no label is above 0, so there is nothing to tell apart; if that is right give {wanted}")
    return most + 1


def gives_labels(sources: Sources, output: Output, loss: Loss | None) -> bool:
    """Return whether the targets are labels, to be compared with logits, rather than numbers."""
    if isinstance(output, Map):
        real = example(sources["train"], "train")[1].is_floating_point()
        return not real and (loss is None or loss.name not in NUMBERS)
    return isinstance(output, Classes | Tokens)


def usual_loss(labels: bool) -> str:
    """Return the loss that targets call for."""
    return "cross-entropy" if labels else "mean-squared-error"


def usual_metric(loss: Loss, output: Output, labels: bool) -> str:
    """Return the metric that goes with a loss."""
    if loss.name == "binary-cross-entropy":
        return "binary-accuracy"
    if loss.name in NUMBERS and loss.name != "huber":
        return loss.name
    if labels:
        return "accuracy"
    return "mean-squared-error" if isinstance(output, Map) and loss.name != "huber" else "mean-absolute-error"


def check_fit(loss: Loss, metric: Metric, output: Output, labels: bool) -> None:
    """Refuse a loss or metric that ships and compares something else than this output gives."""
    for thing, kind, number, label in (
        (loss, "loss", NUMBERS, frozenset({"cross-entropy"})),
        (metric, "metric", NUMBER_METRICS, LABEL_METRICS),
    ):
        if thing.name in label and not labels:
            raise RequestError(
                f"the {kind} {thing.name!r} compares logits with whole-number labels (int64), but the output {output} "
                "is compared with numbers"
            )
        if thing.name in number and labels:
            raise RequestError(
                f"the {kind} {thing.name!r} compares numbers, but the output {output} is compared with labels; "
                "for numbers give output=Values(...) or Map(...) and float targets"
            )


def example(source: Arrays | Items | Batches, part: str) -> tuple[Tensor, Tensor]:
    """Return the first item as tensors."""
    inputs, target = source.example()
    return as_tensor(inputs, f"{part} inputs"), as_tensor(target, f"{part} targets (first item)")
