"""Mixtures that evaluate everything: points of the simplex, their moments, their temperatures."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from eclose.strategies.gradient.mixtures import mixture
from eclose.strategies.gradient.mixtures.soft import concentration
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.supernet import Site
from eclose.train.data import ResidentFeed
from support.small_supernets import search_of
from support.statistics import fits

LOGITS = [1.0, 0.0, -0.5, 0.3]


def alone(name: str, **settings):
    if name == "simplex":
        settings["architecture_optimiser"] = "exponentiated"
    rule = mixture({"edge": Site("edge", "choice", tuple("abcd"))}, Recipe(mixture=name, **settings))
    return rule, {"edge": nn.Parameter(torch.tensor(LOGITS, dtype=torch.float64))}


@pytest.mark.parametrize("name", ["softmax", "gumbel", "dirichlet"])
def test_weights_are_points_of_the_simplex(name):
    rule, alphas = alone(name)
    for seed in range(200):
        torch.manual_seed(seed)
        theta = rule(alphas, "architecture")["edge"].values
        assert (theta >= 0).all()
        assert float(theta.sum().detach()) == pytest.approx(1.0, abs=1e-12)


def test_dirichlet_samples_have_their_mean_and_variance():
    rule, alphas = alone("dirichlet")
    torch.manual_seed(0)
    draws = torch.stack([rule(alphas, "weights")["edge"].values.detach() for _ in range(4000)])
    a = torch.tensor(LOGITS, dtype=torch.float64)
    c = torch.where(a > 0, a + 1, a.exp())
    mean, whole = c / c.sum(), c.sum()
    assert torch.allclose(rule.expected(alphas)["edge"].detach(), mean)
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - mean).abs() < 4 * error).all()
    variance = mean * (1 - mean) / (whole + 1)
    assert torch.allclose(draws.var(0), variance, rtol=0.1)


def test_an_alpha_of_zero_is_the_uniform_distribution():
    assert concentration(torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    assert torch.allclose(
        concentration(torch.tensor([-2.0, 1.5])), torch.tensor([-2.0, 0.0]).exp() + torch.tensor([0.0, 1.5])
    )


def test_concentrations_stay_above_zero():
    assert (concentration(torch.tensor([-20.0, -60.0])) > 0).all()
    assert torch.distributions.Dirichlet(concentration(torch.tensor([-20.0, 0.0]))).sample().isfinite().all()


def test_dropped_operations_leave_the_sub_vectors_distribution():
    """What is left of a Dirichlet vector, renormalised, is Dirichlet with the concentrations that are left."""
    rule, alphas = alone("dirichlet")
    rule.allowed["edge"] = (0, 3)
    torch.manual_seed(0)
    draws = torch.stack([rule(alphas, "weights")["edge"].values.detach() for _ in range(4000)])
    assert (draws[:, [1, 2]] == 0).all()
    c = concentration(alphas["edge"].detach())[[0, 3]]
    beta = torch.distributions.Beta(c[0], c[1])
    assert torch.allclose(draws.sum(1), torch.ones(4000, dtype=torch.float64))
    error = float(beta.stddev) / 4000**0.5
    assert abs(float(draws[:, 0].mean() - beta.mean)) < 4 * error
    assert float(draws[:, 0].var()) == pytest.approx(float(beta.variance), rel=0.1)


def test_the_winner_of_a_gumbel_sample_is_a_draw_of_the_softmax():
    rule, alphas = alone("gumbel", temperature=0.5)
    torch.manual_seed(0)
    winners = [int(rule(alphas, "weights")["edge"].values.argmax()) for _ in range(4000)]
    assert fits(winners, dict(enumerate(torch.softmax(torch.tensor(LOGITS), 0).tolist())))


def test_a_low_temperature_is_nearly_a_choice_and_a_high_one_nearly_even():
    cold, alphas = alone("gumbel", temperature=0.01)
    hot, _ = alone("gumbel", temperature=1000.0)
    torch.manual_seed(0)
    assert float(cold(alphas, "weights")["edge"].values.detach().max()) > 0.999
    assert float(hot(alphas, "weights")["edge"].values.detach().max()) < 0.26


@pytest.mark.parametrize("name", ["gumbel", "hard-gumbel"])
def test_the_temperature_falls_linearly_over_the_epochs(name):
    search = search_of(
        "nasbench1shot1-1", subset=60, channels=4, cells=1, mixture=name, temperature=10.0, temperature_end=1.0,
        epochs=4, batch_size=25,
    )  # fmt: skip
    made = search.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
    seen: list[float] = []
    rule, drawn = made.rule, made.rule.drawn

    def recorded(rows):
        seen.append(float(rule.temperature.like(rows)))
        return drawn(rows)

    rule.drawn = recorded
    loop = search.loop(made, 0)
    assert isinstance(search.feeds()["train"], ResidentFeed)
    loop.run()
    assert sorted(set(seen), reverse=True) == pytest.approx([10.0, 7.0, 4.0, 1.0])
    assert seen == sorted(seen, reverse=True)


def test_a_simplex_begins_even():
    rule, alphas = alone("simplex")
    rule.initialise(alphas, torch.Generator().manual_seed(0))
    assert alphas["edge"].tolist() == [0.25] * 4
    assert rule(alphas, "weights")["edge"].values.tolist() == [0.25] * 4
