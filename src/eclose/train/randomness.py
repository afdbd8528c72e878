"""Randomness by counting: a draw is a hash of (seed, epoch, item), not the next number of a generator.

So item *i* of epoch *e* is treated the same on any device, in any batch, and after a run was killed and resumed. Only
whole-number tensor operations are used (the finaliser of SplitMix64; Steele, Lea and Flood 2014), which give the same
bits on a CPU and on a GPU and need no host: they may run inside a captured CUDA graph.
"""

from __future__ import annotations

from hashlib import blake2b

import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB


def key_of(seed: int, *labels: int | str) -> int:
    """Return the 64-bit key (signed) that belongs to a seed and some labels, such as an epoch."""
    digest = blake2b(repr((int(seed), *labels)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def hashed(values: Tensor) -> Tensor:
    """Return a well mixed 64-bit hash of each whole number."""
    values = (values ^ _shifted(values, 30)) * _signed(FIRST)
    values = (values ^ _shifted(values, 27)) * _signed(SECOND)
    return values ^ _shifted(values, 31)


def draws(
    key: int | Tensor,
    items: Tensor,  # shape: (N,), whole numbers
    count: int,
) -> Tensor:  # shape: (N, count), 64 random bits each
    """Return `count` independent draws for each item; row `i` depends on `key` and `items[i]` alone."""
    states = hashed(items.long() * _signed(GOLDEN) + key)
    counters = torch.arange(1, count + 1, device=items.device) * _signed(GOLDEN)
    return hashed(states[:, None] + counters)


def uniform(bits: Tensor) -> Tensor:
    """Return draws as float32 in [0, 1), from their upper 24 bits."""
    return _shifted(bits, 40).float() * 2.0**-24


def below(bits: Tensor, limit: int | Tensor) -> Tensor:
    """Return draws as whole numbers in `0 .. limit - 1`; `limit` is under 2^31."""
    return (_shifted(bits, 32) * limit) >> 32


def permutation(key: int | Tensor, count: int, device: torch.device | str = "cpu") -> Tensor:
    """Return a random order of `0 .. count - 1`, the same on every device."""
    items = torch.arange(count, device=device)
    return torch.argsort(draws(key, items, 1)[:, 0], stable=True)


def _shifted(values: Tensor, places: int) -> Tensor:
    """Shift right and fill with zeros, which a signed shift does not."""
    return (values >> places) & ((1 << (64 - places)) - 1)


def _signed(constant: int) -> int:
    return constant - (1 << 64) if constant >= 1 << 63 else constant


__all__ = ["below", "draws", "hashed", "key_of", "permutation", "uniform"]
