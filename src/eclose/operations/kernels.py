"""Convolution kernels that a network computes for each sample, and their application.

A kernel is `(N, C, *k)`: one odd-sized window a channel, of each sample its own (Ding et al., 2022).
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional

Sizes = tuple[int, ...]


class Context(nn.Module):
    """What positions hold, gathered by weights: `b m^T` over the positions."""

    def forward(self, b: Tensor, m: Tensor) -> Tensor:
        """Return `(N, H, T)` for b `(N, H, *spatial)` and m `(N, T, *spatial)`."""
        return b.flatten(2) @ m.flatten(2).transpose(1, 2)


class AsKernel(nn.Module):
    """Taps laid out in space.

    Args:
        kernel: taps on each axis.
        dilation: distance between taps on each axis; 1 where it is empty.
    """

    def __init__(self, kernel: Sizes, dilation: Sizes = ()):
        super().__init__()
        self.kernel, self.dilation = kernel, dilation or (1,) * len(kernel)

    def forward(self, taps: Tensor) -> Tensor:
        """Return `(N, C, *size)` for taps `(N, C, T)`."""
        dense = taps.reshape(*taps.shape[:2], *self.kernel)
        if max(self.dilation) == 1:
            return dense
        size = tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        index = torch.arange(prod(size), device=taps.device).reshape(size)
        index = index[tuple(slice(None, None, d) for d in self.dilation)].flatten()
        spread = taps.new_zeros(*taps.shape[:2], prod(size)).index_copy(2, index, taps.flatten(2))
        return spread.reshape(*taps.shape[:2], *size)


class PadKernel(nn.Module):
    """Zeros around a kernel, up to a size."""

    def __init__(self, size: Sizes):
        super().__init__()
        self.size = size

    def forward(self, kernel: Tensor) -> Tensor:
        """Return `(N, C, *size)`."""
        margins = [(new - old) // 2 for new, old in zip(self.size, kernel.shape[2:], strict=True)]
        return functional.pad(kernel, [margin for margin in reversed(margins) for _ in range(2)])


class ApplyKernel(nn.Module):
    """A feature convolved with its own kernel, channel by channel, at the same resolution."""

    def forward(self, x: Tensor, kernel: Tensor) -> Tensor:
        """Return `(N, C, *spatial)` for a kernel `(N, C, *k)`."""
        batch, channels, *sizes = x.shape
        convolve = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[len(sizes)]
        padding = tuple(k // 2 for k in kernel.shape[2:])
        merged = batch * channels
        result = convolve(
            x.reshape(1, merged, *sizes),
            kernel.reshape(merged, 1, *kernel.shape[2:]),
            padding=padding,
            groups=merged,
        )
        return result.reshape(x.shape)


__all__ = ["ApplyKernel", "AsKernel", "Context", "PadKernel"]
