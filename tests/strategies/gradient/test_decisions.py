"""From weights to decisions, against the derivation of the DARTS code written anew and against all selections."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from eclose.algebra.errors import RequestError
from eclose.spaces.genotypes import GENOTYPES, genotype_term, term_genotype
from eclose.spaces.s1_to_s4 import S1_NORMAL, S1_REDUCTION
from eclose.strategies.gradient.decisions import decide, kept_choices, skips_of, strongest
from eclose.strategies.gradient.supernet import Site
from support.small_supernets import search_of

NODES = (2, 3, 4, 5)
NAMES = {"zero": "none", "id": "skip_connect"}


def supernet(space: str, cells: int = 3, **settings):
    return search_of(space, subset=60, channels=4, cells=cells, **settings).made(0).supernet


@pytest.fixture(scope="module")
def darts():
    return supernet("darts")


@pytest.fixture(scope="module")
def with_none():
    return supernet("darts-with-none")


@pytest.fixture(scope="module")
def s1():
    return supernet("s1")


def random_scores(made, seed: int) -> dict[str, list[float]]:
    random = np.random.default_rng(seed)
    return {name: random.dirichlet(np.ones(site.count)).tolist() for name, site in made.weighted.items()}


def derived(made, scores, cell: str) -> list[tuple[str, int]]:
    """The derivation of the DARTS code: for each node the two edges whose best operation but `none` is strongest."""
    genotype = []
    for node in NODES:
        best = []
        for source in range(node):
            name = f"{cell}/{node}_{source}"
            labels = [NAMES.get(label, label) for label in made.sites[name].labels]
            values = [(scores[name][k], labels[k]) for k in range(len(labels)) if labels[k] != "none"]
            strength = max(value for value, _ in values)
            best.append((strength, source, next(label for value, label in values if value == strength)))
        kept = sorted(sorted(best, key=lambda edge: -edge[0])[:2], key=lambda edge: edge[1])
        genotype += [(label, source) for _, source, label in kept]
    return genotype


def genotype_of(made, decisions):
    return term_genotype(made.term(decisions))


# Cells of DARTS


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("space", ["darts", "with_none", "s1"])
def test_cells_are_those_of_the_darts_code(space, seed, request):
    made = request.getfixturevalue(space)
    scores = random_scores(made, seed)
    found = genotype_of(made, decide(made.sites, scores))
    assert list(found.normal) == derived(made, scores, "normal")
    assert list(found.reduce) == derived(made, scores, "reduction")


def test_none_is_never_selected_on_an_edge_however_strong_it_is(with_none):
    scores = random_scores(with_none, 0)
    without = decide(with_none.sites, scores)
    for name, site in with_none.weighted.items():
        scores[name][site.zeros[0]] = 1000.0
    decisions = decide(with_none.sites, scores)
    assert decisions == without  # neither the operations nor which edges are strongest
    assert "zero" not in str(with_none.term(decisions))


def test_outside_of_a_pick_none_is_an_alternative_like_any_other():
    made = search_of("nasbench201", subset=60, channels=4, cells=1).made(0).supernet
    scores = {name: [0.9 if label == "zero" else 0.025 for label in site.labels] for name, site in made.sites.items()}
    decisions = decide(made.sites, scores)
    assert all(made.sites[name].labels[kept[0]] == "zero" for name, kept in decisions.items())


def test_ties_go_to_the_first(darts):
    scores = {name: [0.5] * site.count for name, site in darts.weighted.items()}
    decisions = decide(darts.sites, scores)
    for name, site in darts.sites.items():
        assert decisions[name] == ((0,) if site.kind == "choice" else (0, 1))


def test_a_later_alternative_wins_by_the_smallest_margin(darts):
    scores = {name: [0.5] * site.count for name, site in darts.weighted.items()}
    scores["normal/4_2"][3] = np.nextafter(0.5, 1.0)
    decisions = decide(darts.sites, scores)
    assert decisions["normal/4_2"] == (3,)
    assert decisions["normal/4"] == (0, 2)


@pytest.mark.parametrize("name", sorted(GENOTYPES))
def test_published_genotypes_come_back_from_weights(name, darts):
    genotype = GENOTYPES[name]
    scores = {key: [0.1] * site.count for key, site in darts.weighted.items()}
    for cell, pairs in (("normal", genotype.normal), ("reduction", genotype.reduce)):
        for number, (operation, source) in enumerate(pairs):
            key = f"{cell}/{NODES[number // 2]}_{source}"
            labels = [NAMES.get(label, label) for label in darts.sites[key].labels]
            scores[key][labels.index(operation)] = 0.9
    assert darts.term(decide(darts.sites, scores)) == genotype_term(genotype)


def test_every_operation_of_s1_stands_on_its_own_edge(s1):
    """S1 offers other operations on every edge: which of them is selected must come from that edge's list."""
    tables = {"normal": S1_NORMAL, "reduction": S1_REDUCTION}
    for first in (0, 1):
        scores = {name: [0.9 - 0.8 * first, 0.1 + 0.8 * first] for name in s1.weighted}
        for kept in (0, 1):  # the first two edges, then the last two
            for name in scores:
                node, source = (int(part) for part in name.partition("/")[2].split("_"))
                last = source >= node - 2
                scores[name] = [value + 0.01 * (last if kept else source < 2) for value in scores[name]]
            found = genotype_of(s1, decide(s1.sites, scores))
            for cell, pairs in (("normal", found.normal), ("reduction", found.reduce)):
                for number, (operation, source) in enumerate(pairs):
                    assert operation == tables[cell][NODES[number // 2]][source][first]


def test_edges_are_as_strong_as_operation_times_own_weight():
    made = supernet("darts", edge_normalisation=True)
    random = np.random.default_rng(1)
    scores = {name: random.dirichlet(np.ones(site.count)).tolist() for name, site in made.weighted.items()}
    decisions = decide(made.sites, scores)
    for cell, node in product(("normal", "reduction"), NODES):
        own = scores[f"{cell}/{node}"]
        strengths = [own[source] * max(scores[f"{cell}/{node}_{source}"]) for source in range(node)]
        assert decisions[f"{cell}/{node}"] == tuple(sorted(np.argsort(-np.array(strengths))[:2].tolist()))


def test_strongest_edges_of_any_number():
    site = Site("node", "pick", tuple("abcde"), keep=3)
    assert strongest(site, [0.1, 0.5, 0.5, 0.9, 0.5]) == (1, 2, 3)


def test_what_is_fixed_stays_and_counts_with_its_own_weight(darts):
    scores = random_scores(darts, 3)
    fixed = {"normal/3_0": (5,), "reduction/5": (0, 4)}
    scores["normal/3_0"] = [0.9, 0.02, 0.02, 0.02, 0.02, 0.0, 0.02]
    decisions = decide(darts.sites, scores, fixed=fixed)
    assert decisions["normal/3_0"] == (5,)
    assert decisions["reduction/5"] == (0, 4)
    assert decisions["normal/3"] == (1, 2)  # with the weight of what it was fixed at, 0, the edge is the weakest


# Constraints


def best_cell(made, scores, cell: str, most: int) -> float:
    """Return the largest total strength of a cell's kept edges with so many skips, by looking at each node's edges."""
    best_by_count = {0: 0.0}
    for node in NODES:
        options: dict[int, float] = {}
        for pair in combinations(range(node), 2):
            edges = []
            for source in pair:
                name = f"{cell}/{node}_{source}"
                site = made.sites[name]
                edges.append([
                    (max(scores[name][k] for k in range(site.count) if (k in site.skips) == skip), skip)
                    for skip in (False, True)
                ])  # fmt: skip
            for (one, first), (other, second) in product(*edges):
                number = int(first) + int(second)
                options[number] = max(options.get(number, -1.0), one + other)
        together: dict[int, float] = {}
        for (had, total), (more, value) in product(best_by_count.items(), options.items()):
            together[had + more] = max(together.get(had + more, -1.0), total + value)
        best_by_count = together
    return max(value for count, value in best_by_count.items() if count <= most)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most", range(5))
def test_a_cell_has_no_more_skip_connections_than_it_may(darts, seed, most):
    random = np.random.default_rng(seed)
    scores = random_scores(darts, seed)
    for name, site in darts.weighted.items():
        scores[name][site.skips[0]] += float(random.uniform(0.0, 0.6))  # skips dominate, as they do
    free = decide(darts.sites, scores)
    decisions = decide(darts.sites, scores, most_skips=most)
    assert max(skips_of(darts.sites, free).values()) > 4
    assert max(skips_of(darts.sites, decisions).values()) <= most
    for cell in ("normal", "reduction"):
        total = sum(
            scores[name][decisions[name][0]] for name in kept_choices(darts.sites, decisions) if name.startswith(cell)
        )
        best = best_cell(darts, scores, cell, most)
        assert 0.9 * best <= total <= best + 1e-9  # it goes step by step, so it may miss the best a little


def test_where_there_are_few_skip_connections_nothing_changes(darts):
    scores = random_scores(darts, 5)
    free = decide(darts.sites, scores)
    limit = max(skips_of(darts.sites, free).values())
    assert decide(darts.sites, scores, most_skips=limit) == free


def test_the_strongest_skip_connections_are_those_that_stay():
    sites = {f"cell/{k}": Site(f"cell/{k}", "choice", ("id", "conv"), skips=(0,)) for k in range(4)}
    scores = {"cell/0": [0.9, 0.1], "cell/1": [0.6, 0.4], "cell/2": [0.8, 0.2], "cell/3": [0.3, 0.7]}
    found = decide(sites, scores, most_skips=2)
    assert [found[name][0] for name in sites] == [0, 1, 0, 1]


def test_cells_are_counted_apart():
    sites = {name: Site(name, "choice", ("id", "conv"), skips=(0,)) for name in ("a/0", "a/1", "b/0", "b/1")}
    scores = {"a/0": [0.9, 0.1], "a/1": [0.8, 0.2], "b/0": [0.9, 0.1], "b/1": [0.1, 0.9]}
    found = decide(sites, scores, most_skips=1)
    assert found == {"a/0": (0,), "a/1": (1,), "b/0": (0,), "b/1": (1,)}


def test_a_limit_that_cannot_be_had_is_refused():
    sites = {"a/0": Site("a/0", "choice", ("id",), skips=(0,))}
    with pytest.raises(RequestError, match="at most 0 skip connections cannot be had: 'a/0'"):
        decide(sites, {"a/0": [1.0]}, most_skips=0)


@pytest.mark.parametrize("stuck", ["fixed", "nothing else"])
def test_where_the_weakest_cannot_give_way_the_next_does(stuck):
    labels = ("id", "conv") if stuck == "fixed" else ("id",)
    sites = {
        "a/0": Site("a/0", "choice", labels, skips=(0,)),
        "a/1": Site("a/1", "choice", ("id", "conv"), skips=(0,)),
    }
    fixed = {"a/0": (0,)} if stuck == "fixed" else None
    scores = {"a/0": [0.6, 0.4][: len(labels)], "a/1": [0.9, 0.1]}
    assert decide(sites, scores, fixed=fixed, most_skips=1) == {"a/0": (0,), "a/1": (1,)}


@pytest.mark.parametrize("limits", [{"most_skips": 1}, {"least_features": 1}])
def test_limits_hold_for_cells_that_stand_nowhere(limits):
    """A supernet of one cell has no normal cell: its decisions have no weights, their first alternatives are taken."""
    made = supernet("s1", cells=1)
    features = {name: tuple(k for k, label in enumerate(site.labels) if "conv" in label)
                for name, site in made.sites.items() if site.kind == "choice"}  # fmt: skip
    decisions = decide(made.sites, random_scores(made, 0), features=features, **limits)
    kept = [name for name in kept_choices(made.sites, decisions) if name.startswith("normal")]
    assert sum(decisions[name][0] in made.sites[name].skips for name in kept) <= limits.get("most_skips", 8)
    assert sum(decisions[name][0] in features[name] for name in kept) >= limits.get("least_features", 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("least", range(6))
def test_operations_with_parameters_cost_the_least_that_is_possible(seed, least):
    """Against all selections of five edges."""
    random = np.random.default_rng(seed)
    labels, features = ("pool", "id", "conv", "sep_conv"), (2, 3)
    sites = {f"c/{k}": Site(f"c/{k}", "choice", labels, skips=(1,)) for k in range(5)}
    scores = {name: random.dirichlet(np.ones(4)).tolist() for name in sites}
    found = decide(sites, scores, least_features=least, features=dict.fromkeys(sites, features))
    total = sum(scores[name][found[name][0]] for name in sites)
    every = [
        sum(scores[name][k] for name, k in zip(sites, answers, strict=True))
        for answers in product(range(4), repeat=5)
        if sum(k in features for k in answers) >= least
    ]
    assert sum(found[name][0] in features for name in sites) >= least
    assert total == pytest.approx(max(every))


def test_too_many_operations_with_parameters_are_refused():
    sites = {"c/0": Site("c/0", "choice", ("pool", "conv"))}
    with pytest.raises(RequestError, match="cannot have 2 operations with parameters"):
        decide(sites, {"c/0": [0.5, 0.5]}, least_features=2, features={"c/0": (1,)})


def test_operations_that_gave_way_to_a_limit_on_skips_do_not_come_back():
    sites = {f"c/{k}": Site(f"c/{k}", "choice", ("id", "pool", "conv"), skips=(0,)) for k in range(3)}
    scores = {"c/0": [0.8, 0.15, 0.05], "c/1": [0.7, 0.2, 0.1], "c/2": [0.6, 0.1, 0.3]}
    found = decide(sites, scores, most_skips=1, least_features=2, features=dict.fromkeys(sites, (2,)))
    assert found == {"c/0": (0,), "c/1": (2,), "c/2": (2,)}
