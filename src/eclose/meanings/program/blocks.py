"""Small groups of layers that the meanings of primitives share: a convolution that keeps the resolution, a norm, a map.

Everything here appends layers to a site and returns their output; nothing decides what an operator means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eclose.meanings.program.emitter import Site
from eclose.meanings.program.ir import Tensor
from eclose.meanings.program.shape_rules import kernel_size

Size = int | Sequence[int]


def axes(x: Tensor) -> int:
    """Return the number of spatial axes."""
    return len(x.shape) - 1


def window(site: Site, x: Tensor, kernel: Size, dilation: Size, stride: Size, padding: Size | None) -> dict[str, Any]:
    """Return the window settings with one number an axis; padding that is not given keeps the resolution."""
    count = axes(x)
    if count < 1:
        site.fail(f"{site.operator.name} needs channels and positions, but the input has shape {x.shape}")
    sizes = {"kernel": kernel, "dilation": dilation, "stride": stride}
    if padding is not None:
        sizes["padding"] = padding
    full = {}
    for key, size in sizes.items():
        full[key] = kernel_size(size, count)
        if len(full[key]) != count:
            site.fail(f"{key}={full[key]} is made for {len(full[key])} spatial axes, but the input has {count}")
    if padding is None:
        for k, s in zip(full["kernel"], full["stride"], strict=True):
            if k % 2 == 0 and s == 1:
                site.fail(f"a window of even size {k} cannot keep the resolution: use an odd size or set padding=")
        full["padding"] = tuple(d * (k - 1) // 2 for k, d in zip(full["kernel"], full["dilation"], strict=True))
    return full


def convolve(
    site: Site,
    x: Tensor,
    channels: int,
    kernel: Size = 1,
    *,
    stride: Size = 1,
    dilation: Size = 1,
    padding: Size | None = None,
    groups: int = 1,
    bias: bool = False,
    local: str | None = None,
) -> Tensor:
    """Emit a convolution; without a given padding, stride 1 keeps the resolution and stride s gives ceil(n / s)."""
    settings = window(site, x, kernel, dilation, stride, padding)
    return site.layer("conv", x, local=local, channels=channels, groups=groups, bias=bias, **settings)


def pool(site: Site, x: Tensor, kind: str, kernel: Size, stride: Size, padding: Size | None = None) -> Tensor:
    """Emit a `max_pool` or `avg_pool`."""
    settings = window(site, x, kernel, 1, stride, padding)
    del settings["dilation"]
    return site.layer(kind, x, **settings)


def normalise(site: Site, x: Tensor, kind: str = "batch", *, affine: bool | None = None, **settings: Any) -> Tensor:
    """Emit a normalisation, with scale and shift as inherited where `affine` is not given."""
    affine = site.context.affine if affine is None else affine
    return site.layer(f"{kind}_norm", x, affine=affine, **settings)


def activate(site: Site, x: Tensor, name: str = "relu") -> Tensor:
    """Emit a unary function of the input's type."""
    return site.layer("function", x, local=name, type=x.type, name=name)


def drop(site: Site, x: Tensor, rate: float) -> Tensor:
    """Emit a dropout, or nothing at rate 0."""
    if rate >= 1:
        site.fail(f"a dropout rate must be below 1, not {rate:g}")
    return site.layer("dropout", x, type=x.type, rate=rate) if rate > 0 else x


def pointwise(site: Site, x: Tensor, channels: int, *, bias: bool = True, local: str, type: str = "feature") -> Tensor:
    """Emit a linear map of a vector, or of the channels at every position."""
    if axes(x) < 1:
        return site.layer("linear", x, local=local, type=type, features=channels, bias=bias)
    settings = window(site, x, 1, 1, 1, None)
    return site.layer("conv", x, local=local, type=type, channels=channels, bias=bias, **settings)


def as_vector(site: Site, x: Tensor) -> Tensor:
    """Return the mean over all positions; a vector stays as it is."""
    return site.layer("global_pool", x) if axes(x) > 0 else x
