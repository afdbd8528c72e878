"""The builder: folds a term into its graph without recursion.

Every wiring's `"graph"` meaning gets a `Site` (its occurrence) and the values it is applied to; it is a generator that
yields the calls of its children and receives their values, exactly as in the program meaning, so a term may be 100,000
deep. A primitive is one labelled edge unless it declares otherwise. Nothing here knows a particular operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import fields, replace
from types import GeneratorType
from typing import Any, NoReturn, TypeAlias

from eclose.algebra.declarations import Operator
from eclose.algebra.errors import LimitError, TermError
from eclose.algebra.paths import below, label
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.terms import Term, distinct, refuse_beyond
from eclose.algebra.terms import Value as AttributeValue
from eclose.meanings.graph.graph import IDENTITY, INPUT, OPERATION, SUM, Edge, Graph, Node
from eclose.meanings.program.emitter import Context

EDGE_LIMIT = 2_000_000

Value: TypeAlias = Mapping[str, int]  # type -> node; more than one entry is a bundle
PLAIN = "feature"
APART = ("attention", "kernel")  # types that are never added to a feature
_SUM, _LINK = Term(SUM), Term("id")
_NOTHING = {field.name: field.default for field in fields(Context)}


class Call:
    """A wiring's request to evaluate a term on some values; its value is sent back into the wiring."""

    __slots__ = ("context", "inputs", "path", "take_stride", "term")

    def __init__(self, term: Term, inputs: tuple[Value, ...], context: Context, path: str):
        self.term, self.inputs, self.context, self.path = term, inputs, context, path
        self.take_stride = True  # False afterwards, where the term has no use for the inherited stride


class Site:
    """One occurrence of an operator, as its meaning sees it."""

    __slots__ = ("_builder", "context", "operator", "path", "term")

    def __init__(self, builder: Builder, operator: Operator, call: Call):
        self._builder = builder
        self.operator, self.term, self.context, self.path = operator, call.term, call.context, call.path

    def value(self, key: str) -> Any:
        """Return an attribute's value: what the term sets, else the default, else None (inherited)."""
        given = self.term.get(key)
        return given if given is not None else self.operator.attributes[key].default

    def child(self, index: int, *inputs: Value, copy: int | None = None, **changes: Any) -> Call:
        """Return the call of child `index`; `copy` tells repeated evaluations of one child apart."""
        term = self.term.children[index]
        context = replace(self.context, **changes) if changes else self.context
        return Call(term, inputs, context, below(self.path, label(term.name, index if copy is None else copy)))

    def operation(self, name: Term, *inputs: Value, kind: str = OPERATION, type: str = PLAIN, local: str = "") -> Value:
        """Add an operation and return its value; several inputs are stacked in order first."""
        builder = self._builder
        if len(inputs) == 1:
            source = self.one(inputs[0])
        else:
            source = self.join(Term("stack"), [self.one(value) for value in inputs])
        target = builder.node(Node(_SUM, 1, type))
        builder.edge(Edge(source, target, name, 0, kind, below(self.path, local) if local else self.path))
        return {type: target}

    def changes_channels(self) -> bool:
        """Return whether any operation in this term may give other channels than it is given."""
        return self._builder.changes_channels(self.term)

    def inherited(self, *keys: str) -> dict[str, AttributeValue]:
        """Return those of the inherited values that differ from having none."""
        return {
            key: value for key in keys if (value := getattr(self.context, key)) is not None and value != _NOTHING[key]
        }

    def total(self, values: Sequence[Value]) -> Value:
        """Return the sum of values, type by type."""
        found: dict[str, list[int]] = {}
        for value in values:
            for type_name, node in value.items():
                found.setdefault(type_name, []).append(node)
        return {type_name: self._builder.sum(nodes, type_name) for type_name, nodes in found.items()}

    def join(self, name: Term, operands: Sequence[int | None], type: str = PLAIN) -> int:
        """Return a node that keeps its operands apart, in order; None leaves a slot empty."""
        builder = self._builder
        node = builder.node(Node(name, len(operands), type))
        for slot, operand in enumerate(operands):
            if operand is not None:
                builder.edge(Edge(operand, node, _LINK, slot, IDENTITY, self.path))
        return node

    def tap(self, name: str, value: Value) -> None:
        """Make a value a side output."""
        builder = self._builder
        node = self.join(Term("tap", (), {"name": name}), [self.one(value)])
        if any(builder.nodes[other].label is builder.nodes[node].label for other in builder.taps):
            self.fail(f"two taps are named {name!r}")
        builder.taps.append(node)

    def one(self, value: Value) -> int:
        """Return the node of a value that must be a single feature."""
        if len(value) != 1:
            self.fail(f"a mixture of {' and '.join(sorted(value))} came where a feature is needed")
        type_name, node = next(iter(value.items()))
        if type_name in APART:
            self.fail(f"{'an' if type_name == 'attention' else 'a'} {type_name} came where a feature is needed")
        return node

    def fail(self, message: str) -> NoReturn:
        """Raise a located error."""
        raise TermError(f"at {self.path or self.operator.name}: {message}")


