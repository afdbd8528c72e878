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
    """Return the mean and standard deviation per channel (of uint8 inputs: after division by 255).

    Sums are numpy's, in float64 or in whole numbers: their bits do not depend on the number of threads, and a task's
    fingerprint must be the same in every process.
    """
    import numpy as np
    import torch

    inputs, rows = source.inputs, source.rows
    whole = inputs.dtype == torch.uint8
    kind, scale = (np.int64, 255.0) if whole else (np.float64, 1.0)
    axes = (0, *range(2, inputs.dim()))
    count = 0
    total = squares = np.zeros(inputs.shape[1], dtype=kind)
    for begin in range(0, len(source), 4096):
        chosen = inputs[begin : begin + 4096] if rows is None else inputs[rows[begin : begin + 4096]]
        values = chosen.cpu().numpy().astype(kind)
        count += values.size // values.shape[1]
        total = total + values.sum(axes)
        squares = squares + np.square(values).sum(axes)
    mean = total / (count * scale)
    variance = squares / (count * scale**2) - mean**2
    std = np.sqrt(np.maximum(variance, 0.0))
    return tuple(mean.tolist()), tuple(np.where(std > 1e-8, std, 1.0).tolist())


__all__ = ["Normalise", "measured", "normalisation"]
