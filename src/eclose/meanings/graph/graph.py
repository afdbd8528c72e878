"""The graph of a term: edges carry operations, nodes add up what arrives.

A graph has inputs (one, or two for a cell of the DARTS kind), one sink, and side outputs. Every edge carries a label (a
term without children) and enters one *slot* of its target: a sum has one slot, so whatever arrives there is added; a
concatenation, a binary function or a mixture has one slot for each of its operands, in order. Plain data: no registry,
no tensors, no graph library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from eclose.algebra.terms import Term

OPERATION, IDENTITY, ZERO, RANDOM = "operation", "identity", "zero", "random"
SUM, INPUT = "sum", "input"


class Node(NamedTuple):
    """One place where values meet.

    Attributes:
        label: `sum`, `input(number=0)`, `concat`, `stack`, `choice(...)`, ...
        slots: how many operands it tells apart; 1 for a sum.
        type: the type of its value where that is not a feature (`"attention"`, `"kernel"`).
    """

    label: Term
    slots: int = 1
    type: str = "feature"

    @property
    def merge(self) -> str:
        """How what arrives is merged: `"sum"`, `"concat"`, ..., or `"input"` where nothing arrives."""
        return self.label.name

    @property
    def is_join(self) -> bool:
        """Whether it is anything but a sum or an input, so that its operands cannot be regrouped."""
        return self.label.name not in (SUM, INPUT)


class Edge(NamedTuple):
    """One operation, applied to the value of `source` and given to slot `slot` of `target`.

    Attributes:
        label: the operation as a term without children; what it inherits is among its attributes.
        kind: `"identity"` and `"zero"` are what contraction and pruning remove; `"random"` ignores its input.
        path: where the operation stands in the term, as in the names of parameters.
    """

    source: int
    target: int
    label: Term
    slot: int = 0
    kind: str = OPERATION
    path: str = ""


@dataclass(frozen=True)
class Graph:
    """An edge-labelled directed acyclic multigraph; its nodes are numbered so that every edge leads to a larger one.

    Attributes:
        nodes: by number.
        edges: ordered by target, then slot, then as the term lists them.
        inputs: the numbers of the input nodes.
        sink: the node whose value the graph gives.
        taps: the nodes of side outputs.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    inputs: tuple[int, ...]
    sink: int
    taps: tuple[int, ...] = ()

    @property
    def source(self) -> int:
        """The only input, or the last of several."""
        return self.inputs[-1]

    @property
    def is_empty(self) -> bool:
        """Whether no path leads from an input to the sink, so that the sink's value is zero whatever comes in."""
        return not _alive(self)[self.sink]

    def __len__(self) -> int:
        return len(self.edges)

    def __iter__(self) -> Iterator[Edge]:
        return iter(self.edges)

    def incoming(self) -> list[list[Edge]]:
        """Return for every node the edges that arrive there."""
        found: list[list[Edge]] = [[] for _ in self.nodes]
        for edge in self.edges:
            found[edge.target].append(edge)
        return found

    def pruned(self) -> Graph:
        """Return the graph without `zero` edges and without what lies on no path from an input to an output.

        What only zeros reach counts as zero. A zero that fills a slot of a concatenation, a mixture or a binary
        function stays there with what it is made of, because its shape matters. Where nothing is left, the result is
        the inputs and a sink that nothing reaches (`is_empty`).
        """
        alive = _alive(self)
        if not alive[self.sink]:
            count = len(self.inputs)
            nodes = (*(self.nodes[number] for number in self.inputs), Node(Term(SUM)))
            return Graph(nodes, (), tuple(range(count)), count)
        kept = [edge for edge in self.edges if not _adds_nothing(self, alive, edge)]
        needed = [False] * len(self.nodes)
        for number in (self.sink, *self.taps, *self.inputs):
            needed[number] = True
        for edge in reversed(kept):  # ordered by target: every consumer is seen before its producers
            if needed[edge.target]:
                needed[edge.source] = True
        return _renumbered(self, (edge for edge in kept if needed[edge.target]), needed)

    def contracted(self) -> Graph:
        """Return the graph without the identities that change nothing.

        An identity that is all that arrives at a sum makes two nodes one, and a sum that only feeds another sum is
        part of it. An identity beside other operations stays: x + f(x) keeps its skip and x + x both its edges.
        `operation_graph` removes those too, by multiplicity.
        """
        same = list(range(len(self.nodes)))
        arriving = self.incoming()
        for number, node in enumerate(self.nodes):
            edges = arriving[number]
            if node.merge == SUM and len(edges) == 1 and edges[0].kind == IDENTITY:
                same[number] = same[edges[0].source]
                arriving[number] = []
        consumers = [0] * len(self.nodes)
        for edges in arriving:
            for edge in edges:
                consumers[same[edge.source]] += 1
        consumers[same[self.sink]] += 1
        for number, node in enumerate(self.nodes):
            if node.merge != SUM or not arriving[number]:
                continue
            parts, own = [], []
            for edge in arriving[number]:
                before = same[edge.source]
                whole = edge.kind == IDENTITY and self.nodes[before].merge == SUM and consumers[before] == 1
                if whole and arriving[before]:
                    parts.append(arriving[before])
                    arriving[before] = []
                else:
                    own.append(edge)
            if parts:
                parts.append(own)
                longest = max(parts, key=len)  # the smaller lists move, so a deep nest stays cheap
                for part in parts:
                    if part is not longest:
                        longest.extend(part)
                arriving[number] = longest
        edges = [
            edge._replace(source=same[edge.source], target=number)
            for number, found in enumerate(arriving)
            for edge in found
        ]
        used = [False] * len(self.nodes)
        for number in (same[self.sink], *self.taps, *self.inputs):
            used[number] = True
        for edge in edges:
            used[edge.source] = used[edge.target] = True
        return _renumbered(self, edges, used, same)

    def to_networkx(self) -> Any:
        """Return a `networkx.MultiDiGraph` with the attributes `label`, `merge`, `slots` on nodes and `label`, `slot`,
        `kind`, `path` on edges.
        """
        import networkx as nx

        result = nx.MultiDiGraph(sink=self.sink, inputs=self.inputs, taps=self.taps)
        for number, node in enumerate(self.nodes):
            result.add_node(number, label=str(node.label), merge=node.merge, slots=node.slots)
        for edge in self.edges:
            result.add_edge(
                edge.source, edge.target, label=str(edge.label), slot=edge.slot, kind=edge.kind, path=edge.path
            )
        return result


