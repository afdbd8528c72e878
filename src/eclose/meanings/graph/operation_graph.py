"""The node-labelled form of a graph: one node for each operation, with identities contracted by multiplicity.

Every operand of an operation is a sum of other operations' values, written as `(operation, multiplicity)` pairs. In
this form sums have no nodes of their own, so neither their nesting nor identities between them can be told apart, while
x + x keeps multiplicity 2. Two terms compute the same network, whatever their operations do, exactly where their
node-labelled forms are isomorphic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from eclose.algebra.errors import LimitError
from eclose.algebra.terms import Term
from eclose.meanings.graph.graph import IDENTITY, SUM, Edge, Graph

LIMIT = 2_000_000

Operand: TypeAlias = tuple[tuple[int, int], ...]  # (operation, multiplicity), by operation
OUTPUT = Term("output")


@dataclass(frozen=True)
class OperationGraph:
    """Operations in topological order, inputs first and `output` last.

    Attributes:
        labels: what each is, as a term without children.
        operands: for each its operands in order; an input has none.
        paths: where each stands in the term, `""` where that has no meaning.
    """

    labels: tuple[Term, ...]
    operands: tuple[tuple[Operand, ...], ...]
    paths: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_empty(self) -> bool:
        """Whether nothing reaches the output."""
        return not any(self.operands[-1])

    def links(self) -> list[tuple[int, int, int, int]]:
        """Return `(operation, consumer, slot, multiplicity)` for every use of a value."""
        return [
            (operation, consumer, slot, multiplicity)
            for consumer, operands in enumerate(self.operands)
            for slot, operand in enumerate(operands)
            for operation, multiplicity in operand
        ]

    def reordered(self, order: list[int]) -> OperationGraph:
        """Return the same graph with operations in another order."""
        position = {operation: index for index, operation in enumerate(order)}
        return OperationGraph(
            labels=tuple(self.labels[operation] for operation in order),
            operands=tuple(
                tuple(
                    tuple(sorted((position[other], multiplicity) for other, multiplicity in operand))
                    for operand in self.operands[operation]
                )
                for operation in order
            ),
            paths=tuple(self.paths[operation] for operation in order) if self.paths else (),
        )

    def to_networkx(self) -> Any:
        """Return a `networkx.MultiDiGraph` with `label` on nodes and `slot`, `multiplicity` on edges."""
        import networkx as nx

        result = nx.MultiDiGraph()
        for number, label in enumerate(self.labels):
            result.add_node(number, label=str(label))
        for operation, consumer, slot, multiplicity in self.links():
            result.add_edge(operation, consumer, slot=slot, multiplicity=multiplicity)
        return result


def operation_graph(graph: Graph, *, contract: bool = True, limit: int = LIMIT) -> OperationGraph:
    """Return the node-labelled form of a graph.

    Args:
        graph: a graph, usually `pruned()`.
        contract: whether sums are written out; otherwise a sum of several values is a node of its own.
        limit: the largest number of operands that writing out may take (a chain of n skips takes about n^2 / 2).
    """
    labels: list[Term] = []
    operands: list[tuple[Operand, ...]] = []
    paths: list[str] = []
    values: list[dict[int, int]] = []
    written = 0
    arriving = graph.incoming()
    sum_label = Term(SUM)

    def add(label: Term, path: str, *slots: dict[int, int]) -> dict[int, int]:
        nonlocal written
        written += sum(map(len, slots))
        if written > limit:
            raise LimitError(f"the node-labelled form of this graph has more than {limit:,} operands")
        labels.append(label)
        paths.append(path)
        operands.append(tuple(tuple(sorted(slot.items())) for slot in slots))
        return {len(labels) - 1: 1}

    def brought(edge: Edge) -> dict[int, int]:
        value = values[edge.source]
        return value if edge.kind == IDENTITY else add(edge.label, edge.path, value)

    def summed(edges: list[Edge]) -> dict[int, int]:
        nonlocal written
        if len(edges) == 1:
            return brought(edges[0])
        total: dict[int, int] = {}
        for edge in edges:
            for operation, multiplicity in brought(edge).items():
                total[operation] = total.get(operation, 0) + multiplicity
        written += len(total) if contract else 0
        return total

    for number, node in enumerate(graph.nodes):
        if not node.slots:
            values.append(add(node.label, ""))
        elif node.is_join:
            slots: list[list[Edge]] = [[] for _ in range(node.slots)]
            for edge in arriving[number]:
                slots[edge.slot].append(edge)
            values.append(add(node.label, arriving[number][0].path, *map(summed, slots)))
        else:
            value = summed(arriving[number])
            several = not contract and len(arriving[number]) > 1
            values.append(add(sum_label, "", value) if several else value)
    add(OUTPUT, "", values[graph.sink])
    return OperationGraph(tuple(labels), tuple(operands), tuple(paths))
