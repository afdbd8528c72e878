"""The second derivative of a loss in a few tensors: the matrix, its product with a vector, its extreme eigenvalues.

In a search the tensors are the architecture logits and the loss is that of one validation batch; the largest
eigenvalue of this matrix rises before a search collapses (Zela et al., 2020). Nothing here knows networks or batches:
a loss is a function of named tensors. It is evaluated once for each call below, and must not change what it depends
on; a network in training mode changes its batch norms, for which there is `eclose.diagnose.normalisation.preserved`.

Vectors are the tensors' entries one after the other, in the order of the mapping.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.train.randomness import key_of

Loss: TypeAlias = Callable[[Mapping[str, Tensor]], Tensor]
Product: TypeAlias = Callable[[Tensor], Tensor]
Method: TypeAlias = Literal["auto", "dense", "lanczos"]

SMALL = 16  # entries up to which the whole matrix costs less than a Lanczos iteration with its trace
CONFIRMATIONS = 3  # steps in a row that must agree before an iteration ends: one may agree by accident


@dataclass(frozen=True)
class Spectrum:
    """What the eigenvalues of a Hessian say.

    Attributes:
        largest: the largest eigenvalue, by sign: a Hessian with eigenvalues -9 and 2 has 2.
        norm: the largest absolute eigenvalue; of that Hessian, 9.
        trace: the sum of the eigenvalues.
        trace_error: the standard error of the trace, 0 where it is exact.
        size: the number of entries, which is the number of eigenvalues.
        method: `"dense"` or `"lanczos"`.
        products: how many products of the Hessian with a vector were computed, each about two training steps.
    """

    largest: float
    norm: float
    trace: float
    trace_error: float
    size: int
    method: str
    products: int


def product(loss: Loss, tensors: Mapping[str, Tensor]) -> Product:
    """Return the function v -> H v, with H the Hessian of a loss at the given tensors (Pearlmutter, 1994).

    The loss and its gradient are computed here, once; each product is then one more backward pass. Tensors on which
    the loss does not depend, or depends linearly, have zeros in H.

    Args:
        loss: twice differentiable in the tensors it is given.
        tensors: the point, floating-point tensors on one device.
    """
    _check(tensors)
    with torch.enable_grad():
        point = {name: tensor.detach().clone().requires_grad_() for name, tensor in tensors.items()}
        leaves = list(point.values())
        value = loss(point)
        if value.numel() != 1:
            raise RequestError(f"a loss is one number, not a tensor of shape {tuple(value.shape)}")
        gradient = _gradient(value.sum(), leaves) if value.requires_grad else None

    def times(vector: Tensor) -> Tensor:
        if gradient is None or not gradient.requires_grad:
            return torch.zeros_like(vector)
        rows = torch.autograd.grad(
            gradient,
            leaves,
            vector.to(gradient),
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        return _flat(rows).to(vector)

    return times


def _gradient(value: Tensor, leaves: list[Tensor]) -> Tensor:
    return _flat(
        torch.autograd.grad(value, leaves, create_graph=True, allow_unused=True, materialize_grads=True),
    )


def dense(
    loss: Loss,
    tensors: Mapping[str, Tensor],
) -> Tensor:  # shape: (n, n)
    """Return the Hessian of a loss as a matrix, one backward pass for each of its n rows.

    Args:
        loss: twice differentiable in the tensors it is given.
        tensors: the point.
    """
    times = product(loss, tensors)
    size, dtype, device = _kind(tensors)
    matrix = torch.stack([times(row) for row in torch.eye(size, dtype=dtype, device=device)])
    return (matrix + matrix.T) / 2  # symmetric but for rounding


def lanczos(
    product: Product,
    size: int,
    *,
    steps: int | None = None,
    tolerance: float = 1e-4,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> tuple[float, float]:
    """Return the largest and the smallest eigenvalue of a symmetric matrix that is known by its products.

    Lanczos iteration with full reorthogonalisation: without it rounding brings converged eigenvectors back. It ends
    when the residuals, which bound the errors, are within the tolerance: relative to itself for the largest
    eigenvalue, relative to the larger of the two magnitudes for the smallest. It ends early where the vectors so far
    span an invariant subspace; a random first vector has a part in every eigenspace, so no eigenvalue is then missing.

    Args:
        product: v -> H v.
        size: entries of v.
        steps: products at most; `size` without it, after which the eigenvalues are exact. A smaller number may end
            the iteration before it has converged, and the result is then too small in magnitude.
        tolerance: the largest relative residual.
        seed: of the first vector.
        dtype: of the vectors.
        device: of the vectors.
    """
    found = _krylov(product, size, steps, tolerance, seed, dtype, device)
    return found.largest, found.smallest


@dataclass(frozen=True)
class _Krylov:
    """Where a Lanczos iteration ended.

    Attributes:
        largest: the largest Ritz value.
        smallest: the smallest.
        basis: orthonormal vectors as rows.
        trace: of the matrix between these vectors, the sum of all Ritz values.
    """

    largest: float
    smallest: float
    basis: Tensor  # shape: (k, n)
    trace: float


def _krylov(
    product: Product,
    size: int,
    steps: int | None,
    tolerance: float,
    seed: int,
    dtype: torch.dtype,
    device: torch.device | str,
) -> _Krylov:
    if size < 1:
        raise RequestError(f"a matrix with eigenvalues has at least one row, not {size}")
    if steps is not None and steps < 1:
        raise RequestError(f"a Lanczos iteration takes at least one step, not {steps}")
    first = torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    vector = (first / first.norm()).to(device=device, dtype=dtype)
    basis: list[Tensor] = []
    diagonal: list[float] = []
    beside: list[float] = []
    largest = smallest = 0.0
    known = vector[None]
    agreeing = 0
    for _ in range(min(steps or size, size)):
        basis.append(vector)
        image = _finite(product(vector))
        diagonal.append(float(image @ vector))
        known = torch.stack(basis)
        for _ in range(2):  # "twice is enough" (Kahan, Parlett)
            image = image - known.T @ (known @ image)
        length = float(image.norm())
        values, last = _ritz(diagonal, beside)
        smallest, largest = values[0], values[-1]
        norm = max(abs(smallest), abs(largest))
        rounding = 10 * torch.finfo(dtype).eps * norm
        close = (
            length * abs(last[-1]) <= tolerance * abs(largest) + rounding
            and length * abs(last[0]) <= tolerance * norm + rounding
        )
        agreeing = agreeing + 1 if close else 0
        if length <= rounding or agreeing >= CONFIRMATIONS:
            break
        beside.append(length)
        vector = image / length
    return _Krylov(largest, smallest, known, math.fsum(diagonal))


def _ritz(diagonal: list[float], beside: list[float]) -> tuple[list[float], list[float]]:
    """Return the eigenvalues of a tridiagonal matrix, ascending, and the last entry of each eigenvector."""
    matrix = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    if beside:
        edge = torch.tensor(beside, dtype=torch.float64)
        matrix += torch.diag(edge, 1) + torch.diag(edge, -1)
    values, vectors = torch.linalg.eigh(matrix)
    return values.tolist(), vectors[-1].tolist()


def hutchinson(
    product: Product,
    size: int,
    samples: int,
    seed: int = 0,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    apart: Tensor | None = None,  # shape: (k, n)
) -> tuple[float, float]:
    """Return an unbiased estimate of a symmetric matrix's trace, and its standard error.

    The mean of z H z over vectors z of random signs (Hutchinson, 1990). A diagonal matrix is estimated exactly.

    Args:
        product: v -> H v.
        size: entries of v.
        samples: how many vectors, at least 2.
        seed: of the vectors.
        dtype: of the vectors.
        device: of the vectors.
        apart: orthonormal rows; the trace is then that on the space orthogonal to them.
    """
    if samples < 2:
        raise RequestError(f"a trace with a standard error needs at least 2 samples, not {samples}")
    signs = torch.randint(0, 2, (samples, size), generator=torch.Generator().manual_seed(seed)) * 2 - 1
    probes = signs.to(device=device, dtype=dtype)
    if apart is not None:
        probes = probes - (probes @ apart.T) @ apart
    found = torch.tensor([float(_finite(product(probe)) @ probe) for probe in probes], dtype=torch.float64)
    return float(found.mean()), float(found.std()) / math.sqrt(samples)


def spectrum(
    loss: Loss,
    tensors: Mapping[str, Tensor],
    *,
    method: Method = "auto",
    weight_decay: float = 0.0,
    steps: int | None = None,
    tolerance: float = 1e-4,
    samples: int = 32,
    seed: int = 0,
) -> Spectrum:
    """Return the largest eigenvalue, the spectral norm and the trace of a loss's Hessian.

    Args:
        loss: twice differentiable in the tensors it is given.
        tensors: the point.
        method: `"dense"` takes the whole matrix, `"lanczos"` products only; `"auto"` the cheaper.
        weight_decay: of the optimiser of the tensors: the loss has 1/2 wd |x|^2 besides, and H has wd I.
        steps: of the Lanczos iteration at most.
        tolerance: of the Lanczos iteration.
        samples: of the trace on the space that the Lanczos iteration leaves; exact where that has no more dimensions.
        seed: of the Lanczos iteration's first vector and of the trace's samples.
    """
    if method not in get_args(Method):
        hint = did_you_mean(str(method), get_args(Method))
        raise RequestError(f"a spectrum's method is auto, dense or lanczos, not {method!r}{hint}")
    size, dtype, device = _kind(tensors)
    if method == "dense" or (method == "auto" and size <= SMALL):
        matrix = _finite(dense(loss, tensors)).to(device="cpu", dtype=torch.float64)
        values = torch.linalg.eigvalsh(matrix)
        largest, smallest = float(values[-1]), float(values[0])
        trace, error, used, products = float(matrix.trace()), 0.0, "dense", size
    else:
        times = _Counted(product(loss, tensors))
        found = _krylov(times, size, steps, tolerance, seed, dtype, device)
        largest, smallest = found.largest, found.smallest
        rest, error = _rest_of_trace(times, found.basis, samples, seed)
        trace = found.trace + rest
        used, products = "lanczos", times.calls
    largest, smallest = largest + weight_decay, smallest + weight_decay
    return Spectrum(
        largest=largest,
        norm=max(abs(largest), abs(smallest)),
        trace=trace + weight_decay * size,
        trace_error=error,
        size=size,
        method=used,
        products=products,
    )


def _rest_of_trace(times: Product, basis: Tensor, samples: int, seed: int) -> tuple[float, float]:
    """Return the trace on the space orthogonal to a Lanczos basis, and its standard error.

    The basis holds the eigenvectors that matter, so that only what is small is left to chance, as in Hutch++ (Meyer et
    al., 2021). Where no more dimensions are left than there would be samples, nothing is.
    """
    count, size = basis.shape
    if size - count > samples:
        key = key_of(seed, "trace")  # samples that do not depend on the basis
        return hutchinson(times, size, samples, key, dtype=basis.dtype, device=basis.device, apart=basis)
    whole, _ = torch.linalg.qr(basis.T.to(device="cpu", dtype=torch.float64), mode="complete")
    rows = whole.T[count:].to(basis)
    return math.fsum(float(_finite(times(row)) @ row) for row in rows), 0.0


class _Counted:
    """A product that counts its calls."""

    def __init__(self, times: Product):
        self.times, self.calls = times, 0

    def __call__(self, vector: Tensor) -> Tensor:
        self.calls += 1
        return self.times(vector)


def _flat(tensors: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _kind(tensors: Mapping[str, Tensor]) -> tuple[int, torch.dtype, torch.device]:
    """Return the size, type and place of the vectors that belong to some tensors."""
    _check(tensors)
    given = list(tensors.values())
    dtype = given[0].dtype
    for tensor in given[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return sum(tensor.numel() for tensor in given), dtype, given[0].device


def _check(tensors: Mapping[str, Tensor]) -> None:
    if not any(tensor.numel() for tensor in tensors.values()):
        raise RequestError("a Hessian needs at least one entry to differentiate by; there is none")
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise RequestError(f"a Hessian is taken in floating-point tensors; {name!r} is {tensor.dtype}")


def _finite(values: Tensor) -> Tensor:
    if not bool(torch.isfinite(values).all()):
        raise RequestError(
            "the Hessian has entries that are not finite: the loss has diverged, or it has no second derivative here"
        )
    return values


__all__ = ["Loss", "Method", "Product", "Spectrum", "dense", "hutchinson", "lanczos", "product", "spectrum"]
