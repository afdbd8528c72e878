"""Wirings as graphs: every child stands on its edge, and what meets at a node is added or joined.

An inherited stride applies to the edges that leave a wiring's source; every other edge has stride 1.
"""

from __future__ import annotations

from typing import Any

from eclose.algebra.terms import Term
from eclose.meanings.graph.builder import Meaning, Site, Value

CELL = 0  # stands for "those of the cell" among inherited channels, where the number follows from what comes before


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
    for index in sorted(range(len(pairs)), key=lambda index: (pairs[index][1], index)):
        start, end = pairs[index]
        if start not in values:
            values[start] = site.total([feature(site, value) for value in arriving[start]])
        result = yield site.child(index, values[start], stride=site.context.stride if start == 0 else 1)
        arriving.setdefault(end, []).append(result)
    return site.total([feature(site, value) for value in arriving[sink]])


def feature(site: Site, value: Value) -> Value:
    """Return a value that must be one feature."""
    site.one(value)
    return value


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
    return concat(site, values) if site.value("merge") == "concat" else site.total(values)


def concat(site: Site, values: list[Value]) -> Value:
    """Return the concatenation of features in order."""
    nodes = [site.one(value) for value in values]
    return {"feature": nodes[0] if len(nodes) == 1 else site.join(Term("concat"), nodes)}


def repeat(site: Site, *inputs: Value) -> Meaning:
    """One child n times in a row, each an occurrence of its own; an inherited stride goes to the first."""
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

    Which layer brings the older input to the newer one's size follows from the sizes, hence from what comes before.
    Layers inside inherit the cell's channels; without a number for them that matters only where some layer in the cell
    changes the channels, since all others have them anyway.
    """
    channels = site.context.channels
    if channels is None and site.changes_channels():
        channels = CELL
    states: list[Value] = []
    for number, value in enumerate((before, last)):
        name = f"preprocess_{number}"
        states.append(site.operation(Term(name, (), site.inherited("channels", "affine")), value, local=name))
    for index in range(len(site.term.children)):
        states.append((yield site.child(index, *states, channels=channels, stride=site.context.stride)))
    return concat(site, states[2:])


def node(site: Site, *inputs: Value) -> Meaning:
    """The sum of its edges, type by type."""
    values = []
    for index in range(len(site.term.children)):
        values.append((yield site.child(index, *inputs)))
    return site.total(values)


def on(site: Site, *inputs: Value) -> Meaning:
    """A child applied to value `src`; the inherited stride applies to the two inputs of a cell only."""
    source = site.value("src")
    if not 0 <= source < len(inputs):
        site.fail(f"on(..., src={source}) stands where the values 0 to {len(inputs) - 1} are offered")
    result: Value = yield site.child(0, inputs[source], stride=site.context.stride if source < 2 else 1)
    return result


def hblock(site: Site, *inputs: Value) -> Meaning:
    """The heterogeneous residual block: features, attentions and kernels of each tier combined at one node."""
    gathered = yield site.child(0, *inputs)
    if "feature" not in gathered:
        names = " and ".join(sorted(gathered))
        site.fail(f"hblock needs at least one feature operation in its first tier, which gives {names}")
    surrogate = combined(site, 1, gathered)
    refined = yield site.child(1, surrogate, stride=1)
    if set(refined) == {"feature"}:
        return combined(site, 2, refined)
    return combined(site, 2, {**refined, "surrogate": surrogate["feature"]})


def combined(site: Site, tier: int, parts: Value) -> Value:
    """Return X + X*A + X(*)D for the attention A and the kernel D that are there; X may be the surrogate."""
    if len(parts) == 1 and not site.term.attributes:
        return {"feature": parts["feature"]}
    attributes = {**dict(site.term.attributes), "tier": tier, "types": tuple(sorted(parts))}
    label = Term("hblock", (), attributes)
    return {"feature": site.join(label, [parts[type_name] for type_name in sorted(parts)])}


def given(site: Site, *inputs: Value) -> Meaning:
    """The child with other inherited values."""
    inherited: dict[str, Any] = dict(site.term.attributes)
    result: Value = yield site.child(0, *inputs, **inherited)
    return result


def tap(site: Site, *inputs: Value) -> Meaning:
    """The input goes on unchanged; the child's value becomes a side output."""
    site.tap(site.value("name"), (yield site.child(0, *inputs, stride=1)))
    return inputs[-1]


def choice(site: Site, *inputs: Value) -> Meaning:
    """A node with a slot for each alternative; alternatives of several types make a node for each type."""
    values = []
    for index in range(len(site.term.children)):
        values.append((yield site.child(index, *inputs)))
    return decided(site, values)


def pick(site: Site, *inputs: Value) -> Meaning:
    """A node with a slot for each edge, of which a derivation keeps k."""
    keep, count = site.value("k"), len(site.term.children)
    if keep > count:
        site.fail(f"pick keeps k={keep} of its children and has {count}")
    values = []
    for index in range(count):
        values.append((yield site.child(index, *inputs)))
    return decided(site, values)


def decided(site: Site, values: list[Value]) -> Value:
    """Return the node of an open decision, one for each type among the alternatives."""
    label = Term(site.term.name, (), site.term.attributes)
    types = dict.fromkeys(type_name for value in values for type_name in value)
    return {name: site.join(label, [value.get(name) for value in values], name) for name in types}


def motifs(site: Site, *inputs: Value) -> Meaning:
    """Cells side by side, each on the same inputs: they are no network, and a node keeps them in order."""
    nodes = []
    for index in range(len(site.term.children)):
        nodes.append(site.one((yield site.child(index, *inputs))))
    return {"feature": site.join(Term("motifs"), nodes)}
