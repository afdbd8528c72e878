"""How each kind of layer is written: one entry for every kind in `meanings.program.layers.LAYERS`.

A layer without parameters is an expression; one with parameters is also a module, with torch's own class wherever
there is one. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from eclose.algebra.errors import RequestError, ShapeError
from eclose.algebra.shapes import Shape
from eclose.meanings.program.shape_rules import exceeds_volume
from eclose.meanings.source.functions import BINARY_TEXTS, UNARY_TEXTS
from eclose.meanings.source.helpers import LEARNED_FUNCTIONS

MOST_PLUSES = 6  # a longer sum is a call: Python compiles a chain of thousands of pluses by recursion
MODULE = "{layer}({0})"


@dataclass(frozen=True)
class Layer:
    """What there is to know about one layer.

    Attributes:
        settings: of its kind, complete.
        shapes: of its inputs.
        shape: of its output.
    """

    settings: Mapping[str, Any]
    shapes: Sequence[Shape]
    shape: Shape

    @property
    def axes(self) -> int:
        """The number of spatial axes of the first input."""
        return len(self.shapes[0]) - 1


@dataclass(frozen=True)
class Written:
    """A layer as text.

    Attributes:
        call: its value, in which `{0}`, `{1}`, ... are the inputs and `{layer}` is the module.
        module: what makes the module, empty where there is none.
        helpers: keys of `helpers.HELPERS`.
    """

    call: str
    module: str = ""
    helpers: tuple[str, ...] = ()


Rule: TypeAlias = Callable[[Layer], Written]


def call_text(name: str, *arguments: object, **options: object) -> str:
    """Return a call as Python writes it; sizes that are equal on all axes are one number."""
    written = [size_text(value) for value in arguments]
    written += [f"{key}={size_text(value)}" for key, value in options.items()]
    return f"{name}({', '.join(written)})"


def size_text(value: object) -> str:
    """Return a setting as Python writes it, `3` for `(3, 3)`."""
    if isinstance(value, tuple) and value and len(set(value)) == 1:
        value = value[0]
    return value if isinstance(value, Name) else repr(value)


class Name(str):
    """A text that stands in a call as it is."""

    __slots__ = ()


FIRST = Name("{0}")


def by_axes(layer: Layer, name: str) -> str:
    """Return torch's name of something for as many axes as the layer has, e.g. `nn.Conv2d`."""
    if not 1 <= layer.axes <= 3:
        raise ShapeError(f"torch has no {name.format('1 to 3')} for {layer.axes} spatial axes")
    return name.format(layer.axes)


