"""The cost of a network, read off its program: no module is built and nothing is run.

A supernet costs what all its alternatives cost together, for a soft mixture computes them all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import prod

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.shapes import Input, Output, Shape, as_input, as_output
from eclose.algebra.terms import Term
from eclose.meanings.cost.memory import kept_entries, needed_steps, peak_entries
from eclose.meanings.cost.operations import COUNTINGS
from eclose.meanings.program import Program, compile_term
from eclose.meanings.program.completion import completed
from eclose.meanings.program.layers import LAYERS

BYTES = 4  # of a float32


@dataclass(frozen=True)
class LayerCost:
    """What one layer costs.

    Attributes:
        name: of the step, as parameters are named.
        kind: of the layer.
        shape: of its output, without the batch.
        parameters: numbers that are trained.
        multiply_adds: for one example.
        used: whether it leads to the output or a side output.
    """

    name: str
    kind: str
    shape: Shape
    parameters: int
    multiply_adds: int
    used: bool


@dataclass(frozen=True)
class Cost:
    """What a network costs.

    Attributes:
        parameters: numbers that are trained, without the alphas of a supernet.
        alphas: architecture parameters of a supernet.
        multiply_adds: for one example, by the convention `counting`.
        peak_memory: bytes of the values that are alive at once in one forward pass of one example in float32.
        training_memory: bytes of the values that a training step keeps for its backward pass, for one example.
        counting: the convention of `multiply_adds`.
        not_counted: layers of a user's own whose multiply-adds and parameters are unknown.
        layers: one entry a layer.
    """

    parameters: int
    alphas: int
    multiply_adds: int
    peak_memory: int
    training_memory: int
    counting: str = "products"
    not_counted: tuple[str, ...] = ()
    layers: tuple[LayerCost, ...] = field(default=(), repr=False)

    def memory(self, batch: int, training: bool = False) -> int:
        """Return the bytes that a pass over a batch needs at its peak, parameters included.

        A training step also holds the gradient and one state of the optimiser for each parameter.
        """
        if training:
            return batch * self.training_memory + 3 * BYTES * self.parameters
        return batch * self.peak_memory + BYTES * self.parameters

    def __str__(self) -> str:
        lines = [
            f"parameters     {self.parameters:>16,}" + (f"  (and {self.alphas:,} alphas)" if self.alphas else ""),
            f"multiply-adds  {self.multiply_adds:>16,}  for one example",
            f"peak memory    {self.peak_memory:>16,}  bytes of values alive at once, one example",
            f"training       {self.training_memory:>16,}  bytes of values kept for the backward pass, one example",
        ]
        if self.not_counted:
            lines.append(f"not counted: {', '.join(self.not_counted)} (layers of your own)")
        return "\n".join(lines)

    def layers_text(self) -> str:
        """Return one line a layer, and the sums."""
        rows = [("layer", "kind", "shape", "parameters", "multiply-adds")]
        rows += [
            (
                layer.name,
                layer.kind,
                "x".join(map(str, layer.shape)),
                f"{layer.parameters:,}",
                f"{layer.multiply_adds:,}" + ("" if layer.used else " (unused)"),
            )
            for layer in self.layers
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = [
            "  ".join(
                text.rjust(width) if column > 2 else text.ljust(width)
                for column, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, "", str(self)])


def cost(
    term: Term,
    *,
    input: Input,
    output: Output | None = None,
    classes: int | None = None,
    registry: Registry | None = None,
    policy: str = "reject",
    counting: str = "products",
) -> Cost:
    """Return what the network of a term costs; the arguments are those of the torch meaning's `build`.

    Args:
        counting: the convention for multiply-adds, `"products"` or `"nasbench201"`.
    """
    registry = default_registry() if registry is None else registry
    given, asked = as_input(input), as_output(output, classes)
    term = completed(term, given, asked, registry)
    return program_cost(compile_term(term, given, asked, registry=registry, policy=policy), counting)


def program_cost(program: Program, counting: str = "products", unweighted: Collection[str] = ()) -> Cost:
    """Return what a program costs.

    Args:
        program: of the network.
        counting: the convention for multiply-adds.
        unweighted: choices and picks of a supernet that are plain sums; they keep less for the backward pass.
    """
    convention = COUNTINGS.get(counting)
    if convention is None:
        known = ", ".join(COUNTINGS)
        raise RequestError(f"unknown counting {counting!r}{did_you_mean(counting, COUNTINGS)} (known: {known})")
    used = set(needed_steps(program, taps=True))
    to_output = set(needed_steps(program))
    layers: list[LayerCost] = []
    total = 0
    for index, step in enumerate(program.steps):
        shapes = [program.shape(source) for source in step.inputs]
        products = convention.rules[step.layer](step.settings, shapes, step.shape)
        parameters = sum(map(prod, parameter_shapes(step.layer, step.settings, shapes).values()))
        layers.append(LayerCost(step.name, step.layer, step.shape, parameters, products, index in used))
        if index in to_output or convention.unused:
            total += products
    return Cost(
        parameters=sum(layer.parameters for layer in layers),
        alphas=sum(site.alternatives for site in program.choices.values()),
        multiply_adds=total,
        peak_memory=BYTES * peak_entries(program),
        training_memory=BYTES * kept_entries(program, unweighted),
        counting=counting,
        not_counted=tuple(layer.name for layer in layers if layer.kind == "custom"),
        layers=tuple(layers),
    )


def parameter_shapes(kind: str, settings: Mapping[str, object], shapes: list[Shape]) -> dict[str, Shape]:
    """Return the trainable tensors of a layer by name; a user's own layer has none that are known here."""
    return LAYERS[kind].parameters(settings, shapes)


__all__ = ["Cost", "LayerCost", "cost", "parameter_shapes", "program_cost"]
