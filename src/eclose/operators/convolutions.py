"""The convolution family: convolutions, pools, skips and the blocks that change the resolution, as plain data.

Names and defaults are those of the literature: DARTS (Liu et al., 2019), NAS-Bench-201 (Dong and Yang, 2020),
NAS-Bench-1Shot1 (Zela et al., 2020) and hierarchical NAS-Bench-201 (Schrodi et al., 2023). All of them work on one,
two or three spatial axes. What they compute stands in `meanings.program.convolutions`.
"""

from __future__ import annotations

from eclose.algebra.declarations import Attribute, Operator

KEEPS = "shape-keeping"  # with stride 1 and the channels of its input
HALVES = "halving"
CONSTANT = "constant"  # ignores its input

ORDERS = ("act-conv-norm", "conv-norm-act", "conv-norm", "norm-act-conv", "conv-act", "act-conv", "conv")
ACTIVATIONS = (
    *("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish"),
    *("hardswish", "hardsigmoid", "softplus", "softsign", "sigmoid", "tanh"),
)
NORMS = ("batch", "instance", "layer", "channel")

STRIDE = Attribute("int", minimum=1, description="step between outputs; inherited where it is not given")
CHANNELS = Attribute("int", minimum=1, description="output channels; inherited, else those of the input")
PADDING = Attribute("size", minimum=0, description="zeros on each side; what keeps the resolution where it is left out")


def _kernel(default: int) -> Attribute:
    return Attribute("size", default, minimum=1, description="size of the window")


def _program(function: str) -> dict[str, str]:
    return {"program": f"eclose.meanings.program.convolutions:{function}"}


OPERATORS: tuple[Operator, ...] = (
    Operator(
        "conv",
        "a convolution with its activation and normalisation, by default ReLU-Conv-BN",
        attributes={
            "kernel": _kernel(3),
            "stride": STRIDE,
            "dilation": Attribute("size", 1, minimum=1, description="distance between the taps of the window"),
            "padding": PADDING,
            "groups": Attribute("int", 1, minimum=1, description="groups of channels that do not see each other"),
            "depthwise": Attribute("bool", False, description="one group for each input channel"),
            "channels": CHANNELS,
            "order": Attribute("string", "act-conv-norm", among=ORDERS, description="what comes before what"),
            "activation": Attribute("string", "relu", among=ACTIVATIONS, description="the `act` of the order"),
            "norm": Attribute("string", "batch", among=NORMS, description="the `norm` of the order"),
            "bias": Attribute("bool", description="whether the convolution adds a bias; inherited, by default not"),
        },
        aliases={
            "conv1x1": {"kernel": 1},
            "conv5x5": {"kernel": 5},
            "conv7x7": {"kernel": 7},
            "conv3x3o": {"order": "conv"},
            "conv1x1o": {"order": "conv", "kernel": 1},
            "dconv3x3o": {"order": "conv", "depthwise": True},
            "conv3x3_bn_relu": {"order": "conv-norm-act"},
            "conv1x1_bn_relu": {"order": "conv-norm-act", "kernel": 1},
        },
        spellings={
            "conv3x3": {"kernel": 3},
            "nor_conv_1x1": {"kernel": 1},
            "nor_conv_3x3": {"kernel": 3},
            "nor_conv_5x5": {"kernel": 5},
            "nor_conv_7x7": {"kernel": 7},
        },
        meanings=_program("conv"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "sep_conv",
        "twice: ReLU, depthwise convolution, 1x1 convolution, BN; the stride belongs to the first",
        attributes={"kernel": _kernel(3), "stride": STRIDE, "channels": CHANNELS},
        aliases={f"sep_conv_{k}x{k}": {"kernel": k} for k in (3, 5, 7)},
        meanings=_program("sep_conv"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "dil_conv",
        "ReLU, dilated depthwise convolution, 1x1 convolution, BN",
        attributes={
            "kernel": _kernel(3),
            "stride": STRIDE,
            "dilation": Attribute("size", 2, minimum=1, description="distance between the taps of the window"),
            "channels": CHANNELS,
        },
        aliases={f"dil_conv_{k}x{k}": {"kernel": k} for k in (3, 5)},
        meanings=_program("dil_conv"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "axial_conv",
        "ReLU, one convolution along each axis, the last axis first, BN",
        attributes={
            "kernel": Attribute("int", 7, minimum=1, description="taps along the axis"),
            "stride": STRIDE,
            "channels": CHANNELS,
        },
        aliases={"conv_7x1_1x7": {"kernel": 7}},
        meanings=_program("axial_conv"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "max_pool",
        "the maximum of each window (then a BN without scale and shift where pool_norm is inherited)",
        attributes={"kernel": _kernel(3), "stride": STRIDE, "padding": PADDING},
        aliases={f"max_pool_{k}x{k}": {"kernel": k} for k in (3, 5)},
        spellings={"maxpool3x3": {"kernel": 3}},
        meanings=_program("max_pool"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "avg_pool",
        "the mean of each window, padding not counted (then a BN without scale and shift where pool_norm is inherited)",
        attributes={"kernel": _kernel(3), "stride": STRIDE, "padding": PADDING},
        aliases={f"avg_pool_{k}x{k}": {"kernel": k} for k in (3, 5)},
        spellings={"avgpool3x3": {"kernel": 3}},
        meanings=_program("avg_pool"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "id",
        "the input itself; with a stride of 2 a factorized_reduce",
        attributes={"stride": STRIDE},
        synonyms=("skip", "skip_connect", "identity"),
        meanings=_program("identity"),
        tags=frozenset({KEEPS, "identity"}),
    ),
    Operator(
        "zero",
        "zeros: no connection",
        attributes={"stride": STRIDE},
        synonyms=("none",),
        meanings=_program("zero"),
        tags=frozenset({KEEPS, CONSTANT, "zero"}),
    ),
    Operator(
        "noise",
        "independent N(0, 1) that ignores its input",
        attributes={"stride": STRIDE},
        meanings=_program("noise"),
        tags=frozenset({KEEPS, CONSTANT, "random"}),
    ),
    Operator(
        "factorized_reduce",
        "half the resolution: ReLU, two 1x1 convolutions of stride 2 on shifted grids, concatenated, BN",
        attributes={"channels": CHANNELS},
        meanings=_program("factorized_reduce"),
        tags=frozenset({HALVES}),
    ),
    Operator(
        "down",
        "a residual block that halves the resolution and doubles the channels (the reduction of NAS-Bench-201)",
        attributes={"channels": Attribute("int", minimum=1, description="output channels; twice those of the input")},
        synonyms=("resBlock",),
        meanings=_program("down"),
        tags=frozenset({HALVES}),
    ),
    Operator(
        "up",
        "twice the resolution and half the channels: nearest neighbour, 3x3 convolution, BN, ReLU",
        attributes={
            "channels": Attribute("int", minimum=1, description="output channels; half those of the input"),
            "factor": Attribute("int", 2, minimum=2, description="how much each size grows"),
            "transposed": Attribute("bool", False, description="one transposed convolution instead of the first two"),
        },
        aliases={"up_conv": {"transposed": True}},
        meanings=_program("up"),
        tags=frozenset({"doubling"}),
    ),
    Operator(
        "upsample",
        "every position repeated (nearest neighbour)",
        attributes={"factor": Attribute("int", 2, minimum=1, description="how much each size grows")},
        meanings=_program("upsample"),
        tags=frozenset({"doubling"}),
    ),
)
