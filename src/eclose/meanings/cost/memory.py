"""How much memory a program's values take at a time, from their shapes and the order of the layers.

The rule is that of the torch meaning: a value lives from the layer that makes it to the last layer that reads it, the
input as long as its caller holds it. Of what a layer needs inside, only the large things count: the scores of an
attention (a fused kernel saves them) and the places of a maximum.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from eclose.meanings.program.ir import Program, Step
from eclose.meanings.program.repetition import repetitions

PLACE = 2  # a place is an int64: two entries of a float32
VIEWS = frozenset({"flatten", "slice"})  # their values share the memory of their input
KEEP_NOTHING = frozenset(
    {"add", "zero", "noise", "shuffle", "concat", "slice", "shift", "subsample", "upsample", "resize", "global_pool",
     "flatten", "default_to", "pad_kernel", "as_kernel", "positions"}
)  # fmt: skip
"""Layers whose gradient needs neither what they got nor what they gave."""
KEEP_OUTPUT = frozenset({"softmax", "dropout"})
FROM_OUTPUT = frozenset({"relu", "sigmoid", "tanh", "exp"})
"""Functions whose derivative is a function of their value."""


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


def kept_entries(program: Program, unweighted: Collection[str] = ()) -> int:
    """Return the number of entries, for one example, that a training step keeps for its backward pass.

    Each kind of layer keeps its inputs, its output or nothing; a value that several layers keep is there once, and so
    are values that are equal by construction. A mixture does without alternatives that are zero.

    Args:
        program: of the network.
        unweighted: choices and picks that are plain sums, whose gradient needs no inputs.
    """
    same, home = repetitions(program), {0: 0}
    kept: set[int] = set()
    inside = 0
    for index in needed_steps(program, taps=True):
        step = program.steps[index]
        value = index + 1
        if value in same and same[value] in home:
            home[value] = home[same[value]]
            continue
        home[value] = home[step.inputs[0]] if step.layer in VIEWS else value
        inside += _inside(step)
        if step.layer in KEEP_OUTPUT or (step.layer == "function" and step.settings["name"] in FROM_OUTPUT):
            kept.add(home[value])
        elif step.layer == "mixture":
            if step.settings["choice"] not in unweighted:
                kept.update(home[source] for source in _mixed(program, step))
        elif step.layer not in KEEP_NOTHING:
            kept.update(home[source] for source in step.inputs)
    return inside + sum(prod(program.shape(value)) for value in kept)


def _mixed(program: Program, step: Step) -> list[int]:
    """Return the inputs of a mixture that are computed."""
    sources = [source for source in step.inputs if source == 0 or program.steps[source - 1].layer != "zero"]
    return sources or list(step.inputs)


__all__ = ["kept_entries", "needed_steps", "peak_entries"]