Meaning = Generator[Call, Value, Value]


class Builder:
    """Collects the nodes and edges of one graph."""

    def __init__(self, registry: Registry, opaque: Mapping[Term, Term]):
        self.registry, self.opaque = registry, opaque
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.taps: list[int] = []
        self._arriving: list[list[int]] = []  # edges by target
        self._shared: list[bool] = []  # whether somebody may still read the node, so that it must stay itself
        self._meanings: dict[str, Any] = {}
        self._changing: dict[Term, bool] = {}

    def node(self, node: Node) -> int:
        """Add a node and return its number."""
        self.nodes.append(node)
        self._arriving.append([])
        self._shared.append(False)
        return len(self.nodes) - 1

    def edge(self, edge: Edge) -> None:
        """Add an edge."""
        if len(self.edges) >= EDGE_LIMIT:
            raise LimitError(f"this graph has more than {EDGE_LIMIT:,} edges")
        self._arriving[edge.target].append(len(self.edges))
        self._shared[edge.source] = True
        self.edges.append(edge)

    def sum(self, nodes: Sequence[int], type: str) -> int:
        """Return the node where these values are added: the sinks of children become one node."""
        if len(nodes) == 1:
            return nodes[0]
        counts = Counter(nodes)
        free = {n for n, count in counts.items() if count == 1 and not self._shared[n] and self.nodes[n].merge == SUM}
        target = max(free, key=lambda n: (len(self._arriving[n]), -n)) if free else self.node(Node(_SUM, 1, type))
        for node in nodes:
            if node == target:
                continue
            if node in free:  # the shorter lists move, so a deep nest of sums stays cheap
                for index in self._arriving[node]:
                    self.edges[index] = self.edges[index]._replace(target=target)
                self._arriving[target].extend(self._arriving[node])
                self._arriving[node] = []
            else:
                self.edge(Edge(node, target, _LINK, 0, IDENTITY))
        return target

    def changes_channels(self, term: Term) -> bool:
        """Return whether any operation in a term may give other channels than it is given."""
        known = self._changing
        for node in distinct(term, known=known.__contains__):
            operator = self.registry.operator(node.name)
            changing = node.get("channels") is not None or node.get("merge") == "concat"
            if not operator.is_wiring:
                changing = changing or "shape-keeping" not in operator.tags
            known[node] = changing or any(known[child] for child in node.children)
        return known[term]

    def run(self, term: Term, inputs: tuple[Value, ...], context: Context) -> Value:
        """Add the edges of a term applied to values; an explicit stack stands for the recursion."""
        stack: list[tuple[Meaning, Call]] = []
        call: Call | None = Call(term, inputs, context, "")
        result: Value | None = None
        while call is not None or stack:
            if call is not None:
                started = self._start(call)
                if isinstance(started, GeneratorType):
                    stack.append((started, call))
                    result, call = None, None
                else:
                    result, call = self._passed(call, started), None
                    continue
            generator, made = stack[-1]
            try:
                call = generator.send(result) if result is not None else next(generator)
            except StopIteration as stop:
                stack.pop()
                result = self._passed(made, stop.value)
        assert result is not None
        return result

    def _passed(self, call: Call, result: Value) -> Value:
        """Mark nodes that a child hands through: whoever gave them may read them again."""
        for value in call.inputs:
            for type_name, node in value.items():
                if result.get(type_name) == node:
                    self._shared[node] = True
        return result

    def _start(self, call: Call) -> Any:
        name = call.term.name
        operator = self.registry.operator(name)
        site = Site(self, operator, call)
        inputs = call.inputs
        if operator.inputs is not None and len(inputs) > operator.inputs:
            inputs = inputs[len(inputs) - operator.inputs :]  # a chain inside a cell of two inputs sees the last one
        if operator.inputs is not None and len(inputs) < operator.inputs:
            site.fail(f"{name} takes {operator.inputs} inputs and is given {len(inputs)}")
        shown = self.opaque.get(call.term)
        if shown is not None:
            return site.operation(shown, *inputs)
        if operator.is_wiring and not call.term.children:  # a folded term: its root's name stands for the subterm
            return site.operation(call.term, *inputs)
        meaning = self._meanings.get(name)
        if meaning is None:
            meaning = self._meanings[name] = _meaning(operator)
        if not operator.is_wiring:
            call.take_stride = takes_stride(operator)
        return meaning(site, *inputs)


