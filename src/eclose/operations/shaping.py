"""Layers without parameters that move, repeat, cut or join values; no layer here decides anything by itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Sizes = tuple[int, ...]


class Add(nn.Module):
    """The sum of its inputs, which may spread over axes of size 1."""

    def forward(self, first: Tensor, *others: Tensor) -> Tensor:
        """Return the sum."""
        for other in others:
            first = first + other
        return first


class Concat(nn.Module):
    """Its inputs one after the other on the channels."""

    def forward(self, *values: Tensor) -> Tensor:
        """Return `(N, C1 + C2 + ..., *spatial)`."""
        return torch.cat(values, 1)


class Slice(nn.Module):
    """The channels `begin` to `end`."""

    def __init__(self, begin: int, end: int):
        super().__init__()
        self.begin, self.end = begin, end

    def forward(self, x: Tensor) -> Tensor:
        """Return `(N, end - begin, *spatial)`."""
        return x[:, self.begin : self.end]


class Shuffle(nn.Module):
    """The channels of `groups` equal groups in turn: the first of each, then the second of each."""

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        """Return `(N, C, *spatial)`; channel `i groups + g` is channel `i` of group `g`."""
        parts = x.reshape(x.shape[0], self.groups, -1, *x.shape[2:])
        return parts.transpose(1, 2).reshape(x.shape)


class Shift(nn.Module):
    """Its input without the first row on every axis, with zero rows behind.

    Args:
        padding: the number of zero rows on each axis; none where it is empty.
    """

    def __init__(self, padding: Sizes = ()):
        super().__init__()
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        """Return the moved input."""
        index: tuple[Any, ...] = (..., *(slice(1, None) for _ in x.shape[2:]))
        x = x[index]
        if any(self.padding):
            x = functional.pad(x, [side for size in reversed(self.padding) for side in (0, size)])
        return x


class Subsample(nn.Module):
    """Every s-th position on each axis, the first included."""

    def __init__(self, stride: Sizes):
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Return `x[..., ::s, ::s]`."""
        index: tuple[Any, ...] = (..., *(slice(None, None, step) for step in self.stride))
        return x[index]


class Zero(Subsample):
    """Zeros of the subsampled shape."""

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros, whatever is in x."""
        return torch.zeros_like(super().forward(x))


class Noise(Subsample):
    """Independent N(0, 1) of the subsampled shape, fresh at every call, in evaluation too."""

    def forward(self, x: Tensor) -> Tensor:
        """Return noise, whatever is in x."""
        return torch.randn_like(super().forward(x))


class Upsample(nn.Module):
    """Every position repeated `factor` times on each axis."""

    def __init__(self, factor: Sizes):
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Return the finer grid."""
        for axis, factor in enumerate(self.factor, start=2):
            x = x.repeat_interleave(factor, axis)
        return x


class Resize(nn.Module):
    """Another grid: adaptive means where an axis shrinks, the nearest position where it grows.

    Position i of a grown axis takes position floor(i n / m) of n.
    """

    def __init__(self, size: Sizes):
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """Return `(N, C, *size)`."""
        sizes = tuple(x.shape[2:])
        smaller = tuple(min(old, new) for old, new in zip(sizes, self.size, strict=True))
        if smaller != sizes:
            mean: Any = {
                1: functional.adaptive_avg_pool1d,
                2: functional.adaptive_avg_pool2d,
                3: functional.adaptive_avg_pool3d,
            }[len(sizes)]
            x = mean(x, smaller)
        for axis, (old, new) in enumerate(zip(smaller, self.size, strict=True), start=2):
            if new > old:
                x = x.index_select(axis, torch.arange(new, device=x.device) * old // new)
        return x


class GlobalPool(nn.Module):
    """The mean over all positions.

    Args:
        keep: whether axes of size 1 stay.
    """

    def __init__(self, keep: bool = False):
        super().__init__()
        self.keep = keep

    def forward(self, x: Tensor) -> Tensor:
        """Return `(N, C)`, or `(N, C, 1, ...)`."""
        return x.mean(tuple(range(2, x.dim())), keepdim=self.keep)


class VolumeMean(nn.Module):
    """Means of windows that are larger than a volume, padding not counted: torch's own pooling refuses them."""

    def __init__(self, kernel: Sizes, stride: Sizes, padding: Sizes):
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.margins = [margin for margin in reversed(padding) for _ in range(2)]

    def forward(self, x: Tensor) -> Tensor:
        """Return `(N, C, *windows)`."""
        sums, counts = (
            functional.avg_pool3d(functional.pad(values, self.margins), self.kernel, self.stride)
            for values in (x, torch.ones_like(x[:1, :1]))
        )
        return sums / counts


class DefaultTo(nn.Module):
    """The first input; a network passes the second on where the first was not computed."""

    def forward(self, value: Tensor, default: Tensor) -> Tensor:
        """Return the first."""
        return value


__all__ = [
    "Add",
    "Concat",
    "DefaultTo",
    "GlobalPool",
    "Noise",
    "Resize",
    "Shift",
    "Shuffle",
    "Slice",
    "Subsample",
    "Upsample",
    "VolumeMean",
    "Zero",
]
