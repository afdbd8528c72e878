"""Wirings as programs: generators that evaluate their children in order and merge what meets.

An inherited stride applies to the edges that leave a wiring's source; every other edge has stride 1.
"""

from __future__ import annotations

from typing import Any

from eclose.meanings.program.emitter import Meaning, Site
from eclose.meanings.program.ir import Tensor, Value
from eclose.meanings.program.merging import add, as_parts, concat, equal_kernels, feature, total


def sequential(site: Site, *inputs: Value) -> Meaning:
    """Children one after the other; the stride goes to the first child that has a use for it."""
    stride = site.context.stride
    values: tuple[Value, ...] = inputs
    for index in range(len(site.term.children)):
        call = site.child(index, *values, stride=stride)
        values = ((yield call),)
        if call.take_stride:
            stride = 1
    return values[0]


def edges(site: Site, x: Value) -> Meaning:
    """Any wiring given by a list of edges: a child an edge, a sum at every node with several incoming edges."""
    pairs = site.operator.edges
    sink = max(end for _, end in pairs)
    arriving: dict[int, list[Value]] = {}
    values: dict[int, Value] = {0: x}
    order = sorted(range(len(pairs)), key=lambda index: (pairs[index][1], index))
    for index in order:
        start, end = pairs[index]
        if start not in values:
            values[start] = merged(site, arriving[start], start)
        stride = site.context.stride if start == 0 else 1
        result = yield site.child(index, values[start], stride=stride)
        arriving.setdefault(end, []).append(result)
    return merged(site, arriving[sink], sink)


def merged(site: Site, values: list[Value], node: int) -> Tensor:
    """Return the sum at a node of an edge-list wiring."""
    tensors = [feature(site, value) for value in values]
    return add(site, tensors, local=f"sum_{node}")


def binary_topo(site: Site, x: Value) -> Meaning:
    """`BinaryTopo(f, a, b, id, id)`: the binary function f of a's and b's values, each after its own `id` edge."""
    left = yield site.child(1, x)
    right = yield site.child(2, x)
    left = yield site.child(3, left)
    right = yield site.child(4, right)
    result: Value = yield site.child(0, left, right)
    return result


def parallel(site: Site, *inputs: Value) -> Meaning:
    """Children side by side, summed or concatenated."""
    values = []
    for index in range(len(site.term.children)):
        values.append((yield site.child(index, *inputs)))
    return concat(site, values) if site.value("merge") == "concat" else total(site, values)


def repeat(site: Site, *inputs: Value) -> Meaning:
    """One child n times in a row, with weights of its own each time; an inherited stride goes to the first."""
    values: tuple[Value, ...] = inputs
    for copy in range(site.value("n")):
        stride = site.context.stride if copy == 0 else 1
        values = ((yield site.child(0, *values, copy=copy, stride=stride)),)
    return values[0]


def cells(site: Site, x: Value) -> Meaning:
    """`Cells(stem0, stem1, c1, ...)`: every child after the stems gets the outputs of the two before it."""
    before: Value = yield site.child(0, x)
    last: Value = yield site.child(1, before)
    for index in range(2, len(site.term.children)):
        before, last = last, (yield site.child(index, before, last))
    return last


def darts_cell(site: Site, before: Value, last: Value) -> Meaning:
    """Both inputs brought to the cell's channels, then node after node on all values so far; the nodes concatenated.

    The older input is halved by a FactorizedReduce where the previous cell was a reduction cell.
    """
    older, newer = feature(site, before), feature(site, last)
    channels = site.channels(newer)
    if older.shape[1:] == newer.shape[1:]:
        first = yield site.helper("conv", older, local="preprocess_0", kernel=1, stride=1, channels=channels)
    elif all(-(-a // 2) == b for a, b in zip(older.shape[1:], newer.shape[1:], strict=True)):
        first = yield site.helper("factorized_reduce", older, local="preprocess_0", channels=channels)
    else:
        site.fail(f"the two inputs of a cell have sizes {older.shape[1:]} and {newer.shape[1:]}, not equal or halved")
    second = yield site.helper("conv", newer, local="preprocess_1", kernel=1, stride=1, channels=channels)
    states: list[Value] = [first, second]
    for index in range(len(site.term.children)):
        states.append((yield site.child(index, *states, channels=channels, stride=site.context.stride)))
    return concat(site, states[2:])


def node(site: Site, *inputs: Value) -> Meaning:
    """The sum of its edges, type by type."""
    values = []
    given = {id(value) for value in inputs}
    for index in range(len(site.term.children)):
        value = yield site.child(index, *inputs)
        if id(value) not in given:
            site.droppable(value)
        values.append(value)
    return total(site, values)


def on(site: Site, *inputs: Value) -> Meaning:
    """A child applied to value `src`; the inherited stride applies to the two inputs of a cell only."""
    source = site.value("src")
    if not 0 <= source < len(inputs):
        site.fail(f"on(..., src={source}) stands where the values 0 to {len(inputs) - 1} are offered")
    stride = site.context.stride if source < 2 else 1
    result: Value = yield site.child(0, inputs[source], stride=stride)
    return result


def hblock(site: Site, *inputs: Value) -> Meaning:
    """The heterogeneous residual block: S = X + X*A + X(*)D of tier 1, then the same of tier 2 on S.

    In tier 2 an empty feature term is the identity: F = S + S*A, S + S(*)D, or f(S).
    """
    gathered = yield site.child(0, *inputs)
    parts = as_parts(gathered)
    if "feature" not in parts:
        site.fail(f"hblock needs at least one feature operation in its first tier, which gives {' and '.join(parts)}")
    surrogate = combined(site, parts["feature"], parts, "surrogate")
    refined = as_parts((yield site.child(1, surrogate, stride=1)))
    base = surrogate
    if "feature" in refined:
        base = refined["feature"]
        if len(refined) > 1:  # with hard weights the feature may be absent, and the identity takes its place
            base = site.layer("default_to", base, surrogate)
    return combined(site, base, refined, "refined")


def combined(site: Site, base: Tensor, parts: dict[str, Tensor], name: str) -> Tensor:
    """Return X + X*A + X(*)D for the attention A and the kernel D that are there."""
    terms = [base]
    if "attention" in parts:
        terms.append(site.layer("binary", base, parts["attention"], local=f"{name}_attention", name="multiply"))
    if "kernel" in parts:
        kernel = equal_kernels(site, [parts["kernel"]])[0]
        terms.append(site.layer("apply_kernel", base, kernel, local=f"{name}_kernel"))
    result = base if len(terms) == 1 else site.layer("add", *terms, local=name)
    if "norm" in site.operator.attributes and site.value("norm"):
        result = site.layer("batch_norm", result, local=f"{name}_norm", affine=False)
    return result


def given(site: Site, *inputs: Value) -> Meaning:
    """The child with other inherited values."""
    changes: dict[str, Any] = dict(site.term.attributes)
    result: Value = yield site.child(0, *inputs, **changes)
    return result


def tap(site: Site, *inputs: Value) -> Meaning:
    """The input goes on unchanged; the child's value becomes a side output."""
    site.tap(site.value("name"), site.one((yield site.child(0, *inputs, stride=1))))
    return inputs[-1]