def takes_stride(operator: Operator) -> bool:
    """Return whether a primitive has a use for an inherited stride."""
    attribute = operator.attributes.get("stride")
    return attribute is not None and attribute.default is None


def _meaning(operator: Operator) -> Any:
    if "graph" not in operator.meanings and not operator.is_wiring:
        from eclose.meanings.graph.primitives import primitive

        return primitive
    return operator.meaning("graph")


def inputs_of(term: Term, registry: Registry) -> int:
    """Return how many inputs a term asks for: two for a DARTS cell, one for a network, what `on` names for a node."""
    count = 1
    stack, seen = [term], {id(term)}
    while stack:
        node = stack.pop()
        operator = registry.operator(node.name)
        if operator.inputs is not None:
            count = max(count, operator.inputs)
            continue
        if "src" in operator.attributes:
            count = max(count, int(node.get("src", 0)) + 1)
            continue
        children = node.children[:1] if operator.result == "child" else node.children  # a chain's start sees the inputs
        for child in children:
            if id(child) not in seen:
                seen.add(id(child))
                stack.append(child)
    return count


def term_graph(
    term: Term,
    registry: Registry | None = None,
    *,
    context: Mapping[str, Any] | None = None,
    opaque: Mapping[Term, Term] | None = None,
) -> Graph:
    """Return the edge-labelled graph of a term, by substituting each child for the edge it stands on.

    Args:
        term: a normalised term.
        registry: the operators; by default those that ship.
        context: what the whole term inherits (`channels`, `stride`, `affine`, ...).
        opaque: subterms to be taken as single operations, with the labels to give them.
    """
    registry = registry if registry is not None else default_registry()
    if not opaque:
        refuse_beyond(term)
    builder = Builder(registry, opaque or {})
    inputs = [builder.node(Node(Term(INPUT, (), {"number": n}), 0)) for n in range(inputs_of(term, registry))]
    value = builder.run(term, tuple({PLAIN: node} for node in inputs), Context(**(context or {})))
    if len(value) == 1:
        sink = next(iter(value.values()))
    else:
        types = sorted(value)
        bundle = Site(builder, registry.operator(term.name), Call(term, (), Context(), ""))
        sink = bundle.join(Term("bundle", (), {"types": tuple(types)}), [value[type_name] for type_name in types])
    return _ordered(builder, inputs, sink)


def _ordered(builder: Builder, inputs: list[int], sink: int) -> Graph:
    """Return the finished graph with nodes numbered in topological order, leaving out nodes that became others."""
    waiting = [0] * len(builder.nodes)
    leaving: list[list[int]] = [[] for _ in builder.nodes]
    used = [False] * len(builder.nodes)
    for number in (*inputs, sink, *builder.taps):
        used[number] = True
    for edge in builder.edges:
        waiting[edge.target] += 1
        leaving[edge.source].append(edge.target)
        used[edge.source] = used[edge.target] = True
    order = [number for number in range(len(waiting)) if used[number] and not waiting[number]]
    for number in order:  # grows while it is walked
        for target in leaving[number]:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    numbers = {number: position for position, number in enumerate(order)}
    edges = [edge._replace(source=numbers[edge.source], target=numbers[edge.target]) for edge in builder.edges]
    edges.sort(key=lambda edge: (edge.target, edge.slot))
    return Graph(
        nodes=tuple(builder.nodes[number] for number in order),
        edges=tuple(edges),
        inputs=tuple(numbers[number] for number in inputs),
        sink=numbers[sink],
        taps=tuple(numbers[number] for number in builder.taps),
    )


def folded(term: Term, depth: int) -> Term:
    """Return the term cut below a depth: the operators of the first levels, deeper subterms replaced by their roots.

    `depth` 1 leaves the root alone. The result is not a normalised term, but `term_graph` takes it: an operator
    without its children is one operation of that name.
    """
    if depth < 1:
        raise TermError(f"a term is folded at depth 1 or more, not {depth}")
    cut: dict[tuple[int, int], Term] = {}
    stack = [(term, depth, False)]
    while stack:
        node, left, done = stack.pop()
        key = (id(node), left)
        if key in cut:
            continue
        if left == 1 or not node.children:
            cut[key] = Term(node.name, (), node.attributes) if node.children else node
        elif done:
            cut[key] = node.replace(children=tuple(cut[id(child), left - 1] for child in node.children))
        else:
            stack.append((node, left, True))
            stack.extend((child, left - 1, False) for child in node.children)
    return cut[id(term), depth]
