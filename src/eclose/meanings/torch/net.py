"""A program as a torch module: one loop over its layers in topological order.

Modules are never nested, so a network may be 100,000 layers deep. Layers with parameters or buffers live in
`net.layers` under the name of their step (`Residual_1/conv_0/conv`), layers without are shared. Alphas are parameters
of their own group in `net.alphas`; a mixture's weights are passed in at each forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from eclose.algebra.errors import RequestError, ShapeError
from eclose.meanings.program.ir import Program, Step
from eclose.meanings.program.repetition import repetitions
from eclose.meanings.torch.layers import build_layer
from eclose.operations.mixture import Alphas, Mixture, MixtureWeights, checked_weights, softmax_weights

ALPHA_SCALE = 1e-3  # alpha ~ 1e-3 N(0, 1), as in DARTS
MANY_LAYERS = 2_000
TOLERATES_ABSENT = frozenset({"add", "mixture", "default_to"})


class Net(nn.Module):
    """The network of a program.

    Args:
        program: what `compile_term` returned.

    Attributes:
        layers: modules by the name of their step.
        alphas: architecture parameters by the name of their choice.
        drop_path_rate: probability with which drop-path drops an operation on an edge while training.
    """

    def __init__(self, program: Program):
        super().__init__()
        self.program = program
        self.drop_path_rate = 0.0
        self.layers = nn.ModuleDict()
        self.alphas = Alphas(
            {name: nn.Parameter(ALPHA_SCALE * torch.randn(site.alternatives)) for name, site in program.choices.items()}
        )
        shared: dict[tuple[Any, ...], str] = {}
        names = []
        for step in program.steps:
            key = (step.layer, repr(sorted(step.settings.items())), _shapes(program, step))
            name = shared.get(key)
            if name is None:
                name = f"{step.name}_" if hasattr(self.layers, step.name) else step.name  # `values`, `forward`, ...
                module = _module(program, step)
                self.layers[name] = module
                if _stateless(module):
                    shared[key] = name
            names.append(name)
        self._names = tuple(names)
        self._same = repetitions(program)
        self._plans = {taps: _plan(program, taps, self._same) for taps in (False, True)}
        self._idle = _idle_guards(program)

    def forward(
        self,
        x: Tensor,  # shape: (N, C, *spatial), or (N, L) token ids
        taps: bool = False,
        weights: Mapping[str, MixtureWeights | Tensor] | None = None,
    ) -> Any:
        """Return the output, or `(output, {tap: value})` with `taps=True`.

        Args:
            x: a batch of inputs.
            taps: whether side outputs are computed and returned.
            weights: for each choice its `MixtureWeights` (or a plain tensor); `softmax(alpha)` without.
        """
        if tuple(x.shape[1:]) != self.program.input_shape:
            raise ShapeError(
                f"this network takes inputs (N, {', '.join(map(str, self.program.input_shape))}), not {tuple(x.shape)}"
            )
        if self.program.choices or weights:
            values: Mapping[int, Tensor | None] = self._mixed(x, taps, self._weights(weights))
        else:
            values = self._plain(x, taps)
        output = values[self.program.output]
        if output is None:
            raise RequestError("the selected alternatives lead nowhere: nothing that they give reaches the output")
        if not taps:
            return output
        return output, {name: values[index] for name, index in self.program.taps.items()}

    def _plain(self, x: Tensor, taps: bool) -> dict[int, Tensor]:
        values = {0: x}
        layers, names, steps = self.layers, self._names, self.program.steps
        droppable = self._droppable()
        for index, finished in self._plans[taps]:
            value = values.get(self._same.get(index + 1, -1))
            if value is None:
                value = layers[names[index]](*[values[source] for source in steps[index].inputs])
            values[index + 1] = drop_path(value, self.drop_path_rate) if index + 1 in droppable else value
            for done in finished:
                del values[done]
        return values

    def _mixed(self, x: Tensor, taps: bool, weights: dict[str, MixtureWeights]) -> dict[int, Tensor | None]:
        program = self.program
        wanted: list[bool] = []
        for number, guard in enumerate(program.guards):  # parents come before their children
            outer = guard.parent < 0 or wanted[guard.parent]
            given = weights[guard.choice]
            idle = number in self._idle and given.selected is None
            wanted.append(outer and not idle and given.needs(guard.alternative))
        values: dict[int, Tensor | None] = {0: x}
        droppable = self._droppable()
        for index, finished in self._plans[taps]:
            step = program.steps[index]
            value = None
            if step.guard < 0 or wanted[step.guard]:
                value = values.get(self._same.get(index + 1, -1))
                if value is None:
                    value = self._step(index, step, [values[source] for source in step.inputs], weights)
            values[index + 1] = value
            if value is not None and index + 1 in droppable:
                values[index + 1] = drop_path(value, self.drop_path_rate)
            for done in finished:
                del values[done]
        return values

    def _step(
        self, index: int, step: Step, inputs: list[Tensor | None], weights: dict[str, MixtureWeights]
    ) -> Tensor | None:
        layer = self.layers[self._names[index]]
        if step.layer == "mixture":
            result: Tensor | None = layer(inputs, weights[step.settings["choice"]])
            return result
        if step.layer == "default_to":
            return inputs[0] if inputs[0] is not None else inputs[1]
        present = [value for value in inputs if value is not None]
        if len(present) < len(inputs) and (step.layer not in TOLERATES_ABSENT or not present):
            return None
        value: Tensor = layer(*present)
        return value

    def _droppable(self) -> frozenset[int]:
        active = self.training and self.drop_path_rate > 0.0
        return frozenset(self.program.droppable) if active else frozenset()

    def _weights(self, weights: Mapping[str, MixtureWeights | Tensor] | None) -> dict[str, MixtureWeights]:
        if weights is None:
            return softmax_weights(dict(self.alphas.items()))
        counts = {name: site.alternatives for name, site in self.program.choices.items()}
        try:
            return checked_weights(weights, counts)
        except ValueError as error:
            raise RequestError(str(error)) from None

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load parameters and buffers; see `torch.nn.Module.load_state_dict`.

        torch looks through all entries for each layer, which takes minutes for 50,000 layers side by side: a deep
        network hands each layer its own.
        """
        if len(self.layers) <= MANY_LAYERS:
            return super().load_state_dict(state_dict, strict=strict, assign=assign)
        parts: dict[str, dict[str, Any]] = {name: {} for name in (*self.layers, "")}
        for key, value in state_dict.items():
            name, _, inner = key.removeprefix("layers.").partition(".")
            if key.startswith("layers.") and name in self.layers:
                parts[name][inner] = value
            else:
                parts[""][key.removeprefix("alphas.")] = value
        missing, unexpected = [], []
        for name, part in parts.items():
            module, prefix = (self.layers[name], f"layers.{name}.") if name else (self.alphas, "alphas.")
            keys = module.load_state_dict(part, strict=False, assign=assign)
            missing += [prefix + key for key in keys.missing_keys]
            unexpected += [prefix + key if name else key for key in keys.unexpected_keys]
        if strict and (missing or unexpected):
            raise RuntimeError(f"this state does not fit the network: missing {missing}, unexpected {unexpected}")
        return type(keys)(missing, unexpected)

    def extra_repr(self) -> str:
        """Show what goes in and out."""
        program = self.program
        return f"{program.input_shape} -> {program.output_shape}, {len(program.steps)} layers"


