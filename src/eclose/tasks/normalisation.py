"""Mean and standard deviation a channel: given, or measured on the train part."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.shapes import Input, Tokens
from eclose.tasks.parts import Arrays

if TYPE_CHECKING:
    from eclose.tasks.parts import Batches, Items

Normalise = tuple[tuple[float, ...], tuple[float, ...]]


def normalisation(asked: Any, input: Input, train: Arrays | Items | Batches) -> Normalise | None:
    """Return the means and standard deviations that `normalise=` asks for.

    Args:
        asked: `(mean, std)`, each one number or one a channel; `"train"`; or None.
        input: what goes into the network.
        train: the part to measure.
    """
    if asked is None:
        return None
    if isinstance(input, Tokens):
        raise RequestError("token inputs are not normalised; leave normalise= out")
    if isinstance(asked, str):
        if asked != "train":
            hint = did_you_mean(asked, ["train"])
            raise RequestError(f"normalise is (mean, std) per channel, 'train' or None, not {asked!r}{hint}")
        if not isinstance(train, Arrays):
            raise RequestError("normalise='train' needs the train part as arrays or tensors; give (mean, std)")
        return measured(train)
    if not (isinstance(asked, tuple | list) and len(asked) == 2):
        raise RequestError(f"normalise is (mean, std) per channel, 'train' or None, not {asked!r}")
    channels = input[0]
    mean, std = _spread(asked[0], channels), _spread(asked[1], channels)
    if len(mean) != channels or len(std) != channels or not all(number > 0 for number in std):
        raise RequestError(f"normalise needs {channels} means and {channels} positive standard deviations")
    return mean, std


def _spread(numbers: Any, channels: int) -> tuple[float, ...]:
    try:
        spread = (float(numbers),) * channels if isinstance(numbers, Real) else tuple(float(value) for value in numbers)
    except (TypeError, ValueError):
        raise RequestError(f"normalise needs numbers, not {numbers!r}") from None
    if not all(math.isfinite(number) for number in spread):
        raise RequestError(f"normalise needs finite numbers, not {numbers!r}")
    return spread


def measured(source: Arrays) -> Normalise:
    """Return the mean and standard deviation per channel (of uint8 inputs: after division by 255)."""
    import torch

    inputs, rows = source.inputs, source.rows
    count = 0
    total = squares = torch.zeros(inputs.shape[1], dtype=torch.float64)
    axes = [0, *range(2, inputs.dim())]
    scale = 255.0 if inputs.dtype == torch.uint8 else 1.0
    for begin in range(0, len(source), 4096):
        chosen = inputs[begin : begin + 4096] if rows is None else inputs[rows[begin : begin + 4096]]
        values = chosen.double() / scale
        count += values.numel() // values.shape[1]
        total = total + values.sum(axes)
        squares = squares + values.square().sum(axes)
    mean = total / count
    std = (squares / count - mean**2).clamp_min(0.0).sqrt()
    std = torch.where(std > 1e-8, std, torch.ones_like(std))
    return tuple(mean.tolist()), tuple(std.tolist())


__all__ = ["Normalise", "measured", "normalisation"]
