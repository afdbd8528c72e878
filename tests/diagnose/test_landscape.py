"""Landscapes of quadratics, whose values on the grid are known from the directions."""

from __future__ import annotations

import pytest
import torch

from eclose.algebra.errors import RequestError
from eclose.diagnose.landscape import directions, landscape

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def centre(dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    drawn = torch.Generator().manual_seed(7)
    return {
        "one": torch.randn(3, 4, generator=drawn, dtype=torch.float64).to(dtype),
        "two": torch.randn(5, generator=drawn, dtype=torch.float64).to(dtype),
    }


def flat(point) -> torch.Tensor:
    return torch.cat([entry.reshape(-1) for entry in point.values()])


def test_directions_are_orthogonal_and_as_long_as_the_centre():
    point = centre()
    length = float(flat(point).norm())
    for seed in range(5):
        first, second, scale = directions(point, seed)
        assert {name: entry.shape for name, entry in first.items()} == {name: e.shape for name, e in point.items()}
        assert scale == pytest.approx(length, rel=1e-14)
        assert float(flat(first).norm()) == pytest.approx(length, rel=1e-12)
        assert float(flat(second).norm()) == pytest.approx(length, rel=1e-12)
        assert abs(float(flat(first) @ flat(second))) < 1e-12 * length**2


def test_directions_of_two_entries_are_still_orthogonal():
    for seed in range(50):
        first, second, _ = directions({"pair": torch.tensor([3.0, 4.0], dtype=torch.float64)}, seed)
        assert abs(float(first["pair"] @ second["pair"])) < 1e-12


def test_around_zero_the_directions_have_length_one():
    first, second, scale = directions({"zero": torch.zeros(8)}, 0)
    assert scale == 1.0
    assert float(first["zero"].norm()) == pytest.approx(1.0, rel=1e-6)
    assert float(second["zero"].norm()) == pytest.approx(1.0, rel=1e-6)


def test_values_of_a_bowl_around_its_minimum():
    point = centre()
    found = landscape(
        lambda at: {"loss": (flat(at) - flat(point)).pow(2).sum(), "score": -1.0}, point, radius=0.5, points=5
    )
    assert found.axis == [-0.5, -0.25, 0.0, 0.25, 0.5]
    squared = float(flat(point).pow(2).sum())
    for i, x in enumerate(found.axis):
        for j, y in enumerate(found.axis):
            # |x d1 + y d2|^2 with orthogonal directions of the centre's length
            assert found.values["loss"][i][j] == pytest.approx((x**2 + y**2) * squared, rel=1e-9, abs=1e-12)
    assert found.values["score"] == [[-1.0] * 5] * 5


def test_rows_are_along_the_first_direction():
    point = centre()
    first, second, scale = directions(point, 3)
    found = landscape(
        lambda at: {
            "along first": (flat(at) - flat(point)) @ flat(first) / scale**2,
            "along second": (flat(at) - flat(point)) @ flat(second) / scale**2,
        },
        point,
        points=3,
        seed=3,
    )
    assert torch.tensor(found.values["along first"]).T.allclose(torch.tensor([[-1.0, 0.0, 1.0]] * 3), atol=1e-6)
    assert torch.tensor(found.values["along second"]).allclose(torch.tensor([[-1.0, 0.0, 1.0]] * 3), atol=1e-6)


def test_the_point_in_the_middle_is_the_centre_itself():
    point = centre(torch.float32)
    seen = []
    landscape(lambda at: seen.append(at) or {"loss": 0.0}, point, points=5, project=lambda at: at)
    assert len(seen) == 25
    assert seen[12] is point
    assert all(entry.dtype == torch.float32 for entry in seen[0].values())


@pytest.mark.parametrize("device", DEVICES)
def test_a_seed_means_the_same_directions_on_every_device(device):
    here = directions(centre(), 4)
    there = directions({name: entry.to(device) for name, entry in centre().items()}, 4)
    for one, other in zip(here[:2], there[:2], strict=True):
        for name, entry in other.items():
            assert entry.device.type == device
            assert torch.equal(one[name], entry.cpu())


def test_points_are_projected():
    point = {"theta": torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)}

    def clip(at):
        inside = at["theta"].clamp(0, 1)
        return {"theta": inside / inside.sum()}

    seen = []
    landscape(lambda at: seen.append(at["theta"]) or {"loss": 0.0}, point, points=7, radius=0.8, project=clip)
    for theta in seen:
        assert float(theta.sum()) == pytest.approx(1.0)
        assert float(theta.min()) >= 0
    free = []
    landscape(lambda at: free.append(at["theta"]) or {"loss": 0.0}, point, points=7, radius=0.8)
    assert any(float(theta.min()) < 0 for theta in free)


def test_a_seed_decides_the_grid_and_the_global_state_is_untouched():
    def value(at):
        return {"loss": flat(at).exp().sum()}

    before = torch.get_rng_state()
    first = landscape(value, centre(), points=3, seed=1)
    assert landscape(value, centre(), points=3, seed=1) == first
    assert landscape(value, centre(), points=3, seed=2) != first
    assert torch.equal(torch.get_rng_state(), before)


def test_what_makes_no_landscape_is_refused():
    point = centre()
    with pytest.raises(RequestError, match="odd number of points, not 4"):
        landscape(lambda at: {}, point, points=4)
    with pytest.raises(RequestError, match="above 0"):
        landscape(lambda at: {}, point, radius=0.0)
    with pytest.raises(RequestError, match="at least two entries, not 1"):
        landscape(lambda at: {}, {"one": torch.ones(1)})
    with pytest.raises(RequestError, match="'score' was given at some points"):
        landscape(lambda at: {"loss": 0.0, **({"score": 1.0} if at is point else {})}, point, points=3)
