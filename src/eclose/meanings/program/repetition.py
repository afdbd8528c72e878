"""Which values of a program are equal by construction: the same layer without parameters on the same inputs.

In a supernet many operations of a node begin with the same activation of the same value; computing it once saves time
and memory. Nothing here knows a backend.
"""

from __future__ import annotations

from eclose.meanings.program.ir import Program
from eclose.meanings.program.layers import LAYERS

PURE = frozenset({"function", "max_pool", "avg_pool", "subsample", "shift", "slice", "zero", "upsample", "resize",
                  "global_pool", "shuffle"})  # fmt: skip
"""Kinds of layer that are a function of their inputs alone, where they have no parameters: nothing random."""


def repetitions(program: Program) -> dict[int, int]:
    """Return for each value that repeats an earlier one which that is.

    What drop-path may change is left alone: each such value is dropped by itself.
    """
    first: dict[tuple[object, ...], int] = {}
    same: dict[int, int] = {}
    droppable = set(program.droppable)
    for index, step in enumerate(program.steps):
        value = index + 1
        if step.layer not in PURE or value in droppable:
            continue
        shapes = [program.shape(source) for source in step.inputs]
        if LAYERS[step.layer].parameters(step.settings, shapes):  # some functions have a constant of their own
            continue
        inputs = tuple(same.get(source, source) for source in step.inputs)
        key = (step.layer, repr(sorted(step.settings.items())), inputs)
        earlier = first.setdefault(key, value)
        if earlier != value:
            same[value] = earlier
    return same


__all__ = ["PURE", "repetitions"]
