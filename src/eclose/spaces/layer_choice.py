"""A choice for every layer of a fixed chain, as in ProxylessNAS, single-path one-shot search and DSNAS.

Cai et al. (2019), Guo et al. (2020), Hu et al. (2020). The chain has the depths and widths of the last two; a layer is
a residual block of depthwise-separable convolutions with kernels of 3, 5 or 7, or three of them in a row (Xception).
"""

from __future__ import annotations

from typing import Any

from eclose.algebra.reading import parse
from eclose.algebra.terms import Term
from eclose.spaces._space import Space
from eclose.spaces._terms import term

LAYERS = (4, 4, 8, 4)
WIDTHS = (4, 10, 20, 40)  # channels of the stages, as multiples of the stem's
BLOCKS = (
    "Parallel(sep_conv_3x3, id)",
    "Parallel(sep_conv_5x5, id)",
    "Parallel(sep_conv_7x7, id)",
    "Parallel(Sequential(sep_conv_3x3, dil_conv(kernel=3, dilation=1)), id)",
)

GRAMMAR = """
Chain -> motifs(Layer, Layer, Layer, Layer,  Layer, Layer, Layer, Layer,  Layer, Layer, Layer, Layer,
                Layer, Layer, Layer, Layer,  Layer, Layer, Layer, Layer)
Layer -> Parallel(sep_conv_3x3, id)
       | Parallel(sep_conv_5x5, id)
       | Parallel(sep_conv_7x7, id)
       | Parallel(Sequential(sep_conv_3x3, dil_conv(kernel=3, dilation=1)), id)
level layer: Layer
"""


def network(layers: Term, *, channels: int = 16, last: int = 1024, imagenet: bool = False) -> Term:
    """Return the chain: stem, four stages, a 1x1 convolution, head.

    Args:
        layers: `motifs(layer 1, ..., layer 20)`.
        channels: of the stem; the stages have 4, 10, 20 and 40 times as many.
        last: channels in front of the head.
        imagenet: whether stem and first stage halve the resolution too, as for images of 224 pixels; the other three
            stages always do.
    """
    row = [term("stem", channels=channels, stride=2 if imagenet else 1)]
    chain = iter(layers.children)
    for stage, (depth, width) in enumerate(zip(LAYERS, WIDTHS, strict=True)):
        halves = imagenet or stage > 0
        if not halves:
            row.append(term("conv", kernel=1, channels=width * channels))
        for layer in range(depth):
            context: dict[str, Any] = {"channels": width * channels}
            if halves and layer == 0:
                context["stride"] = 2
            row.append(term("Given", next(chain), **context))
    return term("Sequential", *row, term("conv", kernel=1, channels=last), term("head"))


def relaxed() -> Term:
    """Return the chain's layers, each a choice named `layer/1` to `layer/20`."""
    blocks = [parse(block) for block in BLOCKS]
    return term("motifs", *(term("choice", *blocks, name=f"layer/{number}") for number in range(1, sum(LAYERS) + 1)))


LAYER_CHOICE = Space(
    "layer-choice",
    "a chain of twenty layers with four blocks to choose from",
    GRAMMAR,
    skeleton=network,
    sizes={"search": {"channels": 4, "last": 256}, "imagenet": {"imagenet": True}},
    cells=tuple(f"layer {number}" for number in range(1, sum(LAYERS) + 1)),
    relaxed=relaxed,
)

__all__ = ["BLOCKS", "LAYER_CHOICE", "network", "relaxed"]