def _alive(graph: Graph) -> list[bool]:
    """Return for every node whether something other than a zero arrives there."""
    alive = [node.merge == INPUT for node in graph.nodes]
    for edge in graph.edges:
        if edge.kind == RANDOM or (edge.kind != ZERO and alive[edge.source]):
            alive[edge.target] = True
    return alive


def _adds_nothing(graph: Graph, alive: list[bool], edge: Edge) -> bool:
    """Return whether an edge brings a zero to a sum of other values."""
    if graph.nodes[edge.target].is_join or not alive[edge.target]:
        return False
    return edge.kind == ZERO or (edge.kind != RANDOM and not alive[edge.source])


def _renumbered(graph: Graph, edges: Iterable[Edge], kept: list[bool], same: list[int] | None = None) -> Graph:
    """Return the graph of some edges and nodes; the numbers of what is kept close up."""
    numbers = [-1] * len(graph.nodes)
    nodes: list[Node] = []
    for number, node in enumerate(graph.nodes):
        if kept[number]:
            numbers[number] = len(nodes)
            nodes.append(node)
    same = same if same is not None else list(range(len(numbers)))
    return Graph(
        nodes=tuple(nodes),
        edges=tuple(edge._replace(source=numbers[edge.source], target=numbers[edge.target]) for edge in edges),
        inputs=tuple(numbers[number] for number in graph.inputs),
        sink=numbers[same[graph.sink]],
        taps=tuple(numbers[number] for number in graph.taps),
    )
