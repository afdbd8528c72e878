"""The reference interpreter: runs a program in numpy, one layer after the other.

It is plain and slow on purpose. It knows no tensor library but numpy; the state of a torch network comes in through
`parameters_of`, which asks nothing of torch but `.numpy()` of each tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eclose.algebra.errors import RequestError, ShapeError
from eclose.algebra.shapes import Shape
from eclose.meanings.numpy.layer import Array, Layer
from eclose.meanings.program.ir import Program, Step
from eclose.meanings.program.layers import LAYERS

ABSENT_ALLOWED = frozenset({"add", "mixture", "default_to"})


def run(
    program: Program,
    inputs: Array,
    parameters: Mapping[str, Array],
    *,
    weights: Mapping[str, Array] | None = None,
    selected: Mapping[str, Sequence[int]] | None = None,
    taps: bool = False,
    seed: int = 0,
) -> Any:
    """Return the network's output in float64 and evaluation mode, or `(output, {tap: value})` with `taps=True`.

    Args:
        program: what `compile_term` returned.
        inputs: a batch of inputs: `(N, C, *spatial)` numbers or `(N, L)` token ids.
        parameters: `{step name}.{parameter}` to array, buffers included; alphas are `alphas.{choice}`.
        weights: for each choice the weights of its alternatives; `softmax(alpha)` without.
        selected: for some choices the alternatives that are evaluated at all (hard weights).
        taps: whether side outputs are returned.
        seed: of the layers that are random in evaluation too (`noise`).
    """
    import numpy as np

    from eclose.meanings.numpy.layers import RULES

    inputs = np.asarray(inputs)
    if tuple(inputs.shape[1:]) != program.input_shape:
        expected = ", ".join(map(str, program.input_shape))
        raise ShapeError(f"this network takes inputs (N, {expected}), not {tuple(inputs.shape)}")
    mixing = weights if weights is not None else _softmax_weights(program, parameters)
    random = np.random.default_rng(seed)
    wanted = _wanted(program, selected or {})
    values: list[Array | None] = [inputs if program.input_type == "tokens" else inputs.astype(np.float64)]
    for step in program.steps:
        given = [values[index] for index in step.inputs]
        if step.guard >= 0 and not wanted[step.guard]:
            values.append(None)
            continue
        if step.layer == "mixture":
            kept = (selected or {}).get(step.settings["choice"], step.settings["alternatives"])
            pairs = zip(step.settings["alternatives"], given, strict=True)
            given = [value if alternative in kept else None for alternative, value in pairs]
        absent = [value is None for value in given]
        if any(absent) and (step.layer not in ABSENT_ALLOWED or all(absent)):
            values.append(None)
            continue
        if step.layer == "add":
            given = [value for value in given if value is not None]
        shapes = tuple(program.shape(index) for index in step.inputs)
        found = _parameters(step, shapes, parameters)
        if step.layer == "mixture":
            found["weights"] = np.asarray(mixing[step.settings["choice"]])
        values.append(RULES[step.layer](Layer(step.settings, found, step.shape, random), *given))
    output = values[program.output]
    return (output, {name: values[index] for name, index in program.taps.items()}) if taps else output


def parameters_of(net: Any) -> dict[str, Array]:
    """Return the state of a torch network as float64 arrays by the names that `run` expects."""
    import numpy as np

    result = {}
    for key, tensor in net.state_dict().items():
        name = key.removeprefix("layers.")
        result[name] = np.asarray(tensor.detach().cpu().double().numpy())
    return result


def _softmax_weights(program: Program, parameters: Mapping[str, Array]) -> dict[str, Array]:
    import numpy as np

    result = {}
    for name in program.choices:
        alpha = _found(parameters, f"alphas.{name}")
        powers = np.exp(alpha - np.max(alpha))
        result[name] = powers / powers.sum()
    return result


def _wanted(program: Program, selected: Mapping[str, Sequence[int]]) -> list[bool]:
    wanted: list[bool] = []
    for guard in program.guards:  # parents come before their children
        outer = guard.parent < 0 or wanted[guard.parent]
        wanted.append(outer and guard.alternative in selected.get(guard.choice, (guard.alternative,)))
    return wanted


def _parameters(step: Step, shapes: tuple[Shape, ...], parameters: Mapping[str, Array]) -> dict[str, Array]:
    import numpy as np

    kind = LAYERS[step.layer]
    found: dict[str, Array] = {}
    for name, shape in {**kind.parameters(step.settings, shapes), **kind.buffers(step.settings, shapes)}.items():
        array = np.asarray(_found(parameters, f"{step.name}.{name}"), dtype=np.float64)
        if array.shape != shape:
            raise ShapeError(f"{step.name}.{name} must have shape {shape}, not {array.shape}")
        found[name] = array
    return found


def _found(parameters: Mapping[str, Array], name: str) -> Array:
    if name not in parameters:
        raise RequestError(f"the network needs the parameter {name!r}, which is not given")
    return parameters[name]
