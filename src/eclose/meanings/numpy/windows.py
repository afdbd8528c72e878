"""Convolutions, pooling, resampling and per-sample kernels in numpy: one loop over output positions each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from eclose.algebra.shapes import Shape
from eclose.meanings.numpy.layer import Array, Layer
from eclose.meanings.program.shape_rules import kernel_size


def padded(x: Array, padding: Shape, value: float = 0.0) -> Array:
    """Return x with `padding` entries of a value before and behind every spatial axis."""
    widths = [(0, 0), (0, 0), *((p, p) for p in padding)]
    return np.pad(x, widths, constant_values=value)


def positions(sizes: Shape) -> Iterator[Shape]:
    """Yield every position of a grid."""
    return product(*(range(size) for size in sizes))


def window(position: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> tuple[slice, ...]:
    """Return the slices of the padded input that an output position looks at."""
    return tuple(
        slice(at * s, at * s + d * (k - 1) + 1, d)
        for at, k, s, d in zip(position, kernel, stride, dilation, strict=True)
    )


def conv(layer: Layer, x: Array) -> Array:
    """Return the (grouped, dilated) convolution, which does not flip its kernel."""
    settings = layer.settings
    weight, bias, groups = layer.parameters["weight"], layer.parameters.get("bias"), settings["groups"]
    image = padded(x, settings["padding"])
    result: Array = np.empty((x.shape[0], *layer.shape))
    inner, outer = x.shape[1] // groups, layer.shape[0] // groups
    flat = weight.reshape(groups, outer, -1)
    for position in positions(layer.shape[1:]):
        seen = image[:, :, *window(position, settings["kernel"], settings["stride"], settings["dilation"])]
        seen = seen.reshape(len(x), groups, inner * int(np.prod(settings["kernel"])))
        result[:, :, *position] = np.einsum("goi,ngi->ngo", flat, seen).reshape(len(x), -1)
    return result if bias is None else result + over_positions(bias, result)


def conv_transpose(layer: Layer, x: Array) -> Array:
    """Return the transposed convolution: every input position adds a kernel to the output."""
    settings = layer.settings
    weight, bias, groups = layer.parameters["weight"], layer.parameters.get("bias"), settings["groups"]
    kernel, stride, padding = settings["kernel"], settings["stride"], settings["padding"]
    sizes = [n + 2 * p for n, p in zip(layer.shape[1:], padding, strict=True)]
    reach = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], stride, kernel, strict=True)]
    canvas = np.zeros((x.shape[0], layer.shape[0], *(max(n, r) for n, r in zip(sizes, reach, strict=True))))
    inner, outer = x.shape[1] // groups, layer.shape[0] // groups
    grouped = weight.reshape(groups, inner, outer, *kernel)
    for position in positions(x.shape[2:]):
        values = x[:, :, *position].reshape(len(x), groups, inner)
        stamp = np.einsum("ngi,gio...->ngo...", values, grouped).reshape(len(x), layer.shape[0], *kernel)
        canvas[:, :, *window(position, kernel, stride, (1,) * len(kernel))] += stamp
    result = canvas[:, :, *(slice(p, p + n) for n, p in zip(layer.shape[1:], padding, strict=True))]
    return result if bias is None else result + over_positions(bias, result)


def over_positions(values: Array, like: Array) -> Array:
    """Return one number a channel, shaped to spread over positions."""
    return values.reshape(1, -1, *(1,) * (like.ndim - 2))


def max_pool(layer: Layer, x: Array) -> Array:
    """Return the maximum of each window; padding never wins."""
    return _pool(layer, padded(x, layer.settings["padding"], -np.inf), np.max)


def avg_pool(layer: Layer, x: Array) -> Array:
    """Return the mean of each window over the entries that are no padding."""
    total = _pool(layer, padded(x, layer.settings["padding"]), np.sum)
    count = _pool(layer, padded(np.ones_like(x), layer.settings["padding"]), np.sum)
    return total / count


def _pool(layer: Layer, image: Array, reduce: Callable[..., Array]) -> Array:
    settings = layer.settings
    axes = tuple(range(2, image.ndim))
    result: Array = np.empty((image.shape[0], *layer.shape))
    for position in positions(layer.shape[1:]):
        seen = image[:, :, *window(position, settings["kernel"], settings["stride"], (1,) * len(axes))]
        result[:, :, *position] = reduce(seen, axis=axes)
    return result


def global_pool(layer: Layer, x: Array) -> Array:
    """Return the mean over all positions."""
    return x.mean(axis=tuple(range(2, x.ndim)), keepdims=layer.settings["keep"])


def shift(layer: Layer, x: Array) -> Array:
    """Return x without its first row on every axis, with zero rows at the end."""
    axes = x.ndim - 2
    moved = x[:, :, *(slice(1, None),) * axes]
    extra = layer.settings["padding"] or (0,) * axes
    return np.pad(moved, [(0, 0), (0, 0), *((0, p) for p in extra)])


def subsample(layer: Layer, x: Array) -> Array:
    """Return every s-th position."""
    return x[:, :, *(slice(None, None, s) for s in layer.settings["stride"])]


def upsample(layer: Layer, x: Array) -> Array:
    """Repeat every position."""
    for axis, factor in enumerate(layer.settings["factor"]):
        x = x.repeat(factor, axis=axis + 2)
    return x


def resize(layer: Layer, x: Array) -> Array:
    """Return the mean of the old positions that a new one covers, axis by axis; a growing axis repeats them."""
    for axis, new in enumerate(layer.settings["size"], start=2):
        old = x.shape[axis]
        rows = []
        for i in range(new):
            begin = i * old // new
            end = -(-(i + 1) * old // new) if new < old else begin + 1
            rows.append(x.take(range(begin, end), axis=axis).mean(axis=axis))
        x = np.stack(rows, axis=axis)
    return x


def as_kernel(layer: Layer, taps: Array) -> Array:
    """Lay taps out in space with zeros between them."""
    kernel = layer.settings["kernel"]
    dilation = layer.settings["dilation"] or (1,) * len(kernel)
    result = np.zeros((taps.shape[0], *layer.shape))
    result[:, :, *(slice(None, None, d) for d in dilation)] = taps.reshape(*taps.shape[:2], *kernel)
    return result


def pad_kernel(layer: Layer, kernel: Array) -> Array:
    """Put zeros around a kernel."""
    size = kernel_size(layer.settings["size"], kernel.ndim - 2)
    return padded(kernel, tuple((new - old) // 2 for new, old in zip(size, kernel.shape[2:], strict=True)))


def apply_kernel(layer: Layer, x: Array, kernel: Array) -> Array:
    """Convolve every channel of every example with its own kernel, keeping the size."""
    size = kernel.shape[2:]
    image = padded(x, tuple(k // 2 for k in size))
    ones = (1,) * len(size)
    result = np.empty_like(x)
    for position in positions(x.shape[2:]):
        seen = image[:, :, *window(position, size, ones, ones)]
        result[:, :, *position] = (seen * kernel).sum(axis=tuple(range(2, x.ndim)))
    return result
