"""Perturbed mixtures of SmoothDARTS: within the ball, on the simplex, never better than no attack."""

from __future__ import annotations

import pytest
import torch

from eclose.algebra.errors import RequestError
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient import perturbations
from eclose.strategies.gradient.objective import Mixed
from eclose.strategies.gradient.perturbations import Adversarial, Uniform, on_simplex, perturbation
from eclose.strategies.gradient.recipe import Recipe
from support.small_supernets import search_of

RADIUS = 0.1


def watched(monkeypatch) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Record what is cut to the simplex, as `(before cutting, the present weights)`."""
    seen = []
    original = perturbations.on_simplex

    def recorded(values, before):
        seen.append((values.detach().clone(), before.detach().clone()))
        return original(values, before)

    monkeypatch.setattr(perturbations, "on_simplex", recorded)
    return seen


def real(kind: str, **settings):
    search = search_of("nasbench201", channels=4, cells=1, perturbation=kind, **settings)
    made = search.made(0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for alpha in made.supernet.alphas.values():
            alpha.copy_(torch.randn(alpha.shape, generator=generator))
    net = made.supernet.net.train()
    batch = search.feeds()["train"].batch(0, 0)
    objective = Mixed(search.plain, made.rule, "weights", fixed=True)
    weights = made.rule({name: alpha.detach() for name, alpha in made.supernet.alphas.items()}, "weights")
    made.perturbation.radius.set(RADIUS)

    def loss(given):
        return objective.under(net, batch, given).loss

    return made, net, weights, loss


@pytest.mark.parametrize("kind", ["uniform", "adversarial"])
def test_perturbed_weights_lie_in_the_ball_before_they_are_cut(kind, monkeypatch):
    seen = watched(monkeypatch)
    made, net, weights, loss = real(kind)
    torch.manual_seed(0)
    found = made.perturbation(weights, net, loss)
    assert len(seen) == 6
    distances = torch.cat([(values - before).abs() for values, before in seen])
    assert float(distances.max()) <= RADIUS + 1e-6
    assert float(distances.max()) > 0.8 * RADIUS
    for name, given in found.items():
        assert float(given.values.sum()) == pytest.approx(1.0, abs=1e-6), name
        assert (given.values >= 0).all()
    for (_, before), name in zip(seen, made.supernet.choices, strict=True):
        assert torch.equal(before, weights[name].values)


def test_uniform_noise_fills_the_ball_evenly(monkeypatch):
    seen = watched(monkeypatch)
    even = {"edge": MixtureWeights(torch.full((4,), 0.25))}
    uniform = Uniform(["edge"], Recipe(perturbation="uniform"))
    uniform.radius.set(0.2)
    torch.manual_seed(0)
    for _ in range(3000):
        uniform(even, None, None)
    noise = torch.stack([values - before for values, before in seen]).flatten()
    assert float(noise.abs().max()) <= 0.2 + 1e-6
    assert float(noise.mean()) == pytest.approx(0.0, abs=4 * 0.2 / 3**0.5 / len(noise) ** 0.5)
    assert float(noise.var()) == pytest.approx(0.2**2 / 3, rel=0.05)  # of U(-r, r); a Gaussian would reach further


def test_an_attack_never_lowers_the_loss_and_usually_raises_it():
    made, net, weights, loss = real("adversarial")
    net.eval()
    with torch.no_grad():
        before = float(loss(weights))
    raised = 0
    for seed in range(4):
        torch.manual_seed(seed)
        found = made.perturbation(weights, net, loss)
        with torch.no_grad():
            after = float(loss(found))  # the same batch, in evaluation mode
        assert after >= before
        raised += after > before
    assert raised >= 3


def test_an_attack_that_lowers_the_loss_is_not_taken():
    """A loss that falls wherever the attack may go: its gradient points the wrong way."""
    given = {"edge": MixtureWeights(torch.tensor([0.7, 0.2, 0.1]))}
    attack = Adversarial(["edge"], Recipe(perturbation="adversarial"))
    attack.radius.set(0.1)

    class Turned(torch.autograd.Function):
        @staticmethod
        def forward(context, values):
            return -((values - torch.tensor([0.7, 0.2, 0.1])) ** 2).sum()

        @staticmethod
        def backward(context, upstream):
            return upstream * torch.tensor([1.0, -1.0, 1.0])

    found = attack(given, torch.nn.Identity(), lambda weights: Turned.apply(weights["edge"].values))
    assert torch.equal(found["edge"].values, given["edge"].values)


@pytest.mark.parametrize("training", [True, False])
def test_mode_buffers_and_gradients_are_what_they_were(training):
    made, net, weights, loss = real("adversarial")
    loss(weights)  # statistics that are no longer initial
    net.train(training)
    before = {name: buffer.clone() for name, buffer in net.named_buffers()}
    made.perturbation(weights, net, loss)
    assert net.training is training
    assert all(torch.equal(buffer, before[name]) for name, buffer in net.named_buffers())
    assert all(parameter.grad is None for parameter in net.parameters())
    assert all(module.training is training for module in net.modules())


def test_the_mode_comes_back_after_an_error():
    made, net, weights, _ = real("adversarial")

    def fails(given):
        raise RuntimeError("no loss")

    with pytest.raises(RuntimeError, match="no loss"):
        made.perturbation(weights, net, fails)
    assert net.training


def test_alphas_see_no_perturbation():
    search = search_of("nasbench201", channels=4, cells=1, perturbation="uniform")
    loop = search.loop(search.made(0), 0)
    above, below = loop.step.parts
    assert above.objective.perturbation is None
    assert isinstance(below.objective.perturbation, Uniform)


@pytest.mark.parametrize(
    ("values", "before", "expected"),
    [
        ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]),
        ([1.2, -0.2, 0.5], [0.9, 0.05, 0.05], [2 / 3, 0.0, 1 / 3]),
        ([0.2, 0.2, 0.1], [0.4, 0.4, 0.2], [0.4, 0.4, 0.2]),
        ([-0.1, -0.2, -0.3], [0.2, 0.5, 0.3], [0.0, 1.0, 0.0]),  # a row of zeros: the old winner
        ([0.0, 0.0, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]),
        ([1.5, 2.0, -1.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]),
    ],
)
def test_rows_are_cut_and_divided_by_their_sum(values, before, expected):
    found = on_simplex(torch.tensor(values), torch.tensor(before))
    assert torch.allclose(found, torch.tensor(expected), atol=1e-6)


def test_the_radius_grows_linearly_with_the_epochs():
    search = search_of("nasbench1shot1-1", subset=60, channels=4, cells=1, perturbation="uniform", epochs=3)
    made = search.made(0)
    loop = search.loop(made, 0)
    seen = []
    original = made.perturbation.given

    def recorded(weights):
        seen.append(round(float(made.perturbation.radius.like(torch.zeros(1))), 6))
        return original(weights)

    made.perturbation.given = recorded
    loop.run()
    assert sorted(set(seen)) == pytest.approx([0.03, 0.12, 0.21])  # 0.03 + 0.27 epoch / epochs


def test_without_one_there_is_none():
    assert perturbation(("a",), Recipe()) is None


@pytest.mark.parametrize("mixture", ["uniform-path", "controller", "two-path", "hard-gumbel"])
def test_perturbations_of_paths_are_refused(mixture):
    with pytest.raises(RequestError, match="perturbation"):
        Recipe(perturbation="uniform", mixture=mixture, step="none" if mixture != "two-path" else "first-order")
