"""Layers that relate positions to each other or tell them apart: embeddings, attention, normalisation of channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-5
POSITION_SCALE = 0.02  # initial standard deviation of learned positions, as in BERT and ViT


class ChannelNorm(nn.Module):
    """Normalises each position over its channels: `(x - mean) / sqrt(variance + 1e-5)`, with scale and shift.

    Args:
        channels: their number.
        affine: whether there are scale and shift.
    """

    def __init__(self, channels: int, affine: bool = True):
        super().__init__()
        self.channels = channels
        self.weight = nn.Parameter(torch.ones(channels)) if affine else None
        self.bias = nn.Parameter(torch.zeros(channels)) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised input; shape: (N, C, *spatial)."""
        normal = functional.layer_norm(x.movedim(1, -1), (self.channels,), self.weight, self.bias, EPSILON)
        return normal.movedim(-1, 1)


class Embedding(nn.Embedding):
    """A learned vector for each token."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Return `(N, dim, L)` for tokens `(N, L)`."""
        return super().forward(tokens).transpose(1, 2)


class Positions(nn.Module):
    """Adds a learned table of the input's shape."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.weight = nn.Parameter(POSITION_SCALE * torch.randn(shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return `x + table`."""
        return x + self.weight


class Attention(nn.Module):
    """Multi-head attention of given queries, keys and values over all positions.

    Args:
        heads: the channels are divided among them.
        causal: whether a position sees only itself and those before it.
    """

    def __init__(self, heads: int, causal: bool = False):
        super().__init__()
        self.heads, self.causal = heads, causal

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return what each position attends to; shape: (N, C, *spatial)."""
        q, k, v = (self._divided(x) for x in (query, key, value))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return mixed.transpose(2, 3).reshape(query.shape)

    def _divided(self, x: Tensor) -> Tensor:
        """Return `(N, heads, positions, C / heads)`."""
        batch, channels = x.shape[:2]
        return x.reshape(batch, self.heads, channels // self.heads, -1).transpose(2, 3)

    def extra_repr(self) -> str:
        """Show the settings."""
        return f"heads={self.heads}, causal={self.causal}"


class Softmax(nn.Module):
    """The softmax of each channel over everything behind it."""

    def forward(self, x: Tensor) -> Tensor:
        """Return weights that add up to 1 for each channel; shape: (N, C, *rest)."""
        return x.flatten(2).softmax(-1).reshape(x.shape)


__all__ = ["Attention", "ChannelNorm", "Embedding", "Positions", "Softmax"]
