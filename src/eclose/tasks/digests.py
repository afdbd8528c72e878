"""The digest of a task's data and options.

What is in memory is hashed whole. A dataset that is read item by item may be different every time it is read, so it
counts with its type, its length, its labels where they are known, and the shape of its first item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from eclose.tasks.inference import example
from eclose.tasks.losses import Loss
from eclose.tasks.metrics import Metric
from eclose.tasks.parts import Arrays, Batches, Items, known_labels

if TYPE_CHECKING:
    from torch import Tensor

CHUNK = 1 << 16  # rows hashed at a time


def digest(facts: tuple[Any, ...], sources: Mapping[str, Arrays | Items | Batches]) -> str:
    """Return 32 hexadecimal digits for a task's facts and the data of its parts."""
    state = blake2b(digest_size=16)
    state.update(repr([_plain(fact) for fact in facts]).encode())
    for part in sorted(sources):
        source = sources[part]
        state.update(f"\0{part} {len(source)} ".encode())
        if isinstance(source, Arrays):
            for values in (source.inputs, source.targets):
                _update(state.update, values, source.rows)
        else:
            _describe(state.update, source)
    return state.hexdigest()


def _plain(fact: Any) -> Any:
    if isinstance(fact, Loss):
        return ("loss", fact.name, _function(fact.function))
    if isinstance(fact, Metric):
        return ("metric", fact.name, fact.direction, _function(getattr(fact.measure, "function", fact.measure)))
    return fact


def _function(function: Any) -> str:
    kind = function if hasattr(function, "__qualname__") else type(function)
    return f"{kind.__module__}.{kind.__qualname__}"


def _update(update: Callable[[bytes], None], values: Tensor, rows: Tensor | None) -> None:
    shape = tuple(values.shape[1:])
    update(f"{values.dtype} {shape} ".encode())
    count = len(values) if rows is None else len(rows)
    for begin in range(0, count, CHUNK):
        chosen = values[begin : begin + CHUNK] if rows is None else values[rows[begin : begin + CHUNK]]
        update(chosen.contiguous().cpu().numpy().tobytes())


def _describe(update: Callable[[bytes], None], source: Items | Batches) -> None:
    inputs, target = example(source, "train")
    items = source.items if isinstance(source, Items) else source.batches
    update(f"{type(items).__qualname__} {inputs.dtype} {tuple(inputs.shape)} {tuple(target.shape)}".encode())
    labels = known_labels(source)
    if labels is not None:
        update(labels.tobytes())
