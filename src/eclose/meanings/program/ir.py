"""The flat program of a term: layers in topological order with known shapes, before any module exists.

A term is folded once into this program (`compile_term`); torch, numpy, cost, source text and every other backend read
it and need one entry for each kind of *layer* (`conv`, `batch_norm`, `add`, ...), not for each operator. Nothing here
imports a tensor library.

Shapes are channels first and without the batch: `(C, *spatial)`; a sequence of tokens before its embedding is `(L,)`;
logits are `(classes,)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from eclose.algebra.shapes import Shape


@dataclass(frozen=True)
class Tensor:
    """One value of a program: the output of step `index - 1`; index 0 is the network's input."""

    index: int
    shape: Shape
    type: str = "feature"


@dataclass(frozen=True)
class Bundle:
    """Values of several types at one place, e.g. a feature, an attention and a kernel from one mixture."""

    parts: Mapping[str, Tensor]


Value: TypeAlias = Tensor | Bundle


@dataclass(frozen=True)
class Guard:
    """Where a step stands inside an alternative: it is needed only if `choice` gives `alternative` a weight."""

    parent: int  # index of the enclosing guard in Program.guards, -1 for none
    choice: str
    alternative: int


@dataclass(frozen=True, slots=True)
class Step:
    """One layer of a program.

    Attributes:
        layer: the kind of layer, a key of `layers.LAYERS`.
        settings: what the kind needs, with everything resolved (channels, stride, padding as tuples, ...).
        inputs: indices of the values it takes.
        shape: the shape of its output, value `position + 1`.
        name: unique name within the program, from the occurrence path; parameters live under it.
        operator: the operator of the occurrence it belongs to.
        guard: index into Program.guards, -1 where the step is always needed.
        type: the type of its output.
    """

    layer: str
    settings: Mapping[str, Any]
    inputs: tuple[int, ...]
    shape: Shape
    name: str
    operator: str
    guard: int = -1
    type: str = "feature"


@dataclass(frozen=True)
class ChoiceSite:
    """All occurrences that share one name, hence one alpha: a `choice` or a `pick` with logits."""

    name: str
    kind: str  # "choice" | "pick"
    alternatives: int
    labels: tuple[str, ...]  # the alternatives' texts
    keep: int = 1  # how many a derivation keeps


@dataclass(frozen=True)
class Program:
    """A whole network.

    Attributes:
        input_shape: of value 0; `input_type` is `"feature"` or `"tokens"`.
        steps: in topological order; step i makes value i + 1.
        output: index of the value that the network returns.
        taps: name -> index of a side output.
        guards: see `Guard`.
        choices: name -> `ChoiceSite`.
        droppable: values that drop-path may drop while training (outputs of operations on edges, never identities).
    """

    input_shape: Shape
    input_type: str
    steps: tuple[Step, ...]
    output: int
    output_type: str
    taps: Mapping[str, int] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    choices: Mapping[str, ChoiceSite] = field(default_factory=dict)
    droppable: tuple[int, ...] = ()

    def shape(self, index: int) -> Shape:
        """Return the shape of a value."""
        return self.input_shape if index == 0 else self.steps[index - 1].shape

    def leading_to(self, results: Iterable[int]) -> set[int]:
        """Return the values that some values are computed from, themselves among them; the input is left out."""
        needed: set[int] = set()
        pending = list(results)
        while pending:
            value = pending.pop()
            if value > 0 and value not in needed:
                needed.add(value)
                pending.extend(self.steps[value - 1].inputs)
        return needed

    @property
    def output_shape(self) -> Shape:
        """The shape of what the network returns."""
        return self.shape(self.output)
