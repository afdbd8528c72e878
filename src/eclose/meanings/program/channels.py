"""Partial channel connections as programs: slice, child, bypass, concatenation, channel shuffle.

PC-DARTS (Xu et al., 2020): of C channels the first C/k pass through the child and the rest pass by; a shuffle of k
groups then spreads both over the channels, so that the next edge sees others. Nothing here knows what the child is.
"""

from __future__ import annotations

from eclose.algebra.shapes import Shape
from eclose.meanings.program.blocks import axes
from eclose.meanings.program.emitter import Meaning, Site
from eclose.meanings.program.ir import Tensor, Value
from eclose.meanings.program.merging import feature


def partial(site: Site, value: Value) -> Meaning:
    """The child on the first C/k channels, beside the other channels; k=1 is the child alone."""
    k = site.value("k")
    if k == 1:
        result: Value = yield site.child(0, value)
        return result
    x = feature(site, value)
    channels = x.shape[0]
    if channels % k:
        site.fail(f"partial(k={k}) cannot divide {channels} channels evenly; {divisors(channels)} would do")
    if site.channels(x) != channels:
        site.fail(
            f"partial(k={k}) lets channels pass by unchanged, so it cannot make {site.channels(x)} channels of "
            f"{channels}; put a layer that changes them in front of it, e.g. conv(kernel=1)"
        )
    part = channels // k
    chosen = site.layer("slice", x, local="chosen", begin=0, end=part)
    mixed = feature(site, (yield site.child(0, chosen, channels=part)))
    if mixed.shape[0] != part:
        site.fail(f"the child of partial(k={k}) must keep its {part} channels, and gives {mixed.shape[0]}")
    rest = passing(site, site.layer("slice", x, local="rest", begin=part, end=channels), mixed.shape[1:])
    return site.layer("shuffle", site.layer("concat", mixed, rest), groups=k)


def passing(site: Site, rest: Tensor, sizes: Shape) -> Tensor:
    """Return the channels that pass by, at the child's size: unchanged, or the maximum of windows of the stride.

    A size n becomes ceil(n / stride) as for every strided operation: where the stride does not divide n, the first
    window begins so many positions earlier that the windows cover the axis (padding is no maximum). The pooling is
    without parameters and without a normalisation behind it.
    """
    if rest.shape[1:] == sizes:  # also where the child has no use for an inherited stride
        return rest
    stride = site.context.stride
    padding = tuple(-(n % -stride) for n in rest.shape[1:])
    if stride == 1 or sizes != tuple((n + p) // stride for n, p in zip(rest.shape[1:], padding, strict=True)):
        site.fail(
            f"the child of {site.term.name} makes {sizes} positions of {rest.shape[1:]} with an inherited stride of "
            f"{stride}; channels that pass by can only follow an inherited stride, not one that the child sets itself"
        )
    window = (stride,) * axes(rest)
    before = tuple(-(-p // 2) for p in padding)
    return site.layer("max_pool", rest, local="bypass", kernel=window, stride=window, padding=before)


def divisors(channels: int) -> str:
    """Return the ks that divide a number of channels, as people write them."""
    found = [f"k={k}" for k in range(1, channels + 1) if channels % k == 0]
    if len(found) > 6:
        found = [*found[:5], found[-1]]
    return f"{', '.join(found[:-1])} or {found[-1]}" if len(found) > 1 else found[0]
