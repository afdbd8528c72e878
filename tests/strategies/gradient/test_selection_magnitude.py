"""The selection by magnitude with constraints, against the best of all selections."""

from __future__ import annotations

import dataclasses
from itertools import combinations, product

import numpy as np
import pytest
import torch

import eclose as ec
from eclose.strategies.gradient.decisions import decide, skips_of
from eclose.strategies.gradient.selection import select
from eclose.strategies.gradient.supernet import Site
from support.small_supernets import context_of

FEATURES = (2, 3)  # conv1x1 and conv
OTHERS = np.array([0.3, -0.2, 0.1, -0.5])


@pytest.fixture(scope="module")
def nasbench201():
    return context_of("nasbench201", subset=100, channels=4, cells=1)


def with_alphas(context, rows, **recipe):
    """Return a context with alphas set by hand."""
    with torch.no_grad():
        for alpha, row in zip(context.supernet.alphas.values(), rows, strict=True):
            alpha.copy_(torch.tensor(row))
    return dataclasses.replace(context, recipe=context.recipe.with_settings(recipe))


def best_of_all(rows, fine) -> np.ndarray:
    """Return the selection of the largest sum of weights among all that are fine, by looking at each of them."""
    theta = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    every = np.array(list(product(range(rows.shape[1]), repeat=len(rows))))
    total = theta[np.arange(len(rows)), every].sum(1)
    total[~fine(every)] = -np.inf
    return every[total.argmax()]


@pytest.mark.parametrize("seed", range(4))
def test_with_few_skip_connections_the_strongest_stay(nasbench201, seed):
    """Where edges differ by nothing but their skip connection, the strongest skips give the largest sum."""
    rng = np.random.default_rng(seed)
    labels = next(iter(nasbench201.supernet.choices.values())).labels
    skip = labels.index("id")
    rows = np.array([np.insert(rng.permutation(OTHERS), skip, rng.normal(0.8, 0.5)) for _ in range(6)])
    for most in range(7):
        found = select("magnitude", with_alphas(nasbench201, rows, most_skips=most))
        wanted = best_of_all(rows, lambda every, most=most: (every == skip).sum(1) <= most)
        assert [kept[0] for kept in found.decisions.values()] == wanted.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_operations_with_parameters_come_in_where_they_cost_least(nasbench201, seed):
    rows = np.random.default_rng(seed).normal(size=(6, 5))
    for least in range(7):
        found = select("magnitude", with_alphas(nasbench201, rows, least_features=least))
        wanted = best_of_all(rows, lambda every, least=least: np.isin(every, FEATURES).sum(1) >= least)
        assert [kept[0] for kept in found.decisions.values()] == wanted.tolist()


def test_nodes_compare_their_edges_anew_when_a_skip_connection_gives_way():
    """Two nodes of three edges that keep two: no selection with as few skips has a larger sum of kept weights."""
    sites = {}
    for node in "AB":
        names = tuple(f"cell/{node}{edge}" for edge in range(3))
        for name in names:
            sites[name] = Site(name, "choice", ("skip", "conv", "pool"), inside=f"cell/{node}", skips=(0,))
        sites[f"cell/{node}"] = Site(
            f"cell/{node}", "pick", ("0", "1", "2"), 2, weighted=False, edges=tuple((name,) for name in names)
        )
    choices = [name for name, site in sites.items() if site.kind == "choice"]
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = {name: [rng.uniform(), *rng.permutation([0.5, 0.1])] for name in choices}
        for most in range(5):
            found = decide(sites, scores, most_skips=most)
            total = sum(
                scores[f"cell/{node}{edge}"][found[f"cell/{node}{edge}"][0]]
                for node in "AB" for edge in found[f"cell/{node}"]
            )  # fmt: skip
            assert skips_of(sites, found)["cell"] <= most
            assert total == pytest.approx(max(_sums(scores, most)))


def _sums(scores, most):
    pairs = list(combinations(range(3), 2))
    for first, second in product(pairs, pairs):
        kept = [f"cell/A{edge}" for edge in first] + [f"cell/B{edge}" for edge in second]
        for operations in product(range(3), repeat=4):
            if operations.count(0) <= most:
                yield sum(scores[name][index] for name, index in zip(kept, operations, strict=True))


def test_what_cannot_be_had_is_refused(nasbench201):
    with pytest.raises(ec.RequestError, match="cannot have 7 operations with parameters"):
        select("magnitude", with_alphas(nasbench201, np.zeros((6, 5)), least_features=7))
