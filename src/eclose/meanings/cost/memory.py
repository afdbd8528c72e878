"""How much memory a program's values take at a time, from their shapes and the order of the layers.

The rule is that of the torch meaning: a value lives from the layer that makes it to the last layer that reads it, the
input as long as its caller holds it. Of what a layer needs inside, only the large things count: the scores of an
attention (a fused kernel saves them) and the places of a maximum.
"""

from __future__ import annotations

from math import prod

from eclose.meanings.program.ir import Program, Step

PLACE = 2  # a place is an int64: two entries of a float32
VIEWS = frozenset({"flatten", "slice"})  # their values share the memory of their input
FREED = frozenset({"add", "zero", "shuffle"})  # need nothing afterwards; of a concat and its shuffle one stays


def needed_steps(program: Program, taps: bool = False) -> list[int]:
    """Return the positions of the steps that lead to the output, and to side outputs where they are asked for."""
    needed = program.leading_to([program.output, *(program.taps.values() if taps else ())])
    return sorted(value - 1 for value in needed)


def peak_entries(program: Program) -> int:
    """Return the largest number of entries, for one example, that are alive at once while the output is computed."""
    steps = needed_steps(program)
    last: dict[int, int] = {program.output: len(program.steps)}
    home = {0: 0}  # the value whose memory a value lies in
    for index in steps:
        step = program.steps[index]
        home[index + 1] = home[step.inputs[0]] if step.layer in VIEWS else index + 1
        for source in step.inputs:
            last[source] = max(last.get(source, 0), index)
    until: dict[int, int] = {}
    for value, owner in home.items():
        until[owner] = max(until.get(owner, 0), last.get(value, value - 1))
    until[0] = len(program.steps)
    ending: dict[int, list[int]] = {}
    for owner, index in until.items():
        ending.setdefault(index, []).append(owner)
    alive = peak = prod(program.input_shape)
    for index in steps:
        if home[index + 1] == index + 1:
            alive += prod(program.steps[index].shape)
            peak = max(peak, alive + _inside(program.steps[index]))
        for owner in ending.get(index, ()):
            alive -= prod(program.shape(owner))
    return peak


def _inside(step: Step) -> int:
    """Return the entries that a layer needs besides its inputs and its output."""
    if step.layer == "attention":
        positions = prod(step.shape[1:])
        return int(step.settings["heads"]) * positions**2
    return PLACE * prod(step.shape) if step.layer == "max_pool" else 0


def kept_entries(program: Program) -> int:
    """Return the number of entries, for one example, that a training step keeps for its backward pass."""
    kept = prod(program.input_shape)
    for index in needed_steps(program, taps=True):
        step = program.steps[index]
        if step.layer not in VIEWS and step.layer not in FREED:
            kept += prod(step.shape) + _inside(step)
    return kept


__all__ = ["kept_entries", "needed_steps", "peak_entries"]
