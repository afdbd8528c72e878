"""Canonical forms against brute-force isomorphism and against what networks compute."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

import networkx
import pytest
import torch

import eclose
from eclose.meanings.graph import canonical, duplicate_key, term_graph
from eclose.meanings.torch.build import build
from eclose.spaces.nasbench_strings import nb201_operations, nb201_unique_string
from support.random_terms import random_cases

CELLS = list(eclose.space("nasbench201").enumerate())


def computed(cell) -> networkx.DiGraph:
    """Return the operations that reach a cell's output, with how often each feeds which other one: by hand."""
    operations = iter(nb201_operations(cell))
    graph = networkx.DiGraph()
    graph.add_node("input", label="input")
    values: list[Counter] = [Counter({"input": 1})]
    for node in range(1, 4):
        total: Counter = Counter()
        for source in range(node):
            operation = next(operations)
            if operation == "none" or not values[source]:
                continue
            if operation == "skip_connect":
                total += values[source]
                continue
            name = (node, source)
            graph.add_node(name, label=operation)
            for feeding, times in values[source].items():
                graph.add_edge(feeding, name, times=times)
            total[name] += 1
        values.append(total)
    graph.add_node("output", label="output")
    for feeding, times in values[3].items():
        graph.add_edge(feeding, "output", times=times)
    alive = networkx.ancestors(graph, "output") | {"output"}
    return graph.subgraph(alive).copy()


def same(one: networkx.DiGraph, other: networkx.DiGraph) -> bool:
    return networkx.is_isomorphic(
        one,
        other,
        node_match=lambda a, b: a["label"] == b["label"],
        edge_match=lambda a, b: a["times"] == b["times"],
    )


def invariant(graph: networkx.DiGraph) -> tuple:
    return tuple(
        sorted(
            (
                data["label"],
                *(
                    tuple(sorted(e["times"] for *_, e in edges))
                    for edges in (graph.in_edges(n, data=True), graph.out_edges(n, data=True))
                ),
            )
            for n, data in graph.nodes(data=True)
        )
    )


def check_partition(cells) -> int:
    groups: dict[tuple, list[tuple[networkx.DiGraph, str]]] = defaultdict(list)
    keys = set()
    for cell in cells:
        graph, key = computed(cell), duplicate_key(cell)
        classes = groups[invariant(graph)]
        equal = [other for representative, other in classes if same(graph, representative)]
        assert equal in ([], [key]), cell
        if not equal:
            assert key not in keys, cell  # networks that differ never meet
            classes.append((graph, key))
            keys.add(key)
    return len(keys)


def test_keys_of_all_cells_are_classes_of_isomorphism():
    # 5,425 networks with multiplicities kept: contracting an edge of two summing nodes would merge some of them.
    assert check_partition(CELLS) == 5_425


def test_the_benchmark_tells_cells_apart_by_its_own_string():
    assert len({nb201_unique_string(cell) for cell in CELLS}) == 6_466


EQUAL = [
    ("Sequential(conv, Sequential(relu, conv))", "Sequential(Sequential(conv, relu), conv)"),
    ("Parallel(conv, relu)", "Parallel(relu, conv)"),
    ("Parallel(conv, Parallel(relu, id))", "Parallel(id, relu, conv)"),
    ("Sequential(conv, id)", "conv"),
    ("Parallel(conv, zero)", "conv"),
    ("Residual(conv, zero, relu)", "Sequential(conv, relu)"),
    ("Parallel(conv, Sequential(zero, relu))", "conv"),
]
DIFFERENT = [
    ("Parallel(id, id)", "id"),
    ("Parallel(conv, conv)", "conv"),
    ("Parallel(Sequential(conv, relu), Sequential(conv, tanh))", "Sequential(conv, Parallel(relu, tanh))"),
    ("conv(kernel=3)", "conv(kernel=5)"),
    ('Parallel(conv, relu, merge="concat")', 'Parallel(relu, conv, merge="concat")'),
    ("BinaryTopo(sub, conv, relu, id, id)", "BinaryTopo(sub, relu, conv, id, id)"),
    ("Sequential(conv, relu)", "Sequential(relu, conv)"),
    ("Residual(conv, id, relu)", "Residual(conv, relu, relu)"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_networks_have_equal_keys(one, other):
    assert duplicate_key(eclose.parse(one)) == duplicate_key(eclose.parse(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_networks_never_meet(one, other):
    assert duplicate_key(eclose.parse(one)) != duplicate_key(eclose.parse(other))


def test_terms_with_one_key_compute_the_same_with_their_weights_in_some_order():
    groups = defaultdict(list)
    for cell in Random(3).sample(CELLS, 4_000):
        groups[duplicate_key(cell)].append(cell)
    pairs = [tuple(cells[:2]) for cells in groups.values() if len(cells) > 1]
    for one, other in Random(4).sample(pairs, 10):
        nets = []
        for cell in (one, other):
            net = build(eclose.parse(f"Sequential({cell}, relu)"), input=(4, 6, 6), registry=None).double().eval()
            with torch.no_grad():
                for parameter in net.parameters():
                    if parameter.dim() > 1:  # a batch norm keeps its bias of 0: what a dead branch gives is nothing
                        parameter.fill_(0.01 * parameter.numel() ** 0.5)  # equal layers get equal weights
            nets.append(net)
        x = torch.randn(2, 4, 6, 6, dtype=torch.float64)
        assert torch.allclose(nets[0](x), nets[1](x), rtol=1e-9, atol=1e-12)


def test_the_key_does_not_depend_on_the_order_of_parallel_branches():
    rng = Random(5)
    for case in random_cases(6, 25, choices=False):
        term = case.term

        def shuffled(node, children):
            if node.name == "Parallel" and node.get("merge", "sum") == "sum":
                children = rng.sample(children, len(children))
            return node.replace(children=tuple(children))

        other = eclose.algebra.terms.fold(term, shuffled)
        assert duplicate_key(term) == duplicate_key(other)


def test_pruned_and_contracted_graphs_keep_paths():
    graph = term_graph(eclose.parse("Cell(conv, zero, id, zero, zero, relu)"))
    assert [str(edge.label) for edge in graph.pruned().edges] != []
    assert not canonical(eclose.parse("Cell(zero, zero, id, zero, zero, relu)")).operands[-1]
