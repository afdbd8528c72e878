"""What a user's data show: the network's input and output, the usual loss and metric for such targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eclose.algebra.errors import RequestError
from eclose.algebra.shapes import Classes, Input, Map, Output, Tokens, Values
from eclose.tasks.checks import as_tensor
from eclose.tasks.losses import Loss
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


def widened(source: Arrays | Items | Batches, input: Input, part: str) -> Arrays | Items | Batches:
    """Return token arrays as int64 and other whole-number arrays refused or, as uint8, kept."""
    import torch

    if not isinstance(source, Arrays):
        return source
    inputs = source.inputs
    if isinstance(input, Tokens):
        if inputs.is_floating_point():
            raise RequestError(f"the {part} inputs must be whole-number tokens, not float32")
        return Arrays(inputs.long(), source.targets, source.rows)
    if not inputs.is_floating_point() and inputs.dtype != torch.uint8:
        raise RequestError(
            f"the {part} inputs are {str(inputs.dtype).removeprefix('torch.')}; give uint8 images or float32 values, "
            "or input=Tokens(length, vocab) for token sequences"
        )
    return source


def infer_output(sources: Sources, input: Input, loss: Loss | None) -> Output:
    """Return what a network for these targets gives."""
    inputs, target = example(sources["train"], "train")
    spatial = () if isinstance(input, Tokens) else tuple(inputs.shape[1:])
    shape = tuple(target.shape)
    if target.is_floating_point() or (loss is not None and loss.name == "binary-cross-entropy"):
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
    return most + 1


def usual_loss(source: Arrays | Items | Batches, output: Output) -> str:
    """Return the loss that such targets call for."""
    real = example(source, "train")[1].is_floating_point()
    return "mean-squared-error" if isinstance(output, Values) or (isinstance(output, Map) and real) else "cross-entropy"


def usual_metric(loss: Loss, output: Output) -> str:
    """Return the metric that goes with a loss."""
    if loss.name == "binary-cross-entropy":
        return "binary-accuracy"
    if loss.name in ("mean-squared-error", "mean-absolute-error", "relative-l2", "frame-negative-log-likelihood"):
        return loss.name
    if loss.name == "huber" or isinstance(output, Values):
        return "mean-absolute-error"
    if isinstance(output, Map) and loss.name != "cross-entropy":
        return "mean-squared-error"
    return "accuracy"


def example(source: Arrays | Items | Batches, part: str) -> tuple[Tensor, Tensor]:
    """Return the first item as tensors."""
    inputs, target = source.example()
    return as_tensor(inputs, f"{part} inputs"), as_tensor(target, f"{part} targets")
