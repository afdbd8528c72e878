"""How each kind of layer turns input shapes into its output shape; see `layers`, which lists the kinds.

A rule raises `ShapeError` with a plain sentence; the emitter puts the place in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

from eclose.algebra.declarations import resolve
from eclose.algebra.errors import ShapeError, did_you_mean
from eclose.algebra.shapes import Shape
from eclose.meanings.program.formulas import BINARY, UNARY

Settings: TypeAlias = Mapping[str, Any]
ShapeRule: TypeAlias = Callable[[Settings, Sequence[Shape]], Shape]


def _spatial(shape: Shape, what: str) -> Shape:
    if len(shape) < 2:
        raise ShapeError(f"{what} needs channels and positions, but the input has shape {shape}")
    return shape[1:]


def _axes(sizes: Shape, settings: Settings, what: str, *keys: str) -> None:
    """Check that each setting has one number an axis."""
    for key in keys:
        if len(settings[key]) != len(sizes):
            raise ShapeError(
                f"{what} with {key} {settings[key]} is made for {len(settings[key])} spatial axes, "
                f"but the input has {len(sizes)}"
            )


def _windows(what: str, sizes: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape) -> Shape:
    """Return how many windows fit on each axis: floor((n + 2p - d(k - 1) - 1) / s) + 1."""
    counts = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True)
    )
    if min(counts) < 1:
        raise ShapeError(
            f"{what} with kernel {kernel}, dilation {dilation} and padding {padding} does not fit into {sizes}"
        )
    return counts


def _divided(what: str, groups: int, **channels: int) -> None:
    for name, count in channels.items():
        if count % groups:
            raise ShapeError(f"{what} with {groups} groups cannot divide {count} {name} channels evenly")


def conv(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Windows of a convolution."""
    sizes = _spatial(shapes[0], "conv")
    _axes(sizes, settings, "conv", "kernel", "stride", "padding", "dilation")
    _divided("conv", settings["groups"], input=shapes[0][0], output=settings["channels"])
    counts = _windows("conv", sizes, *(settings[key] for key in ("kernel", "stride", "padding", "dilation")))
    return (settings["channels"], *counts)


