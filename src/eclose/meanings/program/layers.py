"""The kinds of layer that a program is made of: settings, shape inference, parameters.

This is the whole vocabulary of a backend: torch, numpy, cost, source text and every other meaning hold one table with
an entry for each kind in `LAYERS`. Operators, terms and tensor libraries are unknown here.

Shapes are channels first and without the batch: `(C, *spatial)`, `(F,)` for vectors, `(L,)` for token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from eclose.algebra.errors import RequestError, ShapeError, did_you_mean
from eclose.algebra.shapes import Shape
from eclose.meanings.program import shape_rules as rules
from eclose.meanings.program.formulas import WITH_BETA
from eclose.meanings.program.shape_rules import Settings, ShapeRule

ParameterRule: TypeAlias = Callable[[Settings, Sequence[Shape]], dict[str, Shape]]


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


# The table
_WINDOW = ("kernel", "stride", "padding")
_kind(
    "conv",
    "convolution",
    rules.conv,
    "channels",
    *_WINDOW,
    "dilation",
    parameters=_conv_parameters,
    groups=1,
    bias=False,
)
_kind(
    "conv_transpose",
    "transposed convolution",
    rules.conv_transpose,
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
    rules.same,
    parameters=_channel_parameters,
    buffers=_running_statistics,
    affine=True,
    eps=1e-5,
    momentum=0.1,  # torch's: new = (1 - momentum) old + momentum batch
)
_kind(
    "instance_norm", "of each channel over positions", rules.instance_norm, parameters=_channel_parameters, affine=True
)
_kind("layer_norm", "of the whole (C, *spatial)", rules.same, parameters=_layer_norm_parameters, affine=True)
_kind("channel_norm", "over the channels at each position", rules.same, parameters=_channel_parameters, affine=True)
_kind("group_norm", "over groups of channels", rules.group_norm, "groups", parameters=_channel_parameters, affine=True)
_kind("linear", "y = W x + b on vectors", rules.linear, "features", parameters=_linear_parameters, bias=True)
_kind("max_pool", "maximum of each window", rules.pool, *_WINDOW)
_kind("avg_pool", "mean of each window; padded zeros are not counted", rules.pool, *_WINDOW)
_kind("global_pool", "mean over all positions; keep leaves axes of size 1", rules.global_pool, keep=False)
_kind("flatten", "(C, *spatial) as one vector", rules.flatten)
_kind("function", "a unary function of UNARY", rules.function, "name", parameters=_beta)
_kind("binary", "a binary function of BINARY", rules.binary, "name", inputs=2, parameters=_beta)
_kind("add", "sum; with broadcast, axes of size 1 repeat", rules.total("a sum"), inputs=None, broadcast=False)
_kind("concat", "one after the other on channels", rules.concat, inputs=None)
_kind("slice", "channels begin to end", rules.channel_slice, "begin", "end")
_kind("shuffle", "channel i of each of the groups, then channel i + 1 of each", rules.shuffle, "groups")
_kind("shift", "x without its first row on every axis, then `padding` zero rows at the end", rules.shift, padding=())
_kind("subsample", "x[..., ::s, ::s]", rules.strided, "stride")
_kind("zero", "zeros of the subsampled input's shape", rules.strided, "stride")
_kind("noise", "independent N(0, 1) of the subsampled input's shape, in evaluation too", rules.strided, "stride")
_kind("upsample", "nearest neighbour, each size times factor", rules.upsample, "factor")
_kind("resize", "adaptive mean where an axis shrinks, nearest where it grows", rules.resize, "size")
_kind("embedding", "token ids (L,) to (dim, L)", rules.embedding, "vocab", "dim", parameters=_embedding_parameters)
_kind("positions", "adds a learned table of the input's shape", rules.positions, parameters=_position_parameters)
_kind(
    "attention",
    "softmax(q^T k / sqrt(C / heads)) v in each head of C / heads channels, over all positions",
    rules.attention,
    "heads",
    inputs=3,
    causal=False,
)
_kind("softmax", "of each channel over everything behind it", rules.softmax, "axis")
_kind("dropout", "zeroes entries with probability rate while training", rules.same, "rate")
_kind("context", "b (H, *S), m (T, *S) to b m^T (H, T), summed over positions", rules.context, inputs=2)
_kind(
    "as_kernel",
    "(C, taps) as one kernel a channel; dilation puts zeros between taps",
    rules.as_kernel,
    "kernel",
    dilation=(),
)
_kind("pad_kernel", "zeros around a (C, *k) kernel up to size", rules.pad_kernel, "size")
_kind(
    "apply_kernel", "x (C, *S) convolved with its own kernel (C, *k), channel by channel", rules.apply_kernel, inputs=2
)
_kind(
    "default_to",
    "the first input where it is there, else the second",
    lambda settings, shapes: rules.equal("default_to", shapes),
    inputs=2,
)
_kind(
    "mixture",
    "sum over inputs j of w[alternatives[j]] x_j; the weights w (count of them) are passed in",
    rules.mixture,
    "choice",
    "alternatives",
    "count",
    inputs=None,
    kind="choice",
    broadcast=False,
)
_kind("custom", "a layer of the user's own", rules.custom, "module", "shape", inputs=None, kwargs={})
