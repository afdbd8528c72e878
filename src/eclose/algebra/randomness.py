"""Randomness that is passed in: every draw comes from a generator that the caller owns.

Nothing in the library draws from a global generator.
"""

from __future__ import annotations

import random
from typing import Any

from eclose.algebra.errors import RequestError


def as_random(source: Any) -> random.Random:
    """Return the generator itself, or one for a whole-number seed or a numpy `Generator` (advanced by one draw)."""
    if isinstance(source, random.Random):
        return source
    if isinstance(source, int) and not isinstance(source, bool):
        return random.Random(source)
    if hasattr(source, "integers") and hasattr(source, "bit_generator"):
        return random.Random(int(source.integers(0, 2**63)))
    raise RequestError(f"rng must be random.Random(seed), a whole number or a numpy Generator, not {source!r}")


def derived(seed: int, *labels: int | str) -> random.Random:
    """Return the generator that belongs to a seed and some labels: the same in every process, independent of others."""
    from hashlib import blake2b

    text = repr((int(seed), *labels)).encode()
    return random.Random(int.from_bytes(blake2b(text, digest_size=16).digest(), "big"))


__all__ = ["as_random", "derived"]