def conv_transpose(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """A transposed convolution."""
    sizes = _spatial(shapes[0], "conv_transpose")
    keys = ("kernel", "stride", "padding", "output_padding")
    _axes(sizes, settings, "conv_transpose", *keys)
    _divided("conv_transpose", settings["groups"], input=shapes[0][0], output=settings["channels"])
    per_axis = zip(sizes, *(settings[key] for key in keys), strict=True)
    grown = tuple((n - 1) * s - 2 * p + k + extra for n, k, s, p, extra in per_axis)
    if min(grown) < 1:
        raise ShapeError(f"conv_transpose with padding {settings['padding']} leaves nothing of {sizes} positions")
    if any(extra >= s for extra, s in zip(settings["output_padding"], settings["stride"], strict=True)):
        raise ShapeError("conv_transpose needs an output_padding below its stride")
    return (settings["channels"], *grown)


def pool(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Windows of a pooling."""
    sizes = _spatial(shapes[0], "pooling")
    _axes(sizes, settings, "pooling", "kernel", "stride", "padding")
    if any(2 * p > k for p, k in zip(settings["padding"], settings["kernel"], strict=True)):
        raise ShapeError(f"pooling can pad at most half its kernel {settings['kernel']}, not {settings['padding']}")
    window = (settings["kernel"], settings["stride"], settings["padding"])
    return (shapes[0][0], *_windows("pooling", sizes, *window, (1,) * len(sizes)))


def exceeds_volume(kernel: Shape, shape: Shape) -> bool:
    """Return whether a window is longer than a volume on some axis, for which torch has no mean pooling."""
    return len(shape) == 4 and any(k > n for k, n in zip(kernel, shape[1:], strict=True))


def strided(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Every s-th position, the first included: ceil(n / s)."""
    sizes = _spatial(shapes[0], "subsampling")
    _axes(sizes, settings, "subsampling", "stride")
    return (shapes[0][0], *(-(-n // s) for n, s in zip(sizes, settings["stride"], strict=True)))


def shift(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """One position less on every axis, plus the padding."""
    sizes = _spatial(shapes[0], "shift")
    padding = settings["padding"] or (0,) * len(sizes)
    _axes(sizes, {"padding": padding}, "shift", "padding")
    moved = tuple(n - 1 + p for n, p in zip(sizes, padding, strict=True))
    if min(moved) < 1:
        raise ShapeError(f"dropping the first row and column of {sizes} positions leaves nothing")
    return (shapes[0][0], *moved)


def same(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The first input's shape."""
    return shapes[0]


def instance_norm(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The same shape, of at least two positions."""
    if prod(_spatial(shapes[0], "instance_norm")) < 2:
        raise ShapeError(f"instance_norm needs at least two positions, but the input has shape {shapes[0]}")
    return shapes[0]


def group_norm(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The same shape; groups divide the channels and hold at least two numbers."""
    _divided("group_norm", settings["groups"], input=shapes[0][0])
    if prod(shapes[0]) == settings["groups"]:
        raise ShapeError(f"group_norm with {settings['groups']} groups leaves one number in each of {shapes[0]}")
    return shapes[0]


def linear(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """A vector of `features`."""
    if len(shapes[0]) != 1:
        raise ShapeError(f"linear needs a vector, but the input has shape {shapes[0]}; pool or flatten it first")
    return (settings["features"],)


def global_pool(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """One number a channel."""
    sizes = _spatial(shapes[0], "global_pool")
    return (shapes[0][0], *((1,) * len(sizes) if settings["keep"] else ()))


def function(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The same shape, by a known function."""
    _named("function", settings["name"], UNARY)
    return shapes[0]


def binary(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Two equal shapes; a product also spreads axes of size 1."""
    _named("binary", settings["name"], BINARY)
    if settings["name"] == "multiply":
        return broadcast(shapes)
    return equal(settings["name"], shapes)


def _named(what: str, name: str, known: Mapping[str, str]) -> None:
    if name not in known:
        raise ShapeError(f"there is no {what} {name!r}{did_you_mean(name, known)}")


def equal(what: str, shapes: Sequence[Shape]) -> Shape:
    """Return the shape that all have, or raise."""
    if len(set(shapes)) > 1:
        raise ShapeError(f"{what} needs equal shapes, not {' and '.join(map(str, dict.fromkeys(shapes)))}")
    return shapes[0]


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that values spread to when an axis of size 1 repeats, e.g. (1, 8, 8) and (16, 1, 1)."""
    if len({len(shape) for shape in shapes}) == 1:
        sizes = tuple(max(axis) for axis in zip(*shapes, strict=True))
        if all(n in (1, size) for shape in shapes for n, size in zip(shape, sizes, strict=True)):
            return sizes
    raise ShapeError(f"shapes {' and '.join(map(str, dict.fromkeys(shapes)))} do not spread over each other")


def total(what: str) -> ShapeRule:
    """Return the rule of a sum: equal shapes, or with `broadcast` shapes that spread over each other."""

    def rule(settings: Settings, shapes: Sequence[Shape]) -> Shape:
        return broadcast(shapes) if settings["broadcast"] else equal(what, shapes)

    return rule


def mixture(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The shape that all alternatives share."""
    if len(settings["alternatives"]) != len(shapes):
        raise ShapeError(f"a mixture of {len(settings['alternatives'])} alternatives got {len(shapes)} values")
    return total("mixture")(settings, shapes)


def concat(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Channels added up."""
    if len({shape[1:] for shape in shapes}) > 1:
        raise ShapeError(
            f"concat needs equal sizes behind the channels, not {' and '.join(map(str, dict.fromkeys(shapes)))}"
        )
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


def channel_slice(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Channels begin to end."""
    begin, end = settings["begin"], settings["end"]
    if not 0 <= begin < end <= shapes[0][0]:
        raise ShapeError(f"channels {begin} to {end} do not exist in an input of {shapes[0][0]} channels")
    return (end - begin, *shapes[0][1:])


def shuffle(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The same shape; groups divide the channels."""
    _divided("shuffle", settings["groups"], input=shapes[0][0])
    return shapes[0]


def upsample(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Sizes times factor."""
    sizes = _spatial(shapes[0], "upsample")
    _axes(sizes, settings, "upsample", "factor")
    return (shapes[0][0], *(n * factor for n, factor in zip(sizes, settings["factor"], strict=True)))


def resize(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Sizes as asked."""
    _axes(_spatial(shapes[0], "resize"), settings, "resize", "size")
    return (shapes[0][0], *settings["size"])


def embedding(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """One vector for each token id."""
    if len(shapes[0]) != 1:
        raise ShapeError(f"an embedding needs a sequence of token ids, but the input has shape {shapes[0]}")
    return (settings["dim"], *shapes[0])


def positions(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The same shape, with positions."""
    _spatial(shapes[0], "positions")
    return shapes[0]


def attention(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The shape that q, k and v share."""
    sizes = _spatial(shapes[0], "attention")
    _divided("attention", settings["heads"], input=shapes[0][0])
    if settings["causal"] and len(sizes) > 1:
        raise ShapeError(f"causal attention needs a sequence, but the input has shape {shapes[0]}")
    return equal("attention", shapes)


def softmax(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The same shape."""
    if settings["axis"] not in ("positions", "taps"):
        raise ShapeError(f"softmax runs over 'positions' or 'taps', not {settings['axis']!r}")
    _spatial(shapes[0], "softmax")
    return shapes[0]


def context(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """(H, *S) and (T, *S) to (H, T)."""
    if _spatial(shapes[0], "context") != _spatial(shapes[1], "context"):
        raise ShapeError(f"context needs the same positions twice, not {shapes[0][1:]} and {shapes[1][1:]}")
    return (shapes[0][0], shapes[1][0])


def as_kernel(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Taps laid out in space, spread by the dilation."""
    kernel, dilation = settings["kernel"], settings["dilation"] or (1,) * len(settings["kernel"])
    if len(shapes[0]) != 2 or shapes[0][1] != prod(kernel):
        raise ShapeError(f"as_kernel needs {prod(kernel)} taps a channel, but the input has shape {shapes[0]}")
    return (shapes[0][0], *(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)))


def kernel_size(size: int | Sequence[int], axes: int) -> Shape:
    """Return the size of a kernel as one number an axis."""
    return (size,) * axes if isinstance(size, int) else tuple(size)


def pad_kernel(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """A kernel with zeros around it."""
    kernel = _spatial(shapes[0], "pad_kernel")
    size = kernel_size(settings["size"], len(kernel))
    if len(size) != len(kernel) or any(new < old or (new - old) % 2 for new, old in zip(size, kernel, strict=True)):
        raise ShapeError(f"a kernel of size {kernel} cannot be padded evenly to {size}")
    return (shapes[0][0], *size)


def apply_kernel(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """The shape of what the kernel is applied to."""
    image, kernel = shapes
    if len(image) != len(kernel) or image[0] != kernel[0] or len(image) < 2:
        raise ShapeError(f"a kernel of shape {kernel} cannot be applied to an input of shape {image}")
    if any(k % 2 == 0 for k in kernel[1:]):
        raise ShapeError(f"a per-sample kernel must have odd sizes, not {kernel[1:]}")
    return image


def custom(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """Whatever the user's own rule says."""
    shape = resolve(settings["shape"])(*shapes, **settings["kwargs"])
    return tuple(int(size) for size in shape)


def flatten(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    """All numbers in one vector."""
    return (prod(shapes[0]),)
