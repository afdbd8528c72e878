"""How values come together at a node: sums and concatenations, typed bundles, adapters.

A sum of tensors with unequal shapes is a located error, or (policy `"adapt"`) gets explicit adapter layers.
"""

from __future__ import annotations

from collections.abc import Sequence

from eclose.algebra.shapes import Shape
from eclose.meanings.program.emitter import Site
from eclose.meanings.program.ir import Bundle, Tensor, Value


def as_parts(value: Value) -> dict[str, Tensor]:
    """Return a value as a mapping from type to tensor."""
    return {value.type: value} if isinstance(value, Tensor) else dict(value.parts)


def as_value(parts: dict[str, Tensor]) -> Value:
    """Return the tensor, or the bundle where there are several types."""
    return next(iter(parts.values())) if len(parts) == 1 else Bundle(parts)


def by_type(values: Sequence[Value]) -> dict[str, list[tuple[int, Tensor]]]:
    """Return for each type the `(position, tensor)` pairs that have it."""
    found: dict[str, list[tuple[int, Tensor]]] = {}
    for position, value in enumerate(values):
        for kind, tensor in as_parts(value).items():
            found.setdefault(kind, []).append((position, tensor))
    return found


def total(site: Site, values: Sequence[Value], local: str = "add") -> Value:
    """Return the sum of values, type by type."""
    return as_value(
        {kind: add(site, [tensor for _, tensor in tensors], local) for kind, tensors in by_type(values).items()}
    )


def add(site: Site, tensors: list[Tensor], local: str = "add") -> Tensor:
    """Return the sum of tensors of one type; zeros by construction drop out after their shapes were checked."""
    kind = tensors[0].type
    if kind == "kernel":
        tensors = equal_kernels(site, tensors)
    elif kind != "attention":
        tensors = equal_shapes(site, tensors, "sum", channels=True)
    needed = [tensor for tensor in tensors if not site.is_zero(tensor)] or tensors[:1]
    if len(needed) == 1:
        return needed[0]
    local = local if kind == "feature" else f"{local}_{kind}"
    return site.layer("add", *needed, local=local, type=kind, broadcast=kind == "attention")


def concat(site: Site, values: Sequence[Value]) -> Tensor:
    """Return the concatenation of features on their channels."""
    tensors = [feature(site, value) for value in values]
    if len(tensors) == 1:
        return tensors[0]
    tensors = equal_shapes(site, tensors, "concatenation", channels=False)
    return site.layer("concat", *tensors)


def feature(site: Site, value: Value) -> Tensor:
    """Return a value that must be one feature."""
    tensor = site.one(value)
    if tensor.type in ("attention", "kernel"):
        site.fail(f"{'an' if tensor.type == 'attention' else 'a'} {tensor.type} came where a feature is needed")
    return tensor


def equal_kernels(site: Site, tensors: list[Tensor]) -> list[Tensor]:
    """Zero-pad per-sample kernels to the largest of them."""
    size = max(tensor.shape[-1] for tensor in tensors)
    return [
        tensor if tensor.shape[-1] == size else site.layer("pad_kernel", tensor, type="kernel", size=size)
        for tensor in tensors
    ]


def equal_shapes(site: Site, tensors: list[Tensor], what: str, *, channels: bool) -> list[Tensor]:
    """Return tensors of equal shapes (channels included or not), adapted where the policy says so."""
    start = 0 if channels else 1
    if len({(len(tensor.shape), tensor.shape[start:]) for tensor in tensors}) == 1:
        return tensors
    shapes = ", ".join(str(tensor.shape) for tensor in tensors)
    if len({len(tensor.shape) for tensor in tensors}) > 1 or len(tensors[0].shape) < 2:
        site.fail(f"{site.term.name} cannot take the {what} of values with shapes {shapes}")
    if site.policy == "reject":
        differ = "channels" if len({tensor.shape[1:] for tensor in tensors}) == 1 else "sizes"
        site.fail(
            f"the {what} in {site.term.name} meets shapes {shapes}: their {differ} differ. Give the branches equal "
            "channels and strides, or build with policy='adapt' to insert adapters"
        )
    target = (
        max(tensor.shape[0] for tensor in tensors),
        *(min(sizes) for sizes in zip(*(tensor.shape[1:] for tensor in tensors), strict=True)),
    )
    return [adapted(site, tensor, target if channels else (tensor.shape[0], *target[1:])) for tensor in tensors]


def adapted(site: Site, tensor: Tensor, target: Shape) -> Tensor:
    """Return the tensor brought to a shape by explicit adapter layers: a resize, then a 1x1 convolution."""
    if tensor.shape[1:] != target[1:]:
        tensor = site.layer("resize", tensor, local="adapter_resize", type=tensor.type, size=target[1:])
    if tensor.shape[0] != target[0]:
        ones = (1,) * (len(target) - 1)
        tensor = site.layer(
            "conv",
            tensor,
            local="adapter_conv",
            type=tensor.type,
            channels=target[0],
            kernel=ones,
            stride=ones,
            padding=(0,) * len(ones),
            dilation=ones,
            groups=1,
            bias=False,
        )
    return tensor
