"""The second-order step on a problem small enough to differentiate exactly, and what it leaves untouched."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from eclose.algebra.errors import RequestError
from eclose.operations.groups import weights as weights_of
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.mixtures import mixture
from eclose.strategies.gradient.objective import Mixed
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.steps import ALPHAS, WEIGHTS, Unrolled
from eclose.strategies.gradient.supernet import Site
from eclose.train.data import Batch
from eclose.train.groups import SGD, Group
from eclose.train.schedules import Constant, Position
from eclose.train.steps import Outcome
from support.small_supernets import search_of

RATE, MOMENTUM, DECAY = 0.1, 0.9, 0.05


class Quadratic(nn.Module):
    """Three weights; the losses are quadratic in them, with matrices that a mixture weighs."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64))
        self.alphas = nn.ParameterDict({"mix": nn.Parameter(torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64))})
        self.drop_path_rate = 0.0

    def forward(self, x, taps=False, weights=None):
        theta = weights["mix"].values
        return torch.stack([theta @ torch.stack([self.w @ m @ self.w for m in x[0]]), (x[1] * self.w).sum()])


def matrices(seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    roots = torch.randn(3, 3, 3, generator=generator, dtype=torch.float64)
    return Batch((roots @ roots.mT, torch.randn(3, generator=generator, dtype=torch.float64)), torch.zeros(1))


def total(model, batch) -> Outcome:
    outputs = model(batch.inputs)
    return Outcome(outputs.sum(), outputs)


def problem(rate: float = RATE, momentum: float = MOMENTUM, decay: float = DECAY, buffer: bool = True):
    net = Quadratic()
    rule = mixture({"mix": Site("mix", "choice", ("a", "b", "c"))}, Recipe())
    weights = Group(WEIGHTS, [net.w], SGD(momentum, weight_decay=decay), Constant(rate))
    alphas = Group(ALPHAS, list(net.alphas.values()), SGD(0.0), Constant(1.0))
    for group in (weights, alphas):
        group.start(Position(0, 0, 1, 1), on_device=False)
    if buffer and momentum:
        weights.running.state[net.w]["momentum_buffer"] = torch.tensor([0.4, -0.3, 0.2], dtype=torch.float64)
    loop = SimpleNamespace(
        model=net, groups={WEIGHTS: weights, ALPHAS: alphas}, precision=nullcontext, update=lambda names: None
    )
    upper, lower = Mixed(total, rule, "architecture"), Mixed(total, rule, "weights")
    return loop, Unrolled(upper, lower, rule, momentum)


def exact(loop, step, train: Batch, valid: Batch) -> torch.Tensor:
    """The derivative of L_va(w'(alpha), alpha), written out for this problem and left to autograd."""
    net = loop.model
    alpha = net.alphas["mix"].detach().clone().requires_grad_()
    w = net.w.detach().clone().requires_grad_()

    def loss(batch, at):
        theta = torch.softmax(alpha, -1)
        return sum(theta[k] * (at @ batch.inputs[0][k] @ at) for k in range(3)) + (batch.inputs[1] * at).sum()

    (gradient,) = torch.autograd.grad(loss(train, w), w, create_graph=True)
    buffer = loop.groups[WEIGHTS].running.state[net.w].get("momentum_buffer", torch.zeros_like(w))
    moved = w - loop.groups[WEIGHTS].rate * (
        step.momentum * buffer + gradient + loop.groups[WEIGHTS].running.param_groups[0]["weight_decay"] * w
    )
    return torch.autograd.grad(loss(valid, moved), alpha)[0]


@pytest.mark.parametrize(("momentum", "decay"), [(0.9, 0.05), (0.9, 0.0), (0.0, 0.05), (0.0, 0.0)])
def test_the_step_is_the_derivative_of_the_unrolled_loss(momentum, decay):
    loop, step = problem(momentum=momentum, decay=decay)
    train, valid = matrices(1), matrices(2)
    expected = exact(loop, step, train, valid)
    step(loop, {"train": train, "valid": valid})
    found = loop.model.alphas["mix"].grad
    assert torch.allclose(found, expected, rtol=1e-3, atol=1e-6 * float(expected.abs().max()))
    loop.model.alphas["mix"].grad = None
    first = torch.autograd.grad(step.upper(loop.model, valid).loss, loop.model.alphas["mix"])[0]
    assert (expected - first).norm() > 0.1 * expected.norm()  # the second-order part matters here


def test_without_rate_momentum_and_decay_it_is_the_first_order_step():
    loop, step = problem(rate=0.0, momentum=0.0, decay=0.0)
    train, valid = matrices(1), matrices(2)
    first = torch.autograd.grad(step.upper(loop.model, valid).loss, loop.model.alphas["mix"])[0]
    step(loop, {"train": train, "valid": valid})
    assert torch.equal(loop.model.alphas["mix"].grad, first)


# On a real supernet


def real(**settings):
    search = search_of("nasbench201", channels=4, cells=1, step="second-order", **settings)
    made = search.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
    return search, made, search.loop(made, 0)


def bits(tensor) -> bytes:
    return tensor.detach().cpu().numpy().tobytes()


def test_weights_buffers_gradients_and_momentum_are_the_same_bits_afterwards():
    _, made, loop = real()
    net = made.supernet.net.train()
    loop.take_step(loop.batches())  # momentum and statistics as in the middle of a search
    for parameter in weights_of(net).values():
        parameter.grad = torch.randn_like(parameter)
    part = loop.step.parts[0]
    assert isinstance(part, Unrolled)

    def snapshot():
        group = loop.groups[WEIGHTS]
        return {
            "weights": {name: bits(value) for name, value in weights_of(net).items()},
            "gradients": {name: bits(value.grad) for name, value in weights_of(net).items()},
            "buffers": {name: bits(value) for name, value in net.named_buffers()},
            "momentum": [bits(group.running.state[value]["momentum_buffer"]) for value in group.tensors],
        }

    before, alphas = snapshot(), [bits(alpha) for alpha in made.supernet.alphas.values()]
    assert before["buffers"]
    part(loop, loop.batches())
    after = snapshot()
    assert {key: after[key] == before[key] for key in before} == dict.fromkeys(before, True)
    assert net.training
    assert all(bits(alpha) != old for alpha, old in zip(made.supernet.alphas.values(), alphas, strict=True))


def test_a_search_without_random_layers_draws_nothing_in_the_step():
    _, _, loop = real()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    loop.step.parts[0](loop, loop.batches())
    assert torch.equal(torch.get_rng_state(), state)


def test_both_sides_of_the_difference_see_the_same_paths_dropped(monkeypatch):
    """With drop-path and no virtual gradient to speak of, different draws would make h explode as 1 / R."""
    from eclose.meanings.torch import net as nets

    _, made, loop = real_with_drop_path()
    masks: list[bytes] = []
    original = nets.drop_path

    def recorded(x, rate):
        state = torch.get_rng_state()
        masks.append(state.numpy().tobytes())
        return original(x, rate)

    monkeypatch.setattr(nets, "drop_path", recorded)
    loop.step.parts[0](loop, loop.batches())
    passes = len(masks) // 4  # of the training loss, of the validation loss, and the two of the difference
    assert len(masks) == 4 * passes > 0
    assert masks[2 * passes : 3 * passes] == masks[3 * passes :]
    assert masks[:passes] != masks[2 * passes : 3 * passes]
    assert made.supernet.net.drop_path_rate == 0.5


def real_with_drop_path():
    search = search_of("s2", channels=4, cells=3, step="second-order", drop_path=0.5)
    made = search.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
    made.supernet.net.drop_path_rate = 0.5
    return search, made, search.loop(made, 0)


def test_weights_of_a_mixture_are_plain_here():
    """The toy problem reads the values of the mixture; this holds the two together."""
    rule = mixture({"mix": Site("mix", "choice", ("a", "b", "c"))}, Recipe())
    found = rule({"mix": torch.zeros(3)}, "weights")["mix"]
    assert isinstance(found, MixtureWeights)
    assert torch.allclose(found.values, torch.full((3,), 1 / 3))


def test_differences_in_bfloat16_are_refused():
    with pytest.raises(RequestError, match="second-order"):
        Recipe(step="second-order", precision="bfloat16")
