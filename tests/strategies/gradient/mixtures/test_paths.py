"""Mixtures of paths: how many alternatives are evaluated, how often each is drawn, what an update leaves alone."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from torch import nn

from eclose.operations.mixture import Mixture, MixtureWeights
from eclose.strategies.gradient.mixtures import mixture
from eclose.strategies.gradient.mixtures.paths import EarlyFixing
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.supernet import Site, Weighted
from support.small_supernets import search_of
from support.statistics import fits

LOGITS = [1.0, 0.0, -0.5, 0.3]
CHANCES = torch.softmax(torch.tensor(LOGITS, dtype=torch.float64), 0).tolist()


def alone(name: str, **settings):
    rule = mixture({"edge": Site("edge", "choice", tuple("abcd"))}, Recipe(mixture=name, **settings))
    return rule, {"edge": nn.Parameter(torch.tensor(LOGITS))}


def search(space: str, name: str):
    found = search_of(space, channels=4, cells=3, mixture=name)
    made = found.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
    return made, found.feeds()["valid"].batch(0, 0)


def evaluated(net: nn.Module, call) -> tuple[list[tuple[MixtureWeights, set[int]]], set[tuple[str, int]]]:
    """Return for each mixture its weights and the alternatives it added up, and the alternatives whose layers ran."""
    added: list[tuple[MixtureWeights, set[int]]] = []
    ran: set[tuple[str, int]] = set()
    program = net.program
    owners: dict[str, set[tuple[str, int]]] = {}
    for step, name in zip(program.steps, net._names, strict=True):
        if step.guard >= 0:
            guard = program.guards[step.guard]
            owners.setdefault(name, set()).add((guard.choice, guard.alternative))

    def mixed(module, arguments):
        inputs, weights = arguments
        pairs = zip(module.alternatives, inputs, strict=True)
        added.append((weights, {index for index, value in pairs if value is not None and weights.needs(index)}))

    hooks = []
    for name, module in net.layers.items():
        if isinstance(module, Mixture):
            hooks.append(module.register_forward_pre_hook(mixed))
        elif len(owners.get(name, ())) == 1 and any(True for _ in module.parameters()):
            (owner,) = owners[name]
            hooks.append(module.register_forward_hook(lambda *_, owner=owner: ran.add(owner)))
    try:
        call()
    finally:
        for hook in hooks:
            hook.remove()
    return added, ran


@pytest.mark.parametrize(
    ("name", "level", "number"),
    [
        ("hard-gumbel", "architecture", 1),
        ("hard-gumbel", "weights", 1),
        ("sampled", "architecture", 1),
        ("proximal", "architecture", 1),
        ("proximal", "weights", 1),
        ("uniform-path", "weights", 1),
        ("two-path", "weights", 1),
        ("two-path", "architecture", 2),
        ("softmax", "weights", 5),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_so_many_alternatives_of_a_choice_are_evaluated(name, level, number, seed):
    made, batch = search("nasbench201", name)
    net, sites = made.supernet.net, made.supernet.sites
    torch.manual_seed(seed)
    weights = made.rule(made.supernet.alphas, level)
    drawn = {choice: set(given.selected or range(5)) for choice, given in weights.items()}
    assert {len(indices) for indices in drawn.values()} == {number}
    while not leads_on(drawn, sites):  # a path of `zero` alone is no network
        weights = made.rule(made.supernet.alphas, level)
        drawn = {choice: set(given.selected or range(5)) for choice, given in weights.items()}

    def whole():
        Weighted(net, weights)(batch.inputs).sum().backward()

    added, ran = evaluated(net, whole)
    assert len(added) == 6 * 3 * 3  # edges of a cell, cells of a stage, stages
    choice_of = {id(given): choice for choice, given in weights.items()}
    for given, indices in added:
        choice = choice_of[id(given)]
        assert indices <= drawn[choice]
    labels = {choice: sites[choice].labels for choice in drawn}
    with_layers = {(choice, i) for choice in drawn for i in drawn[choice] if labels[choice][i].startswith("conv")}
    assert ran <= with_layers  # nothing that was not drawn costs anything
    if level == "architecture" or name == "softmax":
        assert ran


def leads_on(drawn, sites) -> bool:
    return bool(drawn["cell/3_0"] - set(sites["cell/3_0"].zeros))


def test_a_path_through_the_cells_of_darts_has_one_operation_an_edge():
    made, batch = search("darts", "hard-gumbel")
    weights = made.rule(made.supernet.alphas, "weights")
    added, ran = evaluated(made.supernet.net, lambda: Weighted(made.supernet.net, weights)(batch.inputs))
    choices = made.supernet.choices
    names = {id(weights[name]): name for name in choices}
    assert all(len(weights[name].selected) == 1 for name in choices)
    seen = {names[id(given)]: indices for given, indices in added if id(given) in names}
    assert seen == {name: set(weights[name].selected) for name in choices}
    drawn = {(name, weights[name].selected[0]) for name in choices}
    assert {(name, index) for name, index in drawn if "conv" in choices[name].labels[index]} <= ran <= drawn


# How often


@pytest.mark.parametrize("name", ["hard-gumbel", "sampled"])
def test_one_path_is_drawn_by_its_probability(name):
    rule, alphas = alone(name, temperature=3.0)
    torch.manual_seed(0)
    draws = [rule(alphas, "weights")["edge"].selected[0] for _ in range(4000)]
    assert fits(draws, dict(enumerate(CHANCES)))
    assert not fits(draws, dict(enumerate([0.25] * 4)))


def test_the_weights_of_a_proxyless_search_see_one_path_by_its_probability():
    rule, alphas = alone("two-path")
    torch.manual_seed(0)
    draws = [rule(alphas, "weights")["edge"].selected for _ in range(4000)]
    assert {len(draw) for draw in draws} == {1}
    assert fits([draw[0] for draw in draws], dict(enumerate(CHANCES)))


def test_pairs_are_drawn_without_replacement():
    rule, alphas = alone("two-path")
    torch.manual_seed(0)
    pairs, active = [], []
    for _ in range(6000):
        weights = rule(alphas, "architecture")["edge"]
        values = weights.values.detach()
        pairs.append(weights.selected)
        active.append((weights.selected, int(values.argmax())))
        assert sorted(values.tolist()) == pytest.approx([0.0, 0.0, 0.0, 1.0], abs=1e-6)
    p = CHANCES
    expected = {(i, j): p[i] * p[j] / (1 - p[i]) + p[j] * p[i] / (1 - p[j]) for i, j in combinations(range(4), 2)}
    assert math.isclose(sum(expected.values()), 1.0)
    assert fits(pairs, expected)
    joint = {(pair, k): chance * p[k] / (p[pair[0]] + p[pair[1]]) for pair, chance in expected.items() for k in pair}
    assert fits(active, joint)


def test_a_pairs_total_probability_is_unchanged_by_an_update():
    rule, alphas = alone("two-path")
    torch.manual_seed(4)
    weights = rule(alphas, "architecture")["edge"]
    pair = list(weights.selected)
    before = alphas["edge"].detach().clone()
    with torch.no_grad():
        alphas["edge"][pair] += torch.tensor([0.4, -0.1])
    moved = alphas["edge"].detach()
    difference = float(moved[pair[0]] - moved[pair[1]])
    rule.updated(alphas)
    after = alphas["edge"].detach()
    was, now = torch.softmax(before, 0), torch.softmax(after, 0)
    assert torch.allclose(now[pair].sum(), was[pair].sum(), atol=1e-6)
    others = [index for index in range(4) if index not in pair]
    assert torch.allclose(now[others], was[others], atol=1e-6)
    assert math.isclose(float(after[pair[0]] - after[pair[1]]), difference, abs_tol=1e-6)  # what was learned is kept


def test_a_second_update_without_a_draw_changes_nothing():
    rule, alphas = alone("two-path")
    rule(alphas, "architecture")
    rule.updated(alphas)
    before = alphas["edge"].detach().clone()
    with torch.no_grad():
        alphas["edge"] += 1.0
    rule.updated(alphas)
    assert torch.equal(alphas["edge"].detach(), before + 1.0)


def test_even_paths_are_even_and_keep_as_many_edges_as_a_cell():
    made, _ = search("darts", "uniform-path")
    torch.manual_seed(0)
    paths = [made.rule.path() for _ in range(1500)]
    sites = made.supernet.sites
    for path in paths[:50]:
        assert all(len(kept) == site.keep and set(kept) <= set(site.selectable) for kept, site in
                   ((path[name], site) for name, site in sites.items()))  # fmt: skip
    name = next(name for name, site in sites.items() if site.kind == "choice")
    assert fits([path[name][0] for path in paths], dict.fromkeys(range(7), 1 / 7))
    pick = next(name for name, site in sites.items() if site.kind == "pick" and site.count == 5)
    assert fits([path[pick] for path in paths], dict.fromkeys(combinations(range(5), 2), 1 / 10))


def test_a_proximal_path_is_the_largest_alpha_and_alphas_stay_in_their_box():
    rule, _ = alone("proximal")
    alphas = {"edge": nn.Parameter(torch.tensor([0.2, 0.9, 0.4, 0.1]))}
    weights = rule(alphas, "architecture")["edge"]
    assert weights.selected == (1,)
    assert weights.values.tolist() == [1.0] * 4
    with torch.no_grad():
        alphas["edge"].copy_(torch.tensor([-0.3, 1.4, 0.4, 1.0]))
    rule.updated(alphas)
    assert alphas["edge"].tolist() == pytest.approx([0.0, 1.0, 0.4, 1.0])


# Early fixing


class Model:
    def __init__(self, alphas):
        self.model = self
        self.alphas = alphas


def test_a_choice_is_fixed_once_its_first_probability_leads():
    rule, _ = alone("sampled", fix_margin=0.3)
    (fixing,) = rule.callbacks()
    assert isinstance(fixing, EarlyFixing)
    logits = torch.tensor([0.60, 0.31, 0.05, 0.04]).log()  # leads by 0.29
    alphas = {"edge": nn.Parameter(logits)}
    fixing.after_epoch(Model(alphas), {})
    assert rule.allowed["edge"] == (0, 1, 2, 3)
    with torch.no_grad():
        alphas["edge"].copy_(torch.tensor([0.30, 0.61, 0.05, 0.04]).log())  # leads by 0.31
    fixing.after_epoch(Model(alphas), {})
    assert rule.allowed["edge"] == (1,)
    with torch.no_grad():
        alphas["edge"].copy_(torch.tensor([9.0, 0.0, 0.0, 0.0]))
    fixing.after_epoch(Model(alphas), {})
    assert rule.allowed["edge"] == (1,)  # for good
    torch.manual_seed(0)
    assert {rule(alphas, "weights")["edge"].selected for _ in range(50)} == {(1,)}
    assert rule.expected(alphas)["edge"].tolist() == [0.0, 1.0, 0.0, 0.0]
    loss = rule(alphas, "architecture")["edge"].values[1] * 3.0
    (gradient,) = torch.autograd.grad(loss, alphas["edge"])
    assert gradient.tolist() == [0.0] * 4  # nothing is left to learn


def test_what_is_fixed_survives_a_resume():
    rule, _ = alone("sampled", fix_margin=0.3)
    rule.allowed["edge"] = (2,)
    again, _ = alone("sampled", fix_margin=0.3)
    again.load_state_dict(rule.state_dict())
    assert again.allowed == {"edge": (2,)}


def test_without_a_margin_nothing_is_fixed():
    assert alone("sampled")[0].callbacks() == ()


def test_pairs_leave_out_what_a_stage_has_dropped():
    rule, alphas = alone("two-path")
    rule.allowed["edge"] = (0, 2, 3)
    torch.manual_seed(0)
    assert {1} & {index for _ in range(100) for index in rule(alphas, "architecture")["edge"].selected} == set()
    assert {1} & {index for _ in range(100) for index in rule(alphas, "weights")["edge"].selected} == set()
