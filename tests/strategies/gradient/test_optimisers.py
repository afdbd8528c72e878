"""Exponentiated gradient: its formula, the simplex, the floor."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from eclose.strategies.gradient.optimisers import FLOOR, ExponentiatedGradient, architecture_optimiser
from eclose.strategies.gradient.recipe import Recipe


def moved(theta, gradient, rate: float = 0.1, floor: float = FLOOR) -> np.ndarray:
    parameter = nn.Parameter(torch.tensor(theta, dtype=torch.float64))
    parameter.grad = torch.tensor(gradient, dtype=torch.float64)
    ExponentiatedGradient([parameter], rate, floor).step()
    return parameter.detach().numpy()


@pytest.mark.parametrize("seed", range(5))
def test_the_update_is_the_printed_formula(seed):
    random = np.random.default_rng(seed)
    theta = random.dirichlet(np.ones(6))
    gradient = random.normal(size=6)
    expected = theta * np.exp(-0.1 * gradient)
    assert np.allclose(moved(theta, gradient), expected / expected.sum(), rtol=1e-12)


def test_a_shared_part_of_the_gradient_moves_nothing():
    theta = [0.2, 0.5, 0.3]
    assert np.allclose(moved(theta, [7.0, 7.0, 7.0]), theta)
    assert np.allclose(moved(theta, [1.0, 2.0, 3.0]), moved(theta, [101.0, 102.0, 103.0]), rtol=1e-10)


def test_it_stays_on_the_simplex_and_above_the_floor():
    random = np.random.default_rng(0)
    parameter = nn.Parameter(torch.full((5,), 0.2))
    optimiser = ExponentiatedGradient([parameter], 1.0)
    for _ in range(500):
        parameter.grad = torch.tensor(random.normal([2.0, 0, 0, 0, -2.0]), dtype=torch.float32)
        optimiser.step()
        assert float(parameter.detach().sum()) == pytest.approx(1.0, abs=1e-6)
        assert float(parameter.detach().min()) >= FLOOR / (1.0 + 5 * FLOOR) * 0.999
    assert int(parameter.argmax()) == 4


def test_the_floor_is_taken_before_the_division():
    found = moved([0.5, 0.5], [0.0, 1000.0])
    assert np.allclose(found, [0.5 / (0.5 + FLOOR), FLOOR / (0.5 + FLOOR)])


def test_huge_gradients_are_finite():
    assert np.isfinite(moved([0.5, 0.5], [1e30, -1e30])).all()
    assert np.isfinite(moved([0.5, 0.5], [-1e5, -1e5 + 1.0])).all()


def test_what_was_dropped_stays_dropped():
    found = moved([0.0, 0.6, 0.4], [-50.0, 1.0, -1.0])
    assert found[0] == 0.0
    assert found.sum() == pytest.approx(1.0)


def test_the_gradient_of_what_was_dropped_means_nothing():
    """A dropped entry with a far smaller gradient must not push the others to the floor."""
    assert np.allclose(moved([0.0, 0.6, 0.4], [-1e4, 0.0, 0.0]), [0.0, 0.6, 0.4])


def test_adam_has_the_betas_and_the_decay_of_the_recipe():
    made = architecture_optimiser(Recipe(architecture_beta1=0.5, architecture_decay=1e-3))
    parameter = nn.Parameter(torch.zeros(3))
    group = made([parameter], 3e-4).param_groups[0]
    assert (group["betas"], group["weight_decay"], group["lr"]) == ((0.5, 0.999), 1e-3, 3e-4)
