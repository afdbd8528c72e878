"""When a selection by perturbation decides what."""

from __future__ import annotations

from collections import Counter

import pytest

import eclose as ec
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.selection.schedule import schedule
from eclose.strategies.gradient.supernet import Site, supernet


@pytest.fixture(scope="module")
def darts():
    return supernet(ec.space("darts"), ec.task("digits:subset=100"), Recipe(channels=4, cells=3)).sites


@pytest.fixture(scope="module")
def nasbench201():
    return supernet(ec.space("nasbench201"), ec.task("digits:subset=100"), Recipe(channels=4, cells=1)).sites


def test_the_darts_cells_take_81_epochs(darts):
    plan = schedule(darts)
    assert plan.epochs == 81
    assert [projection.epoch for projection in plan.projections] == list(range(0, 81, 5))
    assert plan.choices == 14
    assert plan.settled == 65


def test_nasbench201_takes_25_epochs(nasbench201):
    plan = schedule(nasbench201)
    assert plan.epochs == 25
    assert [projection.epoch for projection in plan.projections] == [0, 5, 10, 15, 20, 25]


def test_every_decision_is_made_once_and_normal_cells_go_first(darts):
    plan = schedule(darts, seed=3)
    made = Counter(name for projection in plan.projections for name in projection.names)
    wanted = {name for name, site in darts.items() if site.kind == "choice" or site.keep < site.count}
    assert made == dict.fromkeys(wanted, 1)
    assert plan.decisions == 2 * (14 + 3)
    for number, projection in enumerate(plan.projections):
        assert [name.partition("/")[0] for name in projection.names] == ["normal", "reduction"]
        kinds = {darts[name].kind for name in projection.names}
        assert kinds == ({"choice"} if number < 14 else {"pick"})


def test_the_order_is_random_and_belongs_to_the_seed(darts):
    assert schedule(darts, seed=1) == schedule(darts, seed=1)
    firsts = {schedule(darts, seed=seed).projections[0].names[0] for seed in range(30)}
    assert len(firsts) > 5


def test_without_topology_edges_are_no_part_of_it(darts):
    plan = schedule(darts, topology=False)
    assert plan.epochs == 5 * 13
    assert plan.decisions == 28


def test_topology_is_refused_where_every_node_keeps_all_its_edges(nasbench201):
    with pytest.raises(ec.RequestError, match="keeps all its edges"):
        schedule(nasbench201, topology=True)
    with pytest.raises(ec.RequestError, match="interval is at least 1"):
        schedule(nasbench201, interval=0)


def test_decisions_without_a_cell_in_their_names_are_one_cell():
    sites = {name: Site(name, "choice", ("a", "b")) for name in ("one", "two", "three")}
    assert [len(projection.names) for projection in schedule(sites).projections] == [1, 1, 1]
    absent = {**sites, "four": Site("four", "choice", ("a", "b"), present=False)}
    assert schedule(absent) == schedule(sites)


def test_nothing_to_decide_takes_no_time():
    assert schedule({}).epochs == 0
    assert schedule({"one": Site("one", "choice", ("a", "b"))}).epochs == 0
