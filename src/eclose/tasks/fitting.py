"""Parts checked against what goes in and what comes out; targets brought into the shape the network gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eclose.algebra.errors import RequestError
from eclose.algebra.shapes import Classes, Input, Map, Output, Tokens, Values
from eclose.tasks.checks import check_finite, check_targets
from eclose.tasks.inference import example
from eclose.tasks.losses import Loss
from eclose.tasks.parts import Arrays, Batches, Items, known_labels

if TYPE_CHECKING:
    from torch import Tensor

    Source = Arrays | Items | Batches


def fitting(sources: Mapping[str, Source], input: Input, output: Output, loss: Loss, labels: bool) -> dict[str, Source]:
    """Return the parts, checked: arrays whole, datasets and loaders by their first item and the labels they list.

    Args:
        sources: the parts.
        input: what goes into the network.
        output: what it gives.
        loss: what compares it with the targets.
        labels: whether the targets are labels rather than numbers.
    """
    fitted: dict[str, Source] = {}
    kinds = {}
    for part, source in sources.items():
        if isinstance(source, Arrays):
            _check_inputs(source.inputs, input, part)
            targets = _shaped(source.inputs, source.targets, input, output, loss, labels, part)
            fitted[part] = Arrays(source.inputs, targets, source.rows)
            kinds[part] = source.inputs.dtype
        else:
            first, target = (values.unsqueeze(0) for values in example(source, part))
            check_finite(first, f"{part} inputs")
            check_finite(target, f"{part} targets")
            _check_inputs(first, input, part)
            _shaped(first, target, input, output, loss, labels, part)
            _check_listed(source, output, loss, part)
            fitted[part] = source
            kinds[part] = first.dtype
    for part, kind in kinds.items():
        if kind != kinds["train"] and not isinstance(input, Tokens):
            raise RequestError(
                f"the {part} inputs are {_name(kind)}, but the train inputs {_name(kinds['train'])}; uint8 inputs are "
                "divided by 255 and others are not, so all parts must be alike"
            )
    return fitted


def _name(kind: object) -> str:
    return str(kind).removeprefix("torch.")


def _check_listed(source: Items | Batches, output: Output, loss: Loss, part: str) -> None:
    labels = known_labels(source) if isinstance(output, Classes) else None
    if labels is not None:
        import torch

        check_targets(torch.as_tensor(labels), output, loss.name, part)


def _check_inputs(inputs: Tensor, input: Input, part: str) -> None:
    import torch

    shape = (input.length,) if isinstance(input, Tokens) else input
    if tuple(inputs.shape[1:]) != tuple(shape):
        raise RequestError(
            f"the {part} inputs have shape {tuple(inputs.shape[1:])} an item, but the task takes {tuple(shape)}"
        )
    if not isinstance(input, Tokens):
        if not inputs.is_floating_point() and inputs.dtype != torch.uint8:
            raise RequestError(
                f"the {part} inputs are {_name(inputs.dtype)}; give uint8 images or float32 values, or "
                "input=Tokens(length, vocab) for token sequences"
            )
    elif inputs.is_floating_point():
        raise RequestError(f"the {part} inputs must be whole-number tokens, not {_name(inputs.dtype)}")
    elif not 0 <= int(inputs.min()) <= int(inputs.max()) < input.vocab:
        raise RequestError(
            f"the {part} inputs hold tokens from {int(inputs.min())} to {int(inputs.max())}, but the vocabulary has "
            f"the tokens 0 to {input.vocab - 1}"
        )


def _shaped(
    inputs: Tensor, targets: Tensor, input: Input, output: Output, loss: Loss, labels: bool, part: str
) -> Tensor:
    """Return targets of the dtype and shape that the loss compares."""
    if not targets.is_floating_point():
        targets = targets.long() if labels else targets.float()
    if isinstance(output, Values) and output.count == 1 and targets.dim() == 1:
        targets = targets.unsqueeze(1)
    if isinstance(output, Map) and not labels and output.channels == 1 and targets.dim() == inputs.dim() - 1:
        targets = targets.unsqueeze(1)
    positions: tuple[int, ...] | None = None
    if isinstance(output, Map):
        positions = (*(() if labels else (output.channels,)), *inputs.shape[2:])
    elif isinstance(output, Tokens):
        positions = (input.length,) if isinstance(input, Tokens) else tuple(inputs.shape[2:])
        if output.length and positions != (output.length,):
            raise RequestError(f"the output has {output.length} positions, but the inputs {positions}")
    if positions is not None and tuple(targets.shape[1:]) != positions:
        kind = "a map" if isinstance(output, Map) else "a label a position"
        raise RequestError(
            f"the {part} targets have shape {tuple(targets.shape)}, but {kind} over these inputs needs "
            f"{(len(targets), *positions)}"
        )
    check_targets(targets, output, loss.name, part)
    return targets


__all__ = ["fitting"]
