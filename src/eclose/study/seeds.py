"""Randomness by name: what a trial draws is a function of the study's seed and the trial's number alone."""

from __future__ import annotations

from hashlib import blake2b


def derived_seed(seed: int, number: int, purpose: str = "") -> int:
    """Return a 63-bit seed for one purpose of one trial, the same in every process.

    Args:
        seed: the study's seed.
        number: the trial's number.
        purpose: `"propose"`, `"evaluate"`, ...: streams that must not be the same.
    """
    text = f"{seed}/{number}/{purpose}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 1
