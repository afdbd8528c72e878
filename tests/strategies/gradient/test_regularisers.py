"""Terms of the architecture's loss: against torch's own, against sums by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Dirichlet, kl_divergence

from eclose.algebra.errors import RequestError
from eclose.meanings.cost import program_cost
from eclose.strategies.gradient.mixtures import mixture
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.regularisers import (
    ExpectedCost,
    alternative_costs,
    dirichlet_kl,
    negative_entropy,
    regulariser,
)
from eclose.strategies.gradient.supernet import Site
from support.small_supernets import search_of


@pytest.mark.parametrize("count", [2, 5, 8])
def test_the_divergence_of_dirichlet_distributions_is_torchs(count):
    torch.manual_seed(count)
    alphas = {name: torch.randn(count, dtype=torch.float64, requires_grad=True) for name in "ab"}

    def torchs(alpha):
        c = torch.where(alpha > 0, alpha + 1, alpha.exp())
        return kl_divergence(Dirichlet(c), Dirichlet(torch.ones_like(c)))

    found = dirichlet_kl(alphas)
    expected = sum(torchs(alpha) for alpha in alphas.values())
    assert float(found.detach()) == pytest.approx(float(expected.detach()), rel=1e-10)
    first = torch.autograd.grad(found, list(alphas.values()))
    second = torch.autograd.grad(expected, list(alphas.values()))
    for one, other in zip(first, second, strict=True):
        assert torch.allclose(one, other, rtol=1e-8)


def test_the_divergence_from_the_uniform_distribution_is_zero_there():
    assert float(dirichlet_kl({"a": torch.zeros(5, dtype=torch.float64)})) == pytest.approx(0.0, abs=1e-12)


def test_the_divergence_of_a_pruned_choice_is_that_of_what_is_left():
    rule = mixture({"a": Site("a", "choice", tuple("abcd"))}, Recipe(mixture="dirichlet"))
    rule.allowed["a"] = (0, 2)
    alpha = torch.tensor([0.5, 0.0, -0.3, 0.0], dtype=torch.float64)
    term = regulariser(Recipe(mixture="dirichlet", regulariser="dirichlet-kl", regulariser_weight=1.0), rule, None)  # type: ignore[arg-type]
    c = torch.tensor([1.5, math.exp(-0.3)], dtype=torch.float64)
    expected = kl_divergence(Dirichlet(c), Dirichlet(torch.ones_like(c)))
    assert float(term({"a": alpha})) == pytest.approx(float(expected))


def test_the_entropy_is_zero_for_equal_weights_and_log_k_for_a_decision():
    assert float(negative_entropy({"a": torch.full((4,), 0.25)})) == pytest.approx(0.0, abs=1e-6)
    assert float(negative_entropy({"a": torch.tensor([0.0, 1.0, 0.0])})) == pytest.approx(math.log(3))
    thetas = {"a": torch.tensor([0.7, 0.3]), "b": torch.tensor([0.2, 0.5, 0.3])}
    by_hand = 0.7 * math.log(1.4) + 0.3 * math.log(0.6)
    by_hand += 0.2 * math.log(0.6) + 0.5 * math.log(1.5) + 0.3 * math.log(0.9)
    assert float(negative_entropy(thetas)) == pytest.approx(by_hand, rel=1e-6)


def test_descending_the_entropy_term_levels_the_weights():
    rule = mixture({"a": Site("a", "choice", tuple("abc"))}, Recipe())
    term = regulariser(Recipe(regulariser="entropy", regulariser_weight=0.5), rule, None)  # type: ignore[arg-type]
    alpha = torch.tensor([1.0, 0.0, -1.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(term({"a": alpha}), alpha)
    assert gradient[0] > 0 > gradient[2]  # descent lowers the largest and raises the smallest


# Expected cost


def nb201(**settings):
    return search_of("nasbench201", channels=4, cells=1, **settings).made(0)


def test_the_cost_of_an_alternative_is_counted_by_hand():
    """A 3x3 convolution C -> C on H x W takes 9 C^2 H W multiply-adds, its batch normalisation none or C H W."""
    made = nb201()
    costs = alternative_costs(made.supernet.net.program)
    labels = made.supernet.sites["cell/1_0"].labels
    conv, pointwise = costs["cell/1_0"][labels.index("conv")], costs["cell/1_0"][labels.index("conv1x1")]
    sizes = [(4, 64), (8, 16), (16, 4)]  # channels and positions of the three stages of 8x8 digits
    assert conv - pointwise == sum(8 * c * c * positions for c, positions in sizes)
    assert costs["cell/1_0"][labels.index("zero")] == 0.0
    assert costs["cell/1_0"][labels.index("id")] == 0.0


def test_costs_of_all_alternatives_and_what_is_fixed_make_the_whole():
    made = nb201()
    program = made.supernet.net.program
    layers = program_cost(program).layers
    fixed = sum(layer.multiply_adds for step, layer in zip(program.steps, layers, strict=True) if step.guard < 0)
    inside = sum(sum(costs) for costs in alternative_costs(program).values())
    assert fixed + inside == program_cost(program).multiply_adds


def test_the_expected_cost_is_the_logarithm_of_the_sum():
    made = nb201()
    costs = alternative_costs(made.supernet.net.program)
    alphas = {name: torch.randn(5, dtype=torch.float64) for name in made.supernet.alphas}
    by_hand = 0.0
    for name, alpha in alphas.items():
        theta = torch.softmax(alpha, 0)
        by_hand += sum(float(theta[k]) * costs[name][k] for k in range(5))
    assert float(ExpectedCost(made.rule, made.supernet.net.program)(alphas)) == pytest.approx(
        math.log(by_hand), rel=1e-6
    )


def test_descending_the_cost_prefers_what_is_cheap():
    made = nb201(regulariser="cost", regulariser_weight=0.01)
    term = regulariser(made.rule.recipe, made.rule, made.supernet.net.program)
    alphas = {name: torch.zeros(5, requires_grad=True) for name in made.supernet.alphas}
    gradient = torch.autograd.grad(term(alphas), alphas["cell/1_0"])[0]
    labels = made.supernet.sites["cell/1_0"].labels
    assert int(gradient.argmax()) == labels.index("conv")
    assert gradient[labels.index("zero")] < 0


def test_a_cost_that_nothing_has_is_refused():
    search = search_of("activation", subset=60, channels=4, regulariser="cost", regulariser_weight=0.1)
    with pytest.raises(RequestError, match="costs"):
        search.loop(search.made(0), 0)
