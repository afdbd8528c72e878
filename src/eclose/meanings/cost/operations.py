"""How many multiply-adds each kind of layer takes for one example, and what counts as one.

The convention of the literature: one multiply-add is one product that is added to a sum in a convolution, a linear map
or a product of matrices (attention, context codes, per-sample kernels). Additions, activations, normalisations and
poolings are not counted. The number is half of what `torch.utils.flop_counter` counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from eclose.algebra.shapes import Shape

Settings: TypeAlias = Mapping[str, Any]
CostRule: TypeAlias = Callable[[Settings, Sequence[Shape], Shape], int]
"""`(settings, input shapes, output shape) -> multiply-adds for one example`."""


def nothing(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    """Count no products."""
    return 0


def conv(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    """Count a window of every input channel of its group for each output entry."""
    return prod(shape) * (shapes[0][0] // settings["groups"]) * prod(settings["kernel"])


def conv_transpose(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    """Count a kernel to every output channel of its group for each input entry."""
    return prod(shapes[0]) * (settings["channels"] // settings["groups"]) * prod(settings["kernel"])


def linear(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    """Count one product for each entry of the matrix."""
    return shapes[0][0] * shape[0]


def attention(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    """Count q^T k and the product with v; a causal mask saves nothing."""
    return 2 * shape[0] * prod(shape[1:]) ** 2


def context(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    """Count (H, positions) times (positions, T)."""
    return prod(shape) * prod(shapes[0][1:])


def apply_kernel(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    """Count one kernel for each output entry."""
    return prod(shape) * prod(shapes[1][1:])


PRODUCTS: dict[str, CostRule] = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "batch_norm": nothing,
    "instance_norm": nothing,
    "layer_norm": nothing,
    "channel_norm": nothing,
    "group_norm": nothing,
    "linear": linear,
    "max_pool": nothing,
    "avg_pool": nothing,
    "global_pool": nothing,
    "flatten": nothing,
    "function": nothing,
    "binary": nothing,
    "add": nothing,
    "concat": nothing,
    "slice": nothing,
    "shuffle": nothing,
    "shift": nothing,
    "subsample": nothing,
    "zero": nothing,
    "noise": nothing,
    "upsample": nothing,
    "resize": nothing,
    "embedding": nothing,
    "positions": nothing,
    "attention": attention,
    "softmax": nothing,
    "dropout": nothing,
    "context": context,
    "as_kernel": nothing,
    "pad_kernel": nothing,
    "apply_kernel": apply_kernel,
    "default_to": nothing,
    "mixture": nothing,
    "custom": nothing,  # the user's own: reported by name as not counted
}


@dataclass(frozen=True)
class Counting:
    """A convention for multiply-adds.

    Attributes:
        description: one line for people.
        rules: what is counted for each kind of layer.
        unused: whether layers that lead to no output are counted too.
    """

    description: str
    rules: Mapping[str, CostRule]
    unused: bool = False


def _entries(factor: int) -> CostRule:
    return lambda settings, shapes, shape: factor * prod(shape)


def _relu(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    return prod(shape) if settings["name"] == "relu" else 0


def _windows(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    return prod(shape) * prod(settings["kernel"])


def _whole_window(settings: Settings, shapes: Sequence[Shape], shape: Shape) -> int:
    return shape[0] * prod(size + 1 for size in shapes[0][1:])


COUNTINGS: dict[str, Counting] = {
    "products": Counting(
        "products of convolutions, linear maps and matrices, in layers that lead to the output", PRODUCTS
    ),
    "nasbench201": Counting(
        "as in tables of NAS-Bench-201: also 2 for each entry of a batch norm, 1 of a relu, a window for each of a "
        "pooling, the sizes plus 1 for each channel of the global pooling; layers that lead nowhere count",
        {
            **PRODUCTS,
            "batch_norm": _entries(2),
            "function": _relu,
            "max_pool": _windows,
            "avg_pool": _windows,
            "global_pool": _whole_window,
        },
        unused=True,
    ),
}
