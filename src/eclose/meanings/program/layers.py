"""The kinds of layer that a program is made of, and how each turns input shapes into an output shape.

This is the whole vocabulary of a backend: torch, numpy, cost, source text and every other meaning hold one table with
an entry for each kind in `LAYERS`. Operators, terms and tensor libraries are unknown here.

Shapes are channels first and without the batch: `(C, *spatial)`, `(F,)` for vectors, `(L,)` for token ids. A rule
raises `ShapeError` with a plain sentence; the emitter puts the place in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from eclose.algebra.declarations import resolve
from eclose.algebra.errors import RequestError, ShapeError, did_you_mean
from eclose.algebra.shapes import Shape

Settings: TypeAlias = Mapping[str, Any]
ShapeRule: TypeAlias = Callable[[Settings, Sequence[Shape]], Shape]
ParameterRule: TypeAlias = Callable[[Settings, Sequence[Shape]], dict[str, Shape]]

UNARY: Mapping[str, str] = {
    "relu": "max(x, 0)",
    "relu6": "min(max(x, 0), 6)",
    "leaky_relu": "max(x, 0) + 0.01 min(x, 0)",
    "elu": "x where x > 0, else exp(x) - 1",
    "selu": "1.0507 (x where x > 0, else 1.67326 (exp(x) - 1))",
    "gelu": "x Phi(x), Phi being the normal distribution function",
    "silu": "x sigmoid(x)",
    "mish": "x tanh(ln(1 + exp(x)))",
    "hardswish": "x min(max(x + 3, 0), 6) / 6",
    "hardsigmoid": "min(max(x + 3, 0), 6) / 6",
    "softplus": "ln(1 + exp(x))",
    "softsign": "x / (1 + |x|)",
    "sigmoid": "1 / (1 + exp(-x))",
    "tanh": "tanh(x)",
    "neg": "-x",
    "abs": "|x|",
    "square": "x^2",
    "cubic": "x^3",
    "square_root": "sqrt(x), undefined below 0",
    "log": "ln(|x| + 1e-6)",
    "exp": "exp(x)",
    "sin": "sin(x)",
    "cos": "cos(x)",
    "sinh": "sinh(x)",
    "cosh": "cosh(x)",
    "asinh": "asinh(x)",
    "atanh": "atanh(x), undefined beyond -1 and 1",
    "sinc": "sin(pi x) / (pi x), 1 at 0",
    "umax": "max(x, 0)",
    "umin": "min(x, 0)",
    "logexp": "ln(1 + exp(x))",
    "gaussian": "exp(-x^2)",
    "erf": "erf(x)",
    "mconst": "beta x",
    "aconst": "beta + x",
    "const": "beta",
}
"""Formulas of the unary functions; beta is a parameter of shape (C, 1, ...), initially 1."""

BINARY: Mapping[str, str] = {
    "add": "x + y",
    "multiply": "x y",
    "subtract": "x - y",
    "divide": "x / (y + 1e-6)",
    "maximum": "max(x, y)",
    "minimum": "min(x, y)",
    "bsigmoid": "sigmoid(x) y",
    "bgaussian_sq": "exp(-beta (x - y)^2)",
    "bgaussian_abs": "exp(-beta |x - y|)",
    "wavg": "beta x + (1 - beta) y",
}
"""Formulas of the binary functions."""

WITH_BETA = frozenset({"mconst", "aconst", "const", "bgaussian_sq", "bgaussian_abs", "wavg"})


@dataclass(frozen=True)
class LayerKind:
    """One kind of layer.

    Attributes:
        name: its key in `LAYERS`.
        description: what it computes, for people who write a backend.
        inputs: the number of inputs, None for one or more.
        required: the settings that must be given.
        defaults: the other settings with the values they have when left out.
        rule: `(settings, input shapes) -> output shape`; use `shape`, which also checks the settings.
        parameters: `(settings, input shapes) -> {name: shape}` of the trainable tensors, named as in torch.
        buffers: the same for tensors that are kept but not trained.
    """

    name: str
    description: str
    inputs: int | None
    required: tuple[str, ...]
    defaults: Settings
    rule: ShapeRule
    parameters: ParameterRule
    buffers: ParameterRule

    def complete(self, settings: Settings) -> dict[str, Any]:
        """Return the settings with the defaults filled in; an unknown or missing one is an error."""
        for key in settings:
            if key not in self.required and key not in self.defaults:
                known = (*self.required, *self.defaults)
                raise RequestError(
                    f"a {self.name} layer has no setting {key!r}{did_you_mean(key, known)} "
                    f"(settings: {', '.join(known) or 'none'})"
                )
        missing = [key for key in self.required if key not in settings]
        if missing:
            raise RequestError(f"a {self.name} layer needs the setting {missing[0]!r}")
        return {**self.defaults, **settings}

    def shape(self, settings: Settings, shapes: Sequence[Shape]) -> Shape:
        """Return the output's shape, or raise `ShapeError` with what does not fit."""
        if self.inputs is None and not shapes:
            raise ShapeError(f"{self.name} needs at least one input")
        if self.inputs is not None and len(shapes) != self.inputs:
            raise ShapeError(f"{self.name} takes {self.inputs} input{'s' * (self.inputs != 1)}, not {len(shapes)}")
        return self.rule(self.complete(settings), shapes)


