"""The controller of ENAS: what it may answer, what it learns, what survives a resume."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch

from eclose.strategies.gradient.mixtures import mixture
from eclose.strategies.gradient.mixtures.controller import Controller
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.supernet import Site
from support.small_supernets import search_of

SMALL = {
    "channels": 4, "cells": 1, "mixture": "controller", "step": "none", "architecture_rate": 1e-3,
    "architecture_beta1": 0.0,
    "batch_size": 25, "epochs": 4,
    "controller_steps": 2, "controller_samples": 3, "checkpoint_every": 2,
}  # fmt: skip


def parts(seed: int = 0, **settings):
    search = search_of("nasbench1shot1-1", subset=60, seed=seed, **{**SMALL, **settings})
    made = search.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(seed))
    return search, made, search.loop(made, 0)


class Kept:
    """Keeps the state of one epoch."""

    def __init__(self, epoch: int = 0, first=None):
        self.epoch, self.first, self.content = epoch, first, None

    def read(self):
        return self.first

    def write(self, content):
        if content["loop"]["epoch"] == self.epoch:
            self.content = torch.load(saved(content), weights_only=False)


def saved(content):
    import io

    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    return file


def everything(made, loop) -> dict[str, torch.Tensor]:
    training = made.rule.callbacks()[0]
    found = {f"net.{name}": value for name, value in made.supernet.net.state_dict().items()}
    found |= {f"controller.{name}": value for name, value in made.rule.controller.state_dict().items()}
    for index, state in training._optimiser.state_dict()["state"].items():
        found |= {f"adam.{index}.{key}": value for key, value in state.items() if isinstance(value, torch.Tensor)}
    return {**found, "baseline": torch.tensor(training.baseline)}


def test_a_resumed_search_has_the_same_controller_bit_by_bit():
    _, made, loop = parts()
    half = Kept(2)
    loop.run(half)
    whole = everything(made, loop)
    _, again, resumed = parts(seed=1)  # other initial values: everything must come from the state
    other = search_with_same_seed(again)
    other.run(Kept(first=half.content))
    found = everything(again, other)
    assert found.keys() == whole.keys()
    assert {name for name in whole if not torch.equal(found[name], whole[name])} == set()
    assert resumed is not other


def search_with_same_seed(made):
    """Return the loop of a search of the first seed around another's supernet."""
    return search_of("nasbench1shot1-1", subset=60, seed=0, **SMALL).loop(made, 0)


def test_the_controller_learns_while_alphas_and_shared_weights_do_not_hear_of_it():
    _, made, loop = parts()
    training = made.rule.callbacks()[0]
    before = {name: value.clone() for name, value in made.rule.controller.state_dict().items()}
    weights = {name: value.detach().clone() for name, value in made.supernet.net.named_parameters()}
    made.supernet.net.train()
    training.after_epoch(loop, {})
    assert any(not torch.equal(value, before[name]) for name, value in made.rule.controller.state_dict().items())
    assert all(torch.equal(value, weights[name]) for name, value in made.supernet.net.named_parameters())
    assert all(parameter.grad is None for parameter in made.supernet.net.parameters())


def test_its_answers_are_alternatives_and_sets_of_edges():
    sites = {
        "a": Site("a", "choice", ("zero", "id", "conv"), zeros=(0,), inside="p"),
        "p": Site("p", "pick", tuple("wxyz"), keep=2, weighted=False),
    }
    rule = mixture(sites, Recipe(mixture="controller", step="none"))
    assert rule.answers == {"a": [(1,), (2,)], "p": list(combinations(range(4), 2))}
    torch.manual_seed(0)
    paths = [rule.path() for _ in range(200)]
    assert {path["a"] for path in paths} == {(1,), (2,)}
    assert {path["p"] for path in paths} == set(combinations(range(4), 2))


def test_log_probability_and_entropy_are_those_of_its_softmaxes():
    torch.manual_seed(0)
    controller = Controller([3, 4])
    log_of: dict[tuple[int, ...], float] = {}
    entropies: dict[int, float] = {}
    for _ in range(500):
        answers, log, entropy = controller()
        log_of[tuple(answers)] = float(log.detach())
        entropies[answers[0]] = float(entropy.detach())
    assert len(log_of) == 12
    assert sum(torch.tensor(list(log_of.values())).exp()).item() == pytest.approx(1.0, abs=1e-5)
    for first, entropy in entropies.items():
        joint = torch.tensor([log_of[first, k] for k in range(4)]).exp()
        firsts = torch.tensor([sum(torch.tensor([log_of[j, k] for k in range(4)]).exp()) for j in range(3)])
        by_hand = -(firsts * firsts.log()).sum() - ((joint / joint.sum()) * (joint / joint.sum()).log()).sum()
        assert entropy == pytest.approx(float(by_hand), abs=1e-4)


def test_it_comes_to_prefer_what_is_rewarded():
    _, made, loop = parts(controller_steps=30, controller_samples=10)
    training, controller = made.rule.callbacks()[0], made.rule.controller
    name = next(iter(made.rule.answers))  # the first decision, whose probabilities depend on nothing before it
    target = made.rule.answers[name][-1]
    training._reward = lambda loop, measure, answers, batch: float(made.rule.kept(answers)[name] == target)

    def chance() -> float:
        with torch.no_grad():
            seen, _ = controller.cell(controller.first[None], None)
            return float(torch.softmax(2.5 * torch.tanh(controller.heads[0](seen[0, 0]) / 5.0), 0)[-1])

    before = chance()
    training.after_epoch(loop, {})
    assert chance() > before + 0.01
