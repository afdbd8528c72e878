"""Deterministic splits: which items go where depends on a seed and the labels only.

The order comes from the raw bits of a PCG64 generator, which numpy guarantees not to change between versions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError
from eclose.tasks.checks import check_seed

if TYPE_CHECKING:
    from numpy.typing import NDArray


def shuffled(count: int, seed: int, label: int = 0) -> NDArray[Any]:
    """Return the numbers below `count` in the order that belongs to a seed and a label."""
    import numpy as np

    seed = check_seed(seed, "a seed")
    bits = np.random.PCG64(np.random.SeedSequence([seed, label])).random_raw(count)
    return np.argsort(bits, kind="stable")


def split(count: int, held: float | int, seed: int = 0, labels: Any = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Cut the items into those kept and those held out, both in ascending order.

    Args:
        count: how many items there are.
        held: how many to hold out: a number of items (int) or a share of them (float below 1).
        seed: another seed gives another cut.
        labels: whole numbers, one an item: the cut then is stratified, every class giving its share.
    """
    import numpy as np

    wanted = as_count(held, count, "the held-out part")
    if labels is None:
        order = shuffled(count, seed)
        chosen = order[:wanted]
    else:
        labels = np.asarray(labels)
        classes, sizes = np.unique(labels, return_counts=True)
        chosen_lists = []
        for label, share in zip(classes, _shares(sizes, wanted), strict=True):
            members = np.flatnonzero(labels == label)
            chosen_lists.append(members[shuffled(len(members), seed, _stream(int(label)))[:share]])
        chosen = np.concatenate(chosen_lists)
    mask = np.zeros(count, dtype=bool)
    mask[chosen] = True
    return np.flatnonzero(~mask), np.flatnonzero(mask)


def _stream(label: int) -> int:
    return label + 1 if label >= 0 else 2**32 + label  # labels that do not count are negative


def as_count(amount: float | int, count: int, what: str) -> int:
    """Return a number of items from a number or a share; there must be some, and some must be left."""
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise RequestError(f"{what} is a number of items or a share such as 0.2, not {amount!r}")
    finite = isinstance(amount, int) or math.isfinite(amount)
    wanted = amount if isinstance(amount, int) else round(amount * count) if finite else 0
    if not 0 < wanted < count:
        raise RequestError(f"{what} cannot have {amount} of {count} items: some, and not all, must be in it")
    return wanted


def _shares(sizes: NDArray[Any], wanted: int) -> NDArray[Any]:
    """Return how many of each class, by largest remainders; a class of two or more is on both sides where it can be."""
    import numpy as np

    exact = sizes * (wanted / sizes.sum())
    shares = np.floor(exact).astype(int)
    least = np.minimum(1, sizes - 1) if wanted >= len(sizes) else np.zeros_like(sizes)
    most = np.maximum(sizes - 1, 0) if sizes.sum() - wanted >= len(sizes) else sizes
    shares = np.clip(shares, least, most)
    while (missing := wanted - shares.sum()) != 0:
        step = 1 if missing > 0 else -1
        room = shares < most if step > 0 else shares > least
        if not room.any():
            room = shares < sizes if step > 0 else shares > 0
        preference = np.where(room, step * (exact - shares), -np.inf)
        shares[np.argsort(-preference, kind="stable")[: min(abs(missing), int(room.sum()))]] += step
    return shares


__all__ = ["as_count", "shuffled", "split"]
