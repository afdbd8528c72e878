"""The torch module of each kind of layer: one builder for every kind in `meanings.program.layers.LAYERS`.

Parameters and buffers have the names and shapes that the kinds' rules say; initial values are torch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from torch import nn

from eclose.algebra.declarations import resolve
from eclose.algebra.errors import RequestError, ShapeError
from eclose.algebra.shapes import Shape
from eclose.meanings.program.shape_rules import exceeds_volume, kernel_size
from eclose.operations import kernels, positional, shaping
from eclose.operations.functions import function
from eclose.operations.mixture import Mixture

Settings: TypeAlias = Mapping[str, Any]
Builder: TypeAlias = Callable[[Settings, Sequence[Shape]], nn.Module]

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
BATCH_NORMS = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
INSTANCE_NORMS = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}
MAX_POOLS = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVG_POOLS = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}


def _by_axes(modules: Mapping[int, Any], shape: Shape, what: str) -> Any:
    """Return the class for as many spatial axes as the shape has."""
    found = modules.get(len(shape) - 1)
    if found is None:
        raise ShapeError(f"torch has no {what} of {len(shape) - 1} spatial axes (input shape {shape})")
    return found


def _conv(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    keys = ("stride", "padding", "dilation", "groups", "bias")
    module: nn.Module = _by_axes(CONVOLUTIONS, shapes[0], "convolution")(
        shapes[0][0], settings["channels"], settings["kernel"], **{key: settings[key] for key in keys}
    )
    return module


def _conv_transpose(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    keys = ("stride", "padding", "output_padding", "groups", "bias")
    module: nn.Module = _by_axes(TRANSPOSED, shapes[0], "transposed convolution")(
        shapes[0][0], settings["channels"], settings["kernel"], **{key: settings[key] for key in keys}
    )
    return module


def _batch_norm(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    module: nn.Module = _by_axes(BATCH_NORMS, shapes[0], "batch normalisation")(
        shapes[0][0], affine=settings["affine"], eps=settings["eps"], momentum=settings["momentum"]
    )
    return module


def _instance_norm(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    module: nn.Module = _by_axes(INSTANCE_NORMS, shapes[0], "instance normalisation")(
        shapes[0][0], affine=settings["affine"]
    )
    return module


def _layer_norm(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    return nn.LayerNorm(shapes[0], elementwise_affine=settings["affine"])


def _channel_norm(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    return positional.ChannelNorm(shapes[0][0], settings["affine"])


def _group_norm(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    return nn.GroupNorm(settings["groups"], shapes[0][0], affine=settings["affine"])


def _linear(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    return nn.Linear(shapes[0][0], settings["features"], bias=settings["bias"])


def _max_pool(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    window = (settings["kernel"], settings["stride"], settings["padding"])
    module: nn.Module = _by_axes(MAX_POOLS, shapes[0], "maximum pooling")(*window)
    return module


def _avg_pool(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    window = (settings["kernel"], settings["stride"], settings["padding"])
    if exceeds_volume(settings["kernel"], shapes[0]):
        return shaping.VolumeMean(*window)
    module: nn.Module = _by_axes(AVG_POOLS, shapes[0], "mean pooling")(*window, count_include_pad=False)
    return module


def _pad_kernel(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    return kernels.PadKernel(kernel_size(settings["size"], len(shapes[0]) - 1))


def _custom(settings: Settings, shapes: Sequence[Shape]) -> nn.Module:
    made = resolve(settings["module"])(*shapes, **settings["kwargs"])
    if not isinstance(made, nn.Module):
        raise RequestError(f"{settings['module']} must make a torch module, not {type(made).__name__}")
    return made


BUILDERS: dict[str, Builder] = {
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "layer_norm": _layer_norm,
    "channel_norm": _channel_norm,
    "group_norm": _group_norm,
    "linear": _linear,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "global_pool": lambda settings, shapes: shaping.GlobalPool(settings["keep"]),
    "flatten": lambda settings, shapes: nn.Flatten(),
    "function": lambda settings, shapes: function(settings["name"], shapes[0]),
    "binary": lambda settings, shapes: function(settings["name"], shapes[0]),
    "add": lambda settings, shapes: shaping.Add(),
    "concat": lambda settings, shapes: shaping.Concat(),
    "slice": lambda settings, shapes: shaping.Slice(settings["begin"], settings["end"]),
    "shuffle": lambda settings, shapes: shaping.Shuffle(settings["groups"]),
    "shift": lambda settings, shapes: shaping.Shift(settings["padding"]),
    "subsample": lambda settings, shapes: shaping.Subsample(settings["stride"]),
    "zero": lambda settings, shapes: shaping.Zero(settings["stride"]),
    "noise": lambda settings, shapes: shaping.Noise(settings["stride"]),
    "upsample": lambda settings, shapes: shaping.Upsample(settings["factor"]),
    "resize": lambda settings, shapes: shaping.Resize(settings["size"]),
    "embedding": lambda settings, shapes: positional.Embedding(settings["vocab"], settings["dim"]),
    "positions": lambda settings, shapes: positional.Positions(shapes[0]),
    "attention": lambda settings, shapes: positional.Attention(settings["heads"], settings["causal"]),
    "softmax": lambda settings, shapes: positional.Softmax(),
    "dropout": lambda settings, shapes: nn.Dropout(settings["rate"]),
    "context": lambda settings, shapes: kernels.Context(),
    "as_kernel": lambda settings, shapes: kernels.AsKernel(settings["kernel"], settings["dilation"]),
    "pad_kernel": _pad_kernel,
    "apply_kernel": lambda settings, shapes: kernels.ApplyKernel(),
    "default_to": lambda settings, shapes: shaping.DefaultTo(),
    "mixture": lambda settings, shapes: Mixture(settings["alternatives"], settings["count"]),
    "custom": _custom,
}


def build_layer(kind: str, settings: Settings, input_shapes: Sequence[Shape]) -> nn.Module:
    """Return the module of one layer.

    Args:
        kind: a key of `BUILDERS`.
        settings: all settings of the kind.
        input_shapes: the shapes of its inputs, without the batch.
    """
    builder = BUILDERS.get(kind)
    if builder is None:
        raise RequestError(f"the torch meaning has no layer of the kind {kind!r}")
    return builder(settings, input_shapes)


__all__ = ["BUILDERS", "build_layer"]