def differing(settings: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return the settings that are not torch's defaults, in the order of the defaults."""
    result = {}
    for key, default in defaults.items():
        value = settings[key]
        if (set(value) if isinstance(value, tuple) else {value}) != {default}:
            result[key] = value
    return result


def conv(layer: Layer) -> Written:
    """A convolution."""
    options = differing(layer.settings, stride=1, padding=0, dilation=1, groups=1, bias=True)
    sizes = (layer.shapes[0][0], layer.settings["channels"], layer.settings["kernel"])
    return Written(MODULE, call_text(by_axes(layer, "nn.Conv{}d"), *sizes, **options))


def conv_transpose(layer: Layer) -> Written:
    """A transposed convolution."""
    options = differing(layer.settings, stride=1, padding=0, output_padding=0, groups=1, bias=True)
    sizes = (layer.shapes[0][0], layer.settings["channels"], layer.settings["kernel"])
    return Written(MODULE, call_text(by_axes(layer, "nn.ConvTranspose{}d"), *sizes, **options))


def batch_norm(layer: Layer) -> Written:
    """Normalisation with running statistics; vectors have the class of sequences."""
    name = by_axes(layer, "nn.BatchNorm{}d") if layer.axes else "nn.BatchNorm1d"
    return Written(
        MODULE, call_text(name, layer.shapes[0][0], **differing(layer.settings, eps=1e-5, momentum=0.1, affine=True))
    )


def instance_norm(layer: Layer) -> Written:
    """Normalisation over positions."""
    if not layer.settings["affine"]:
        return Written("F.instance_norm({0})")
    return Written(MODULE, call_text(by_axes(layer, "nn.InstanceNorm{}d"), layer.shapes[0][0], affine=True))


def layer_norm(layer: Layer) -> Written:
    """Normalisation of each sample; the shape is written out, since it is no size of a window."""
    shape = Name(repr(tuple(layer.shapes[0])))
    if not layer.settings["affine"]:
        return Written(call_text("F.layer_norm", FIRST, shape))
    return Written(MODULE, call_text("nn.LayerNorm", shape))


def channel_norm(layer: Layer) -> Written:
    """Normalisation over channels."""
    if not layer.settings["affine"]:
        return Written("channel_norm({0})", helpers=("channel_norm",))
    return Written(MODULE, call_text("ChannelNorm", layer.shapes[0][0]), ("ChannelNorm",))


def group_norm(layer: Layer) -> Written:
    """Normalisation over groups of channels."""
    groups = layer.settings["groups"]
    if not layer.settings["affine"]:
        return Written(call_text("F.group_norm", FIRST, groups))
    return Written(MODULE, call_text("nn.GroupNorm", groups, layer.shapes[0][0]))


def linear(layer: Layer) -> Written:
    """A linear map."""
    options = differing(layer.settings, bias=True)
    return Written(MODULE, call_text("nn.Linear", layer.shapes[0][0], layer.settings["features"], **options))


def max_pool(layer: Layer) -> Written:
    """The maximum of each window."""
    settings = layer.settings
    options = {"stride": settings["stride"], **differing(settings, padding=0)}
    return Written(call_text(by_axes(layer, "F.max_pool{}d"), FIRST, settings["kernel"], **options))


def avg_pool(layer: Layer) -> Written:
    """The mean of each window; padding is not counted."""
    settings = layer.settings
    if exceeds_volume(settings["kernel"], layer.shapes[0]):
        window = tuple(settings[key] for key in ("kernel", "stride", "padding"))
        return Written(f"volume_mean({{0}}, {', '.join(map(repr, window))})", helpers=("volume_mean",))
    options = {"stride": settings["stride"], **differing(settings, padding=0)}
    if "padding" in options:
        options["count_include_pad"] = False
    return Written(call_text(by_axes(layer, "F.avg_pool{}d"), FIRST, settings["kernel"], **options))


def global_pool(layer: Layer) -> Written:
    """The mean over all positions."""
    axes = Name(repr(tuple(range(2, len(layer.shapes[0]) + 1))))
    return Written(call_text("{0}.mean", axes, **({"keepdim": True} if layer.settings["keep"] else {})))


def function(layer: Layer) -> Written:
    """A function of one value or two."""
    name = layer.settings["name"]
    if name in LEARNED_FUNCTIONS:
        written = LEARNED_FUNCTIONS[name][0]
        shape = layer.shapes[0]
        arguments = "{0}" if len(layer.shapes) == 1 else "{0}, {1}"
        return Written(f"{{layer}}({arguments})", call_text(written, shape[0], *(1 for _ in shape[1:])), (written,))
    return Written((UNARY_TEXTS if len(layer.shapes) == 1 else BINARY_TEXTS)[name])


def places(count: int) -> list[str]:
    """Return the places of so many inputs: `{0}`, `{1}`, ..."""
    return [f"{{{index}}}" for index in range(count)]


def add(layer: Layer) -> Written:
    """The sum."""
    values = places(len(layer.shapes))
    if len(values) <= MOST_PLUSES:
        return Written(" + ".join(values))
    return Written(f"add_all({', '.join(values)})", helpers=("add_all",))


def concat(layer: Layer) -> Written:
    """One after the other on channels."""
    return Written(f"torch.cat([{', '.join(places(len(layer.shapes)))}], 1)")


def shift(layer: Layer) -> Written:
    """Without the first row on every axis, zero rows behind."""
    moved = f"{{0}}[:, :{', 1:' * layer.axes}]"
    padding = layer.settings["padding"]
    if not any(padding):
        return Written(moved)
    return Written(f"F.pad({moved}, {tuple(side for size in reversed(padding) for side in (0, size))})")


def strided(layer: Layer) -> str:
    """Return the input at every s-th position."""
    stride = layer.settings["stride"]
    if all(step == 1 for step in stride):
        return "{0}"
    return f"{{0}}[:, :{''.join(f', ::{step}' for step in stride)}]"


def upsample(layer: Layer) -> Written:
    """Every position repeated."""
    factors = enumerate(layer.settings["factor"], start=2)
    return Written("{0}" + "".join(f".repeat_interleave({by}, {axis})" for axis, by in factors if by > 1))


def embedding(layer: Layer) -> Written:
    """A vector for each token, channels first."""
    table = call_text("nn.Embedding", layer.settings["vocab"], layer.settings["dim"])
    return Written("{layer}({0}).transpose(1, 2)", table)


def positions(layer: Layer) -> Written:
    """A learned table added."""
    return Written(MODULE, call_text("Positions", *layer.shapes[0]), ("Positions",))


def attention(layer: Layer) -> Written:
    """Attention of given queries, keys and values."""
    options = {"heads": layer.settings["heads"], **differing(layer.settings, causal=False)}
    return Written(call_text("attention", *map(Name, places(3)), **options), helpers=("attention",))


def softmax(layer: Layer) -> Written:
    """The softmax of each channel over everything behind it."""
    if layer.axes == 1:
        return Written("{0}.softmax(-1)")
    return Written("{0}.flatten(2).softmax(-1).reshape({0}.shape)")


def as_kernel(layer: Layer) -> Written:
    """Taps laid out in space."""
    kernel, dilation = layer.settings["kernel"], layer.settings["dilation"]
    if all(step == 1 for step in dilation):
        return Written(f"{{0}}.unflatten(2, {tuple(kernel)})")
    return Written(f"spread_taps({{0}}, {tuple(kernel)}, {tuple(dilation)})", helpers=("spread_taps",))


def pad_kernel(layer: Layer) -> Written:
    """Zeros around a kernel."""
    margins = [(new - old) // 2 for new, old in zip(layer.shape[1:], layer.shapes[0][1:], strict=True)]
    return Written(f"F.pad({{0}}, {tuple(margin for margin in reversed(margins) for _ in range(2))})")


def custom(layer: Layer) -> Written:
    """Refuse: its text is not known here."""
    raise RequestError(
        f"the layer {layer.settings['module']!r} is the user's own and cannot be written as plain PyTorch; "
        "build the network instead, or replace that operator"
    )


def mixture(layer: Layer) -> Written:
    """Refuse: a plain network has no open decisions."""
    raise RequestError(f"choice {layer.settings['choice']!r} is open; only a decided term can be written as source")


RULES: dict[str, Rule] = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "batch_norm": batch_norm,
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "channel_norm": channel_norm,
    "group_norm": group_norm,
    "linear": linear,
    "max_pool": max_pool,
    "avg_pool": avg_pool,
    "global_pool": global_pool,
    "flatten": lambda layer: Written("{0}.flatten(1)"),
    "function": function,
    "binary": function,
    "add": add,
    "concat": concat,
    "slice": lambda layer: Written(f"{{0}}[:, {layer.settings['begin']}:{layer.settings['end']}]"),
    "shuffle": lambda layer: Written(
        f"{{0}}.unflatten(1, ({layer.settings['groups']}, -1)).transpose(1, 2).flatten(1, 2)"
    ),
    "shift": shift,
    "subsample": lambda layer: Written(strided(layer)),
    "zero": lambda layer: Written(f"torch.zeros_like({strided(layer)})"),
    "noise": lambda layer: Written(f"torch.randn_like({strided(layer)})"),
    "upsample": upsample,
    "resize": lambda layer: Written(f"resize({{0}}, {tuple(layer.settings['size'])})", helpers=("resize",)),
    "embedding": embedding,
    "positions": positions,
    "attention": attention,
    "softmax": softmax,
    "dropout": lambda layer: Written(f"F.dropout({{0}}, {layer.settings['rate']!r}, self.training)"),
    "context": lambda layer: Written("{0}.flatten(2) @ {1}.flatten(2).transpose(1, 2)"),
    "as_kernel": as_kernel,
    "pad_kernel": pad_kernel,
    "apply_kernel": lambda layer: Written("apply_kernel({0}, {1})", helpers=("apply_kernel",)),
    "default_to": lambda layer: Written("{0}"),  # nothing is absent where nothing is open
    "mixture": mixture,
    "custom": custom,
}
"""Kind of layer -> how it is written."""


__all__ = ["RULES", "Layer", "Written"]