def drop_path(x: Tensor, rate: float) -> Tensor:
    """Drop each sample's value with probability `rate` and scale what is kept by `1 / (1 - rate)`."""
    keep = 1.0 - rate
    mask = torch.empty((x.shape[0],) + (1,) * (x.dim() - 1), dtype=x.dtype, device=x.device).bernoulli_(keep)
    return x * mask / keep


def _module(program: Program, step: Step) -> nn.Module:
    if step.layer == "mixture":
        return Mixture(step.settings["alternatives"], step.settings["count"])
    return build_layer(step.layer, step.settings, _shapes(program, step))


def _shapes(program: Program, step: Step) -> tuple[tuple[int, ...], ...]:
    return tuple(program.shape(index) for index in step.inputs)


def _stateless(module: nn.Module) -> bool:
    return not any(True for _ in module.parameters()) and not any(True for _ in module.buffers())


def _plan(program: Program, taps: bool, same: Mapping[int, int]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return the steps that lead to a result, each with the values that are needed no more after it."""
    results = {program.output, *(program.taps.values() if taps else ())}
    needed = program.leading_to(results)
    steps = [index for index in range(len(program.steps)) if index + 1 in needed]
    last: dict[int, int] = {}
    for index in steps:
        last[index + 1] = index
        for source in program.steps[index].inputs:
            last[source] = index
        if same.get(index + 1) in needed:  # it is taken from there instead
            last[same[index + 1]] = index
    finished: dict[int, list[int]] = {}
    for value, index in last.items():
        if value not in results:
            finished.setdefault(index, []).append(value)
    return tuple((index, tuple(finished.get(index, ()))) for index in steps)


def _idle_guards(program: Program) -> frozenset[int]:
    """Return the guards of alternatives that are zero by construction, where a choice has others too.

    Under soft weights such an alternative adds nothing to a mixture; it need not be computed.
    """
    busy = {step.guard for step in program.steps if step.layer != "zero"}
    zero = {step.guard for step in program.steps if step.guard >= 0} - busy
    parents = {guard.parent for guard in program.guards}
    others = {(guard.choice, guard.parent) for number, guard in enumerate(program.guards) if number not in zero}
    return frozenset(
        number
        for number in zero
        if number not in parents and (program.guards[number].choice, program.guards[number].parent) in others
    )


__all__ = ["Net", "drop_path"]
