"""The canonical form of a term and its duplicate key: what two terms have in common that are the same network.

A term's graph is pruned, identities are contracted by multiplicity, and the operations are numbered canonically. Two
terms have equal keys where their node-labelled graphs are isomorphic: nested `Sequential`s, the order of parallel
branches, the nesting of sums and dead branches make no difference, while x + x stays different from x and every
occurrence of a layer keeps weights of its own. Nothing else is merged.
"""

from __future__ import annotations

from hashlib import blake2b

from eclose.algebra.errors import LimitError
from eclose.algebra.registry import Registry
from eclose.algebra.terms import Term, tagged
from eclose.meanings.graph.builder import term_graph
from eclose.meanings.graph.graph import Graph
from eclose.meanings.graph.operation_graph import OperationGraph, operation_graph
from eclose.meanings.graph.refinement import canonical_order

EMPTY = "empty"


def canonical_graph(graph: Graph) -> OperationGraph:
    """Return the canonical node-labelled form of a graph.

    Where writing out the sums would take too much room, sums keep nodes of their own; then terms that differ only in
    how they nest sums may stay apart, but different networks still never meet.
    """
    pruned = graph.pruned()
    try:
        found = operation_graph(pruned)
    except LimitError:
        found = operation_graph(pruned.contracted(), contract=False)
    ordered = found.reordered(canonical_order(found))
    return OperationGraph(ordered.labels, ordered.operands)


def canonical(term: Term, registry: Registry | None = None) -> OperationGraph:
    """Return the canonical form of a term: equal for two terms that are the same network."""
    return canonical_graph(term_graph(term, registry))


def key_of(form: OperationGraph) -> str:
    """Return a key of 32 hexadecimal digits for a canonical form, or `"empty"` where no path reaches the output."""
    if form.is_empty:
        return EMPTY
    digest = blake2b(digest_size=16)
    for label, operands in zip(form.labels, form.operands, strict=True):
        attributes = [(key, tagged(value)) for key, value in label.attributes]
        digest.update(repr((label.name, attributes, operands)).encode())
    return digest.hexdigest()


def duplicate_key(term: Term, registry: Registry | None = None) -> str:
    """Return a key that is equal for two terms that are the same network, and for no others.

    Exact up to a collision of a 128-bit digest. The key is the same in every process and version of Python.
    """
    return key_of(canonical(term, registry))
