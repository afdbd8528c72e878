"""Hessians against torch's own, Lanczos and Hutchinson against matrices with chosen eigenvalues."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from eclose.algebra.errors import RequestError
from eclose.diagnose.hessian import dense, hutchinson, lanczos, product, spectrum

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def mixture_problem(edges: int, operations: int, seed: int = 0, dtype: torch.dtype = torch.float64):
    """A chain of mixed edges, each a softmax mixture of small maps, and a classifier: a supernet in miniature."""
    drawn = generator(seed)
    maps = torch.randn(edges, operations, 6, 6, generator=drawn, dtype=torch.float64).to(dtype)
    head = torch.randn(6, 3, generator=drawn, dtype=torch.float64).to(dtype)
    inputs = torch.randn(32, 6, generator=drawn, dtype=torch.float64).to(dtype)
    targets = torch.randint(0, 3, (32,), generator=drawn)
    alphas = {
        f"edge{edge}": torch.randn(operations, generator=drawn, dtype=torch.float64).to(dtype) for edge in range(edges)
    }

    def loss(point) -> Tensor:
        hidden = inputs
        for edge in range(edges):
            theta = point[f"edge{edge}"].softmax(0)
            hidden = sum(theta[index] * torch.tanh(hidden @ maps[edge, index]) for index in range(operations))
        return nn.functional.cross_entropy(hidden @ head, targets)

    return loss, alphas


def reference(loss, tensors) -> Tensor:
    """The Hessian by torch's own function, of one vector."""
    shapes = {name: tensor.shape for name, tensor in tensors.items()}

    def of_vector(vector: Tensor) -> Tensor:
        parts = torch.split(vector, [shape.numel() for shape in shapes.values()])
        point = {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        return loss(point)

    vector = torch.cat([tensor.reshape(-1) for tensor in tensors.values()])
    return torch.autograd.functional.hessian(of_vector, vector)


def with_eigenvalues(values: Tensor, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    size = len(values)
    basis, _ = torch.linalg.qr(torch.randn(size, size, generator=generator(seed), dtype=torch.float64))
    matrix = (basis * values) @ basis.T
    return ((matrix + matrix.T) / 2).to(dtype)


def quadratic(matrix: Tensor):
    size = len(matrix)

    def loss(point) -> Tensor:
        x = torch.cat([point["a"], point["b"].reshape(-1)])
        return 0.5 * x @ matrix @ x + x.sum()

    half = size // 2
    kind = {"dtype": matrix.dtype}
    return loss, {"a": torch.ones(half, **kind), "b": torch.ones(1, size - half, **kind)}


def test_the_matrix_is_that_of_torch():
    loss, alphas = mixture_problem(edges=3, operations=4)
    found = dense(loss, alphas)
    assert found.dtype == torch.float64
    assert torch.equal(found, found.T)
    torch.testing.assert_close(found, reference(loss, alphas), rtol=1e-9, atol=1e-12)


def test_the_matrix_of_a_network_with_tensors_of_several_shapes():
    drawn = generator(3)
    tensors = {
        "first": torch.randn(4, 3, generator=drawn, dtype=torch.float64),
        "bias": torch.randn(3, generator=drawn, dtype=torch.float64),
        "alpha": torch.randn((), generator=drawn, dtype=torch.float64),
    }
    inputs = torch.randn(10, 4, generator=drawn, dtype=torch.float64)

    def loss(point) -> Tensor:
        return (torch.tanh(inputs @ point["first"] + point["bias"]).pow(2).sum(1) * point["alpha"].exp()).mean()

    torch.testing.assert_close(dense(loss, tensors), reference(loss, tensors), rtol=1e-9, atol=1e-12)


def test_products_are_the_matrix_times_the_vector_and_the_loss_is_evaluated_once():
    loss, alphas = mixture_problem(edges=2, operations=5)
    calls = []

    def counted(point) -> Tensor:
        calls.append(1)
        return loss(point)

    times = product(counted, alphas)
    matrix = reference(loss, alphas)
    for seed in range(3):
        vector = torch.randn(10, generator=generator(seed), dtype=torch.float64)
        torch.testing.assert_close(times(vector), matrix @ vector, rtol=1e-9, atol=1e-12)
    assert len(calls) == 1


def test_the_tensors_are_left_alone_and_gradients_may_be_off():
    loss, alphas = mixture_problem(edges=2, operations=3)
    parameters = {name: nn.Parameter(alpha.clone()) for name, alpha in alphas.items()}
    with torch.no_grad():
        found = dense(loss, parameters)
    torch.testing.assert_close(found, reference(loss, alphas), rtol=1e-9, atol=1e-12)
    for name, parameter in parameters.items():
        assert parameter.grad is None
        assert torch.equal(parameter, alphas[name])


def test_tensors_without_influence_have_zeros():
    def loss(point) -> Tensor:
        return (point["used"] ** 3).sum() + 5 * point["linear"].sum()

    tensors = {
        "unused": torch.ones(2, dtype=torch.float64),
        "used": torch.tensor([1.0, 2.0], dtype=torch.float64),
        "linear": torch.ones(1, dtype=torch.float64),
    }
    assert torch.equal(dense(loss, tensors), torch.diag(torch.tensor([0, 0, 6, 12, 0], dtype=torch.float64)))


@pytest.mark.parametrize(
    "loss", [lambda point: torch.tensor(2.0), lambda point: 3 * point["a"].sum()], ids=["constant", "linear"]
)
@pytest.mark.parametrize("method", ["dense", "lanczos"])
def test_a_loss_without_curvature(loss, method):
    found = spectrum(loss, {"a": torch.ones(40)}, method=method, weight_decay=0.5)
    assert (found.largest, found.norm, found.trace, found.trace_error) == (0.5, 0.5, 20.0, 0.0)


SPECTRA = {
    "even": torch.linspace(-1, 1, 120, dtype=torch.float64),
    "outliers": torch.cat([torch.tensor([9.0, 5.0, -4.0]), torch.linspace(-0.1, 0.1, 97)]).double(),
    "close": torch.cat([torch.tensor([1.0, 0.995, 0.99]), torch.linspace(-0.3, 0.9, 150)]).double(),
    "degenerate": torch.tensor([3.0] * 10 + [-1.0] * 50, dtype=torch.float64),
    "mostly below zero": torch.cat([torch.tensor([-50.0, 0.2]), torch.linspace(0, 0.1, 98)]).double(),
    "all below zero": torch.linspace(-5, -1, 80, dtype=torch.float64),
    "singular": torch.cat([torch.zeros(60), torch.tensor([1e-3, 2.0])]).double(),
    "identity": torch.full((30,), 7.0, dtype=torch.float64),
    "one": torch.tensor([-2.5], dtype=torch.float64),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_lanczos_finds_both_ends_of_a_chosen_spectrum(name, dtype):
    values = SPECTRA[name]
    for seed in range(4):
        matrix = with_eigenvalues(values, seed, dtype)
        largest, smallest = lanczos(matrix.mv, len(values), seed=seed, dtype=dtype)
        assert largest == pytest.approx(float(values.max()), rel=1e-3)
        assert smallest == pytest.approx(float(values.min()), abs=1e-3 * float(values.abs().max()))


def test_lanczos_ends_early_where_the_vectors_span_an_invariant_subspace():
    calls = []
    matrix = with_eigenvalues(SPECTRA["degenerate"])

    def times(vector: Tensor) -> Tensor:
        calls.append(1)
        return matrix @ vector

    largest, smallest = lanczos(times, 60, dtype=torch.float64)
    assert len(calls) == 2  # as many as there are different eigenvalues
    assert (largest, smallest) == (pytest.approx(3.0, rel=1e-12), pytest.approx(-1.0, rel=1e-12))


def test_lanczos_needs_far_fewer_products_than_entries_and_obeys_its_limit():
    values = torch.cat([torch.tensor([10.0, 5.0, 3.0]), torch.linspace(-0.05, 0.05, 397)]).double()
    matrix = with_eigenvalues(values)
    calls = []

    def times(vector: Tensor) -> Tensor:
        calls.append(1)
        return matrix @ vector

    assert lanczos(times, 400, dtype=torch.float64)[0] == pytest.approx(10.0, rel=1e-3)
    assert len(calls) < 60
    calls.clear()
    largest, _ = lanczos(times, 400, steps=2, dtype=torch.float64)
    assert len(calls) == 2
    assert largest <= 10.0 + 1e-12  # Ritz values lie inside the spectrum


@pytest.mark.parametrize("edges, operations", [(4, 2), (6, 5), (14, 4)])
def test_both_methods_agree_on_a_mixture(edges, operations):
    loss, alphas = mixture_problem(edges, operations, seed=edges)
    values = torch.linalg.eigvalsh(reference(loss, alphas))
    exact = spectrum(loss, alphas, method="dense")
    assert exact.largest == pytest.approx(float(values[-1]), rel=1e-9)
    assert exact.norm == pytest.approx(float(values.abs().max()), rel=1e-9)
    assert exact.trace == pytest.approx(float(values.sum()), rel=1e-9)
    assert (exact.size, exact.products, exact.trace_error) == (edges * operations, edges * operations, 0.0)
    found = spectrum(loss, alphas, method="lanczos")
    assert found.method == "lanczos"
    assert found.largest == pytest.approx(exact.largest, rel=1e-3)
    assert found.norm == pytest.approx(exact.norm, rel=1e-3)
    assert abs(found.trace - exact.trace) <= 4 * found.trace_error + 1e-9 * abs(exact.trace)


def test_the_norm_is_of_the_eigenvalue_furthest_from_zero():
    values = torch.cat([torch.tensor([-50.0, 0.2]), torch.linspace(0, 0.1, 28)]).double()
    loss, tensors = quadratic(with_eigenvalues(values))
    for method in ("dense", "lanczos"):
        found = spectrum(loss, tensors, method=method)
        assert found.largest == pytest.approx(0.2, rel=1e-3)
        assert found.norm == pytest.approx(50.0, rel=1e-3)
        assert found.trace == pytest.approx(float(values.sum()), rel=1e-9)  # 30 entries: exact with 32 samples
        assert found.trace_error == 0.0
        assert found.products <= 30


def test_weight_decay_moves_every_eigenvalue():
    loss, alphas = mixture_problem(5, 4)
    decay = 0.7

    def decayed(point) -> Tensor:
        return loss(point) + 0.5 * decay * sum((entry**2).sum() for entry in point.values())

    for method in ("dense", "lanczos"):
        added = spectrum(loss, alphas, method=method, weight_decay=decay)
        written = spectrum(decayed, alphas, method="dense")
        assert added.largest == pytest.approx(written.largest, rel=1e-3)
        assert added.norm == pytest.approx(written.norm, rel=1e-3)
        assert added.trace == pytest.approx(written.trace, rel=1e-6)


def test_auto_takes_the_whole_matrix_of_few_entries_only():
    small, few = mixture_problem(4, 4)
    large, many = mixture_problem(4, 5)
    assert spectrum(small, few).method == "dense"
    assert spectrum(large, many).method == "lanczos"


def test_single_precision_keeps_its_type_and_is_close_to_double():
    loss, alphas = mixture_problem(7, 5, dtype=torch.float32)
    double, points = mixture_problem(7, 5)
    assert dense(loss, alphas).dtype == torch.float32
    exact = spectrum(double, points, method="dense")
    assert spectrum(loss, alphas, method="lanczos").largest == pytest.approx(exact.largest, rel=1e-3)


def test_the_trace_is_estimated_without_bias_and_with_the_error_stated():
    matrix = with_eigenvalues(torch.linspace(-1, 3, 50, dtype=torch.float64))
    trace = float(matrix.trace())
    standardised = []
    for seed in range(200):
        found, error = hutchinson(matrix.mv, 50, 40, seed, dtype=torch.float64)
        standardised.append((found - trace) / error)
    scores = torch.tensor(standardised)
    assert abs(float(scores.mean())) < 0.3  # 200 values of about unit variance: standard error 0.07
    assert 0.8 < float(scores.std()) < 1.25


def test_the_trace_apart_from_a_subspace_is_that_of_the_rest():
    matrix = with_eigenvalues(torch.linspace(-1, 3, 20, dtype=torch.float64))
    rows, _ = torch.linalg.qr(torch.randn(20, 6, generator=generator(9), dtype=torch.float64))
    rest = float(matrix.trace() - (rows.T @ matrix @ rows).trace())
    found, error = hutchinson(matrix.mv, 20, 4000, dtype=torch.float64, apart=rows.T)
    assert abs(found - rest) < 4 * error < 0.5


def test_the_trace_of_a_spectrum_is_unbiased_and_closer_than_without_the_lanczos_basis():
    values = torch.cat([torch.tensor([30.0, 20.0, -10.0]), torch.linspace(-0.1, 0.3, 57)]).double()
    loss, tensors = quadratic(with_eigenvalues(values))
    found = [spectrum(loss, tensors, seed=seed, samples=8) for seed in range(40)]
    errors = torch.tensor([one.trace - float(values.sum()) for one in found])
    stated = torch.tensor([one.trace_error for one in found])
    assert abs(float(errors.mean())) < 4 * float(errors.std()) / 40**0.5
    assert float(errors.pow(2).mean().sqrt()) < 2 * float(stated.pow(2).mean().sqrt())
    matrix = with_eigenvalues(values)
    assert float(stated.max()) < hutchinson(matrix.mv, 60, 8, dtype=torch.float64)[1] / 5


def test_the_trace_of_a_diagonal_matrix_is_exact():
    diagonal = torch.arange(1.0, 6.0, dtype=torch.float64)
    assert hutchinson(lambda vector: diagonal * vector, 5, 2, dtype=torch.float64) == (15.0, 0.0)


@pytest.mark.parametrize("device", DEVICES)
def test_the_numbers_do_not_depend_on_where_the_tensors_are(device):
    """Nor on whether a network is convolutional and in training mode, as a supernet is when it is probed."""
    drawn = generator(11)
    layers = nn.ModuleList([nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)) for _ in range(3)]).double()
    for parameter in layers.parameters():
        parameter.data = torch.randn(parameter.shape, generator=drawn, dtype=torch.float64)
    images = torch.randn(8, 3, 6, 6, generator=drawn, dtype=torch.float64)
    alphas = {f"edge{edge}": torch.randn(3, generator=drawn, dtype=torch.float64) for edge in range(8)}

    def loss(point) -> Tensor:
        hidden = images.to(point["edge0"])
        for alpha in point.values():
            theta = alpha.softmax(0)
            hidden = hidden + theta[0] * layers[0](hidden) + theta[1] * layers[1](hidden).relu() + theta[2] * 0
        return layers[2](hidden).tanh().pow(3).mean()

    here = spectrum(loss, alphas, method="dense")
    layers.to(device)
    there = {name: alpha.to(device) for name, alpha in alphas.items()}
    for method, samples in (("dense", 4), ("lanczos", 4), ("lanczos", 32)):
        found = spectrum(loss, there, method=method, samples=samples)
        assert found.largest == pytest.approx(here.largest, rel=1e-3)
        assert found.norm == pytest.approx(here.norm, rel=1e-3)
        assert abs(found.trace - here.trace) <= 6 * found.trace_error + 1e-6 * abs(here.trace)
    assert dense(loss, there).device.type == device


def test_the_same_seed_gives_the_same_numbers_and_the_global_state_is_untouched():
    loss, alphas = mixture_problem(10, 5)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = spectrum(loss, alphas, seed=4)
    torch.rand(3)
    assert spectrum(loss, alphas, seed=4) == first
    assert spectrum(loss, alphas, seed=5).trace != first.trace
    torch.set_rng_state(before)
    spectrum(loss, alphas, seed=4)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_cannot_be_differentiated_is_refused():
    point = {"a": torch.ones(20)}
    with pytest.raises(RequestError, match="one number"):
        product(lambda given: given["a"] ** 2, point)
    with pytest.raises(RequestError, match="there is none"):
        spectrum(lambda given: torch.tensor(1.0), {})
    with pytest.raises(RequestError, match=r"'a' is torch\.int64"):
        dense(lambda given: given["a"].sum(), {"a": torch.ones(2, dtype=torch.long)})
    with pytest.raises(RequestError, match="did you mean 'lanczos'"):
        spectrum(lambda given: given["a"].sum(), point, method="lanzcos")
    for method in ("dense", "lanczos"):
        with pytest.raises(RequestError, match="not finite"):
            spectrum(lambda given: (given["a"] * float("inf")).pow(2).sum(), point, method=method)
    with pytest.raises(RequestError, match="at least 2 samples"):
        hutchinson(lambda vector: vector, 3, 1)
    with pytest.raises(RequestError, match="at least one row"):
        lanczos(lambda vector: vector, 0)
    with pytest.raises(RequestError, match="at least one step"):
        lanczos(lambda vector: vector, 3, steps=0)
