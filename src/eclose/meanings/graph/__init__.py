"""Terms as graphs: edge-labelled, node-labelled, pruned, contracted, canonical."""

from eclose.meanings.graph.builder import folded, term_graph
from eclose.meanings.graph.canonical import canonical, canonical_graph, duplicate_key, key_of
from eclose.meanings.graph.graph import Edge, Graph, Node
from eclose.meanings.graph.operation_graph import OperationGraph, operation_graph

__all__ = [
    "Edge",
    "Graph",
    "Node",
    "OperationGraph",
    "canonical",
    "canonical_graph",
    "duplicate_key",
    "folded",
    "key_of",
    "operation_graph",
    "term_graph",
]