LAYERS: dict[str, LayerKind] = {}


def _none(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    return {}


def _kind(
    name: str,
    description: str,
    rule: ShapeRule,
    *required: str,
    inputs: int | None = 1,
    parameters: ParameterRule = _none,
    buffers: ParameterRule = _none,
    **defaults: Any,
) -> None:
    LAYERS[name] = LayerKind(name, description, inputs, required, defaults, rule, parameters, buffers)


# Shape rules ---------------------------------------------------------------------------------------------------------


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


def _conv(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    sizes = _spatial(shapes[0], "conv")
    _axes(sizes, settings, "conv", "kernel", "stride", "padding", "dilation")
    _divided("conv", settings["groups"], input=shapes[0][0], output=settings["channels"])
    counts = _windows("conv", sizes, *(settings[key] for key in ("kernel", "stride", "padding", "dilation")))
    return (settings["channels"], *counts)


def _conv_transpose(settings: Settings, shapes: Sequence[Shape]) -> Shape:
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


def _pool(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    sizes = _spatial(shapes[0], "pooling")
    _axes(sizes, settings, "pooling", "kernel", "stride", "padding")
    if any(2 * p > k for p, k in zip(settings["padding"], settings["kernel"], strict=True)):
        raise ShapeError(f"pooling can pad at most half its kernel {settings['kernel']}, not {settings['padding']}")
    window = (settings["kernel"], settings["stride"], settings["padding"])
    return (shapes[0][0], *_windows("pooling", sizes, *window, (1,) * len(sizes)))


def _strided(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    sizes = _spatial(shapes[0], "subsampling")
    _axes(sizes, settings, "subsampling", "stride")
    return (shapes[0][0], *(-(-n // s) for n, s in zip(sizes, settings["stride"], strict=True)))


def _shift(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    sizes = _spatial(shapes[0], "shift")
    padding = settings["padding"] or (0,) * len(sizes)
    _axes(sizes, {"padding": padding}, "shift", "padding")
    moved = tuple(n - 1 + p for n, p in zip(sizes, padding, strict=True))
    if min(moved) < 1:
        raise ShapeError(f"dropping the first row and column of {sizes} positions leaves nothing")
    return (shapes[0][0], *moved)


def _same(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    return shapes[0]


def _instance_norm(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    if prod(_spatial(shapes[0], "instance_norm")) < 2:
        raise ShapeError(f"instance_norm needs at least two positions, but the input has shape {shapes[0]}")
    return shapes[0]


def _group_norm(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    _divided("group_norm", settings["groups"], input=shapes[0][0])
    return shapes[0]


def _linear(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    if len(shapes[0]) != 1:
        raise ShapeError(f"linear needs a vector, but the input has shape {shapes[0]}; pool or flatten it first")
    return (settings["features"],)


def _global_pool(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    sizes = _spatial(shapes[0], "global_pool")
    return (shapes[0][0], *((1,) * len(sizes) if settings["keep"] else ()))


def _function(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    _named("function", settings["name"], UNARY)
    return shapes[0]


def _binary(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    _named("binary", settings["name"], BINARY)
    if settings["name"] == "multiply":
        return broadcast(shapes)
    return _equal(settings["name"], shapes)


def _named(what: str, name: str, known: Mapping[str, str]) -> None:
    if name not in known:
        raise ShapeError(f"there is no {what} {name!r}{did_you_mean(name, known)}")


def _equal(what: str, shapes: Sequence[Shape]) -> Shape:
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


def _sum(what: str) -> ShapeRule:
    def rule(settings: Settings, shapes: Sequence[Shape]) -> Shape:
        return broadcast(shapes) if settings["broadcast"] else _equal(what, shapes)

    return rule


def _mixture(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    if len(settings["alternatives"]) != len(shapes):
        raise ShapeError(f"a mixture of {len(settings['alternatives'])} alternatives got {len(shapes)} values")
    return _sum("mixture")(settings, shapes)


def _concat(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    if len({shape[1:] for shape in shapes}) > 1:
        raise ShapeError(
            f"concat needs equal sizes behind the channels, not {' and '.join(map(str, dict.fromkeys(shapes)))}"
        )
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


def _slice(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    begin, end = settings["begin"], settings["end"]
    if not 0 <= begin < end <= shapes[0][0]:
        raise ShapeError(f"channels {begin} to {end} do not exist in an input of {shapes[0][0]} channels")
    return (end - begin, *shapes[0][1:])


def _upsample(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    sizes = _spatial(shapes[0], "upsample")
    _axes(sizes, settings, "upsample", "factor")
    return (shapes[0][0], *(n * factor for n, factor in zip(sizes, settings["factor"], strict=True)))


def _resize(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    _axes(_spatial(shapes[0], "resize"), settings, "resize", "size")
    return (shapes[0][0], *settings["size"])


def _embedding(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    if len(shapes[0]) != 1:
        raise ShapeError(f"an embedding needs a sequence of token ids, but the input has shape {shapes[0]}")
    return (settings["dim"], *shapes[0])


def _positions(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    _spatial(shapes[0], "positions")
    return shapes[0]


def _attention(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    sizes = _spatial(shapes[0], "attention")
    _divided("attention", settings["heads"], input=shapes[0][0])
    if settings["causal"] and len(sizes) > 1:
        raise ShapeError(f"causal attention needs a sequence, but the input has shape {shapes[0]}")
    return _equal("attention", shapes)


def _softmax(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    if settings["axis"] not in ("positions", "taps"):
        raise ShapeError(f"softmax runs over 'positions' or 'taps', not {settings['axis']!r}")
    _spatial(shapes[0], "softmax")
    return shapes[0]


def _context(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    if _spatial(shapes[0], "context") != _spatial(shapes[1], "context"):
        raise ShapeError(f"context needs the same positions twice, not {shapes[0][1:]} and {shapes[1][1:]}")
    return (shapes[0][0], shapes[1][0])


def _as_kernel(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    kernel, dilation = settings["kernel"], settings["dilation"] or (1,) * len(settings["kernel"])
    if len(shapes[0]) != 2 or shapes[0][1] != prod(kernel):
        raise ShapeError(f"as_kernel needs {prod(kernel)} taps a channel, but the input has shape {shapes[0]}")
    return (shapes[0][0], *(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)))


def kernel_size(size: int | Sequence[int], axes: int) -> Shape:
    """Return the size of a kernel as one number an axis."""
    return (size,) * axes if isinstance(size, int) else tuple(size)


def _pad_kernel(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    kernel = _spatial(shapes[0], "pad_kernel")
    size = kernel_size(settings["size"], len(kernel))
    if len(size) != len(kernel) or any(new < old or (new - old) % 2 for new, old in zip(size, kernel, strict=True)):
        raise ShapeError(f"a kernel of size {kernel} cannot be padded evenly to {size}")
    return (shapes[0][0], *size)


def _apply_kernel(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    image, kernel = shapes
    if len(image) != len(kernel) or image[0] != kernel[0] or len(image) < 2:
        raise ShapeError(f"a kernel of shape {kernel} cannot be applied to an input of shape {image}")
    if any(k % 2 == 0 for k in kernel[1:]):
        raise ShapeError(f"a per-sample kernel must have odd sizes, not {kernel[1:]}")
    return image


def _custom(settings: Settings, shapes: Sequence[Shape]) -> Shape:
    shape = resolve(settings["shape"])(*shapes, **settings["kwargs"])
    return tuple(int(size) for size in shape)


# Parameters ----------------------------------------------------------------------------------------------------------


def _conv_parameters(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    weight = (settings["channels"], shapes[0][0] // settings["groups"], *settings["kernel"])
    return {"weight": weight, **({"bias": weight[:1]} if settings["bias"] else {})}


def _conv_transpose_parameters(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    weight = (shapes[0][0], settings["channels"] // settings["groups"], *settings["kernel"])
    return {"weight": weight, **({"bias": (settings["channels"],)} if settings["bias"] else {})}


def _linear_parameters(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    weight = (settings["features"], shapes[0][0])
    return {"weight": weight, **({"bias": weight[:1]} if settings["bias"] else {})}


def _channel_parameters(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    return {"weight": shapes[0][:1], "bias": shapes[0][:1]} if settings["affine"] else {}


def _layer_norm_parameters(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    return {"weight": shapes[0], "bias": shapes[0]} if settings["affine"] else {}


def _running_statistics(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    return {"running_mean": shapes[0][:1], "running_var": shapes[0][:1], "num_batches_tracked": ()}


def _beta(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    return {"beta": (shapes[0][0], *(1 for _ in shapes[0][1:]))} if settings["name"] in WITH_BETA else {}


def _embedding_parameters(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    return {"weight": (settings["vocab"], settings["dim"])}


def _position_parameters(settings: Settings, shapes: Sequence[Shape]) -> dict[str, Shape]:
    return {"weight": shapes[0]}


# The table -----------------------------------------------------------------------------------------------------------

_WINDOW = ("kernel", "stride", "padding")
_kind("conv", "convolution", _conv, "channels", *_WINDOW, "dilation", parameters=_conv_parameters, groups=1, bias=False)
_kind(
    "conv_transpose",
    "transposed convolution",
    _conv_transpose,
    "channels",
    *_WINDOW,
    "output_padding",
    parameters=_conv_transpose_parameters,
    groups=1,
    bias=False,
)
_kind(
    "batch_norm",
    "normalisation of each channel over batch and positions",
    _same,
    parameters=_channel_parameters,
    buffers=_running_statistics,
    affine=True,
    eps=1e-5,
    momentum=0.1,  # torch's: new = (1 - momentum) old + momentum batch
)
_kind("instance_norm", "of each channel over positions", _instance_norm, parameters=_channel_parameters, affine=True)
_kind("layer_norm", "of the whole (C, *spatial)", _same, parameters=_layer_norm_parameters, affine=True)
_kind("channel_norm", "over the channels at each position", _same, parameters=_channel_parameters, affine=True)
_kind("group_norm", "over groups of channels", _group_norm, "groups", parameters=_channel_parameters, affine=True)
_kind("linear", "y = W x + b on vectors", _linear, "features", parameters=_linear_parameters, bias=True)
_kind("max_pool", "maximum of each window", _pool, *_WINDOW)
_kind("avg_pool", "mean of each window; padded zeros are not counted", _pool, *_WINDOW)
_kind("global_pool", "mean over all positions; keep leaves axes of size 1", _global_pool, keep=False)
_kind("flatten", "(C, *spatial) as one vector", lambda settings, shapes: (prod(shapes[0]),))
_kind("function", "a unary function of UNARY", _function, "name", parameters=_beta)
_kind("binary", "a binary function of BINARY", _binary, "name", inputs=2, parameters=_beta)
_kind("add", "sum; with broadcast, axes of size 1 repeat", _sum("a sum"), inputs=None, broadcast=False)
_kind("concat", "one after the other on channels", _concat, inputs=None)
_kind("slice", "channels begin to end", _slice, "begin", "end")
_kind("shift", "x without its first row on every axis, then `padding` zero rows at the end", _shift, padding=())
_kind("subsample", "x[..., ::s, ::s]", _strided, "stride")
_kind("zero", "zeros of the subsampled input's shape", _strided, "stride")
_kind("noise", "independent N(0, 1) of the subsampled input's shape, in evaluation too", _strided, "stride")
_kind("upsample", "nearest neighbour, each size times factor", _upsample, "factor")
_kind("resize", "adaptive mean where an axis shrinks, nearest where it grows", _resize, "size")
_kind("embedding", "token ids (L,) to (dim, L)", _embedding, "vocab", "dim", parameters=_embedding_parameters)
_kind("positions", "adds a learned table of the input's shape", _positions, parameters=_position_parameters)
_kind(
    "attention",
    "softmax(q^T k / sqrt(C / heads)) v in each head of C / heads channels, over all positions",
    _attention,
    "heads",
    inputs=3,
    causal=False,
)
_kind("softmax", "of each channel over everything behind it", _softmax, "axis")
_kind("dropout", "zeroes entries with probability rate while training", _same, "rate")
_kind("context", "b (H, *S), m (T, *S) to b m^T (H, T), summed over positions", _context, inputs=2)
_kind(
    "as_kernel",
    "(C, taps) as one kernel a channel; dilation puts zeros between taps",
    _as_kernel,
    "kernel",
    dilation=(),
)
_kind("pad_kernel", "zeros around a (C, *k) kernel up to size", _pad_kernel, "size")
_kind("apply_kernel", "x (C, *S) convolved with its own kernel (C, *k), channel by channel", _apply_kernel, inputs=2)
_kind(
    "default_to",
    "the first input where it is there, else the second",
    lambda s, shapes: _equal("default_to", shapes),
    inputs=2,
)
_kind(
    "mixture",
    "sum over inputs j of w[alternatives[j]] x_j; the weights w (count of them) are passed in",
    _mixture,
    "choice",
    "alternatives",
    "count",
    inputs=None,
    kind="choice",
    broadcast=False,
)
_kind("custom", "a layer of the user's own", _custom, "module", "shape", inputs=None, kwargs={})
