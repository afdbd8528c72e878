"""Stems and heads: where a network meets its input and gives its output, as plain data.

`stem` and `head` take the form that the network's input and output need; the others are those of the literature.
"""

from __future__ import annotations

from eclose.algebra.declarations import Attribute, Operator

CHANNELS = "channels of the first feature"


def _program(function: str) -> dict[str, str]:
    return {"program": f"eclose.meanings.program.ends:{function}"}


OPERATORS: tuple[Operator, ...] = (
    Operator(
        "stem",
        "the first layer: 3x3 convolution and BN, for tokens an embedding with positions, for vectors a linear map",
        role="stem",
        attributes={
            "channels": Attribute("int", 16, minimum=1, description=CHANNELS),
            "kernel": Attribute("size", 3, minimum=1, description="size of the convolution's window"),
            "stride": Attribute("int", 1, minimum=1, description="step of the convolution"),
        },
        meanings=_program("stem"),
    ),
    Operator(
        "imagenet_stem0",
        "a quarter of the resolution: 3x3 convolution of stride 2, BN, ReLU, another one, BN",
        role="stem",
        attributes={"channels": Attribute("int", 48, minimum=2, description=CHANNELS)},
        synonyms=("stem0",),
        meanings=_program("imagenet_stem0"),
        tags=frozenset({"quartering"}),
    ),
    Operator(
        "imagenet_stem1",
        "half the resolution, after imagenet_stem0: ReLU, 3x3 convolution of stride 2, BN",
        role="stem",
        attributes={"channels": Attribute("int", 48, minimum=1, description=CHANNELS)},
        synonyms=("stem1",),
        meanings=_program("imagenet_stem1"),
        tags=frozenset({"halving"}),
    ),
    Operator(
        "embedding",
        "a learned vector for each token, plus one for each position",
        role="stem",
        attributes={
            "channels": Attribute("int", 64, minimum=1, description="length of the vectors"),
            "positions": Attribute("bool", True, description="whether positions are added"),
            "vocab": Attribute("int", minimum=1, description="number of tokens; that of the network's input"),
        },
        synonyms=("embed",),
        meanings=_program("embedding"),
    ),
    Operator(
        "head",
        "the output that is asked of the network: classes or values from a global mean, a map, or one token a position",
        role="head",
        result="logits",
        attributes={
            "norm": Attribute("bool", False, description="whether BN and ReLU come first"),
            "dropout": Attribute("float", 0.0, minimum=0, description="dropout before the last layer (below 1)"),
            "classes": Attribute("int", minimum=1, description="number of classes; that asked of the network"),
        },
        synonyms=("fc",),
        meanings=_program("head"),
    ),
    Operator(
        "auxiliary_head",
        "the DARTS side output: ReLU, 5x5 mean, 1x1 convolution, BN, ReLU, 2x2 convolution, BN, ReLU, linear",
        result="logits",
        attributes={
            "stride": Attribute("int", 3, minimum=1, description="stride of the mean: 3 for CIFAR, 2 for ImageNet"),
            "norm": Attribute("bool", True, description="whether the second BN is there (not in DARTS on ImageNet)"),
            "classes": Attribute("int", minimum=1, description="number of classes; that asked of the network"),
        },
        aliases={"auxiliary_head_imagenet": {"stride": 2, "norm": False}},
        spellings={"auxiliary_head_cifar": {"stride": 3}},
        meanings=_program("auxiliary_head"),
    ),
)
