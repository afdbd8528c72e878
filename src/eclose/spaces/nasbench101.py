"""NAS-Bench-101 notation: adjacency matrix and list of operations, to and from cells (Ying et al., 2019).

Vertex 0 is the cell's input, the last one its output, and those between apply one operation to the sum of what
arrives. NAS-Bench-1Shot1 gives cells of four blocks an unused vertex, so that all its cells have seven. Nothing here
knows which cells a space holds or how a network is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from eclose.algebra.errors import TermError, did_you_mean, shortened
from eclose.algebra.terms import Term
from eclose.spaces._terms import term

Matrix: TypeAlias = tuple[tuple[int, ...], ...]

INPUT, OUTPUT = "input", "output"
OPERATIONS = {
    "maxpool3x3": "maxpool3x3",
    "conv3x3-bn-relu": "conv3x3_bn_relu",
    "conv1x1-bn-relu": "conv1x1_bn_relu",
}
PADDING = "conv1x1-bn-relu"  # how the unused vertex is labelled
PADDED = 7


@cache
def _operations() -> dict[str, Term]:
    return {label: term(name) for label, name in OPERATIONS.items()}


def read_nb101(matrix: Sequence[Sequence[int]], operations: Sequence[str]) -> Term:
    """Return the cell of an adjacency matrix and its vertices' labels; vertices without any edge are left out.

    Args:
        matrix: upper triangular, 1 where an edge leads from the row's vertex to the column's.
        operations: `"input"`, one of `maxpool3x3`, `conv3x3-bn-relu`, `conv1x1-bn-relu` for each block, `"output"`.
    """
    count = len(operations)
    rows = [[int(entry) for entry in row] for row in matrix]
    if count < 3 or len(rows) != count or any(len(row) != count for row in rows):
        raise TermError(f"{count} operations need a {count} x {count} adjacency matrix of at least three vertices")
    if any(rows[i][j] not in (0, 1) or (rows[i][j] and i >= j) for i in range(count) for j in range(count)):
        raise TermError("the adjacency matrix must hold 0 and 1, with edges from lower to higher vertices only")
    if operations[0] != INPUT or operations[-1] != OUTPUT:
        raise TermError(f"the first operation is 'input' and the last 'output', not {shortened(str(list(operations)))}")
    used = [v for v in range(count) if v in (0, count - 1) or any(rows[v]) or any(row[v] for row in rows)]
    parents = [[used.index(u) for u in used if rows[u][v]] for v in used]
    blocks = len(used) - 2
    for number, (vertex, arriving) in enumerate(zip(used, parents, strict=True)):
        if number and not arriving:
            raise TermError(f"nothing arrives at vertex {vertex} ({operations[vertex]})")
    children = []
    for number in range(1, blocks + 1):
        label = operations[used[number]]
        if label not in OPERATIONS:
            hint = did_you_mean(label, OPERATIONS) or f" (known: {', '.join(OPERATIONS)})"
            raise TermError(f"unknown NAS-Bench-101 operation {label!r}{hint}")
        edges = [edge(source) for source in parents[number]]
        before = edges[0] if number == 1 else term("node", *edges)
        children.append(term("Sequential", before, _operations()[label]))
    outputs = [output_edge(source, blocks) for source in parents[-1]]
    return term("dag_cell", *children, term("node", *outputs))


def nb101(cell: Term, *, padded: bool = False) -> tuple[Matrix, tuple[str, ...]]:
    """Return a cell's adjacency matrix and labels.

    Args:
        cell: `dag_cell(Sequential(node(on(...), ...), operation), ..., node(on(...), ...))`.
        padded: whether a cell of four blocks gets the unused vertex 5 that makes its vertices seven.
    """
    if cell.name != "dag_cell" or len(cell.children) < 2:
        raise TermError(f"a NAS-Bench-101 cell is dag_cell(block, ..., output), not {shortened(str(cell))}")
    *blocks, last = cell.children
    labels = {operation: label for label, operation in _operations().items()}
    parents, operations = [], [INPUT]
    for number, block in enumerate(blocks, 1):
        if block.name != "Sequential" or len(block.children) != 2 or block.children[1] not in labels:
            raise TermError(f"block {number} must be Sequential(inputs, operation), not {shortened(str(block))}")
        parents.append(_sources(block.children[0], number))
        operations.append(labels[block.children[1]])
    parents.append(_sources(last, len(blocks) + 1))
    operations.append(OUTPUT)
    unused = len(blocks) + 1 if padded and len(operations) == PADDED - 1 else None
    if unused is not None:
        operations.insert(unused, PADDING)
    count = len(operations)
    rows = [[0] * count for _ in range(count)]
    for number, sources in enumerate(parents, 1):
        column = count - 1 if number == len(parents) else number
        for source in sources:
            rows[source][column] = 1
    return tuple(tuple(row) for row in rows), tuple(operations)


def edge(source: int) -> Term:
    """Return what arrives at a block: the input through a 1x1 convolution, or an earlier block."""
    return term("on", term("conv1x1_bn_relu" if source == 0 else "id"), src=source)


def output_edge(source: int, blocks: int) -> Term:
    """Return what arrives at the output: the input through wide 1x1 convolutions, or a block in its part."""
    if source == 0:
        wide = term("Parallel", *(term("conv1x1_bn_relu") for _ in range(blocks)), merge="concat")
        return term("on", wide, src=0)
    return term("on", term("slot", index=source - 1, count=blocks), src=source)


def _sources(node: Term, number: int) -> tuple[int, ...]:
    edges = node.children if node.name in ("node", "pick") else (node,)
    sources = tuple(int(item.get("src", -1)) for item in edges)
    if any(item.name != "on" for item in edges) or len(set(sources)) < len(sources) or max(sources) >= number:
        raise TermError(
            f"vertex {number} must add up different earlier values, on(...) each, not {shortened(str(node))}"
        )
    return sources


__all__ = ["edge", "nb101", "output_edge", "read_nb101"]
