"""What a rule of the numpy meaning is given: one layer of a program with its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from eclose.algebra.shapes import Shape

Array: TypeAlias = Any  # numpy.ndarray; numpy is imported where it is used


@dataclass(frozen=True)
class Layer:
    """One layer in evaluation mode.

    Attributes:
        settings: as in `program.layers`.
        parameters: arrays by name: trainable ones and buffers; a mixture's weights are `"weights"`.
        shape: the output's shape without the batch.
        random: a numpy generator, for layers that are random in evaluation too.
    """

    settings: Mapping[str, Any]
    parameters: Mapping[str, Array]
    shape: Shape
    random: Any


Rule: TypeAlias = Callable[..., Array]
"""`(layer, *inputs) -> output`, every array with the batch in front."""
