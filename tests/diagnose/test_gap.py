"""The sharpness estimate on losses whose Taylor expansion is known."""

from __future__ import annotations

import pytest
import torch

from eclose.algebra.errors import RequestError
from eclose.diagnose.gap import sharpness


def bowl(size: int = 9):
    drawn = torch.Generator().manual_seed(2)
    root = torch.randn(size, size, generator=drawn, dtype=torch.float64)
    minimum = torch.randn(size, generator=drawn, dtype=torch.float64)
    matrix = root @ root.T - 2 * torch.eye(size, dtype=torch.float64)  # a saddle is as good

    def loss(point):
        x = torch.cat([point["a"].reshape(-1), point["b"]]) - minimum
        return 0.5 * x @ matrix @ x + 3.0

    return loss, {"a": minimum[:4].reshape(2, 2), "b": minimum[4:]}


def moved(point, seed: int):
    drawn = torch.Generator().manual_seed(seed)
    return {
        name: entry + torch.randn(entry.shape, generator=drawn, dtype=torch.float64) for name, entry in point.items()
    }


def test_it_is_the_rise_of_a_quadratic_from_where_its_gradient_is_zero():
    loss, stationary = bowl()
    for seed in range(4):
        other = moved(stationary, seed)
        rise = float(loss(other) - loss(stationary))
        assert sharpness(loss, stationary, other) == pytest.approx(rise, rel=1e-9)
    assert sharpness(loss, stationary, stationary) == 0.0


def test_elsewhere_the_slope_is_what_is_missing():
    loss, stationary = bowl()
    start, other = moved(stationary, 5), moved(stationary, 6)
    leaves = {name: entry.clone().requires_grad_() for name, entry in start.items()}
    gradients = torch.autograd.grad(loss(leaves), list(leaves.values()))
    slope = sum(
        float((gradient * (other[name] - start[name])).sum()) for name, gradient in zip(leaves, gradients, strict=True)
    )
    rise = float(loss(other) - loss(start))
    assert sharpness(loss, start, other) == pytest.approx(rise - slope, rel=1e-9)


def test_the_order_of_names_in_the_second_point_does_not_matter():
    loss, stationary = bowl()
    other = moved(stationary, 1)
    turned = dict(reversed(list(other.items())))
    assert sharpness(loss, stationary, turned) == sharpness(loss, stationary, other)


def test_of_a_loss_without_curvature_it_is_zero():
    start, end = {"a": torch.zeros(3)}, {"a": torch.ones(3)}
    assert sharpness(lambda point: point["a"].sum(), start, end) == 0.0
    assert sharpness(lambda point: torch.tensor(1.0), start, end) == 0.0


def test_points_that_do_not_match_are_refused():
    loss, stationary = bowl()
    with pytest.raises(RequestError, match="only one has 'c'"):
        sharpness(loss, stationary, {**stationary, "c": torch.ones(1)})
    with pytest.raises(RequestError, match=r"different shapes at 'b': \(5,\) and \(4,\)"):
        sharpness(loss, stationary, {**stationary, "b": stationary["b"][:4]})
