"""Functions of one value or two, normalisations, and what turns features into vectors, as plain data.

The unary and binary functions are those that an activation can be made of (Ramachandran et al., 2018; Schrodi et al.,
2023). Their formulas stand in `meanings.program.formulas` under the same names.
"""

from __future__ import annotations

from eclose.algebra.declarations import Attribute, Operator
from eclose.operators.convolutions import ACTIVATIONS, CONSTANT, KEEPS

ACTIVATION_DESCRIPTIONS = {
    "relu": "max(x, 0)",
    "relu6": "min(max(x, 0), 6)",
    "leaky_relu": "x above 0, 0.01 x below",
    "elu": "x above 0, exp(x) - 1 below",
    "selu": "a scaled elu that keeps mean 0 and variance 1",
    "gelu": "x times the normal distribution function of x",
    "silu": "x sigmoid(x)",
    "mish": "x tanh(ln(1 + exp(x)))",
    "hardswish": "x min(max(x + 3, 0), 6) / 6",
    "hardsigmoid": "min(max(x + 3, 0), 6) / 6",
    "softplus": "ln(1 + exp(x))",
    "softsign": "x / (1 + |x|)",
    "sigmoid": "1 / (1 + exp(-x))",
    "tanh": "the hyperbolic tangent",
}
UNARY_DESCRIPTIONS = {
    "neg": "-x",
    "abs": "|x|",
    "square": "x^2",
    "cubic": "x^3",
    "square_root": "the square root, undefined below 0",
    "log": "ln(|x| + 1e-6)",
    "exp": "exp(x)",
    "sin": "the sine",
    "cos": "the cosine",
    "sinh": "the hyperbolic sine",
    "cosh": "the hyperbolic cosine",
    "asinh": "the inverse hyperbolic sine",
    "atanh": "the inverse hyperbolic tangent, undefined beyond -1 and 1",
    "sinc": "sin(pi x) / (pi x)",
    "umax": "max(x, 0), as a unary function",
    "umin": "min(x, 0), as a unary function",
    "logexp": "ln(1 + exp(x)), as a unary function",
    "gaussian": "exp(-x^2)",
    "erf": "the error function",
    "mconst": "beta x with a learned beta for each channel",
    "aconst": "beta + x with a learned beta for each channel",
    "const": "a learned beta for each channel",
}
BINARY_DESCRIPTIONS = {
    "add": "x + y",
    "multiply": "x y",
    "subtract": "x - y",
    "divide": "x / (y + 1e-6)",
    "maximum": "max(x, y)",
    "minimum": "min(x, y)",
    "bsigmoid": "sigmoid(x) y",
    "bgaussian_sq": "exp(-beta (x - y)^2) with a learned beta for each channel",
    "bgaussian_abs": "exp(-beta |x - y|) with a learned beta for each channel",
    "wavg": "beta x + (1 - beta) y with a learned beta for each channel",
}
SYNONYMS = {
    "silu": ("swish",),
    "hardswish": ("hard_swish",),
    "multiply": ("multi",),
    "subtract": ("sub",),
    "divide": ("div",),
    "maximum": ("bmax",),
    "minimum": ("bmin",),
}

FACTS = {"square_root": ("partial",), "atanh": ("partial",), "const": (CONSTANT,)}  # partial: not defined on all of R

AFFINE = Attribute("bool", description="whether it has a learned scale and shift; inherited, by default it has")


def _program(function: str) -> dict[str, str]:
    return {"program": f"eclose.meanings.program.functions:{function}"}


def _function(name: str, description: str, *tags: str, inputs: int = 1) -> Operator:
    return Operator(
        name,
        description,
        inputs=inputs,
        synonyms=SYNONYMS.get(name, ()),
        meanings=_program("unary" if inputs == 1 else "binary"),
        tags=frozenset({KEEPS, *tags}),
    )


def _norm(name: str, description: str, *synonyms: str, **attributes: Attribute) -> Operator:
    return Operator(
        name,
        description,
        attributes={"affine": AFFINE, **attributes},
        synonyms=synonyms,
        meanings=_program(name),
        tags=frozenset({KEEPS, "norm"}),
    )


OPERATORS: tuple[Operator, ...] = (
    *(_function(name, ACTIVATION_DESCRIPTIONS[name], "activation", "unary") for name in ACTIVATIONS),
    *(_function(name, description, "unary", *FACTS.get(name, ())) for name, description in UNARY_DESCRIPTIONS.items()),
    *(_function(name, description, "binary", inputs=2) for name, description in BINARY_DESCRIPTIONS.items()),
    _norm("batch_norm", "normalises each channel over the batch and all positions", "batch"),
    _norm("instance_norm", "normalises each channel of each sample over all positions", "instance"),
    _norm("layer_norm", "normalises each sample over channels and positions together", "layer"),
    _norm("channel_norm", "normalises each position of each sample over its channels", "norm"),
    _norm(
        "group_norm",
        "normalises each sample over groups of channels",
        "group",
        groups=Attribute("int", 8, minimum=1, description="the number of groups; it divides the channels"),
    ),
    Operator(
        "dropout",
        "zeroes entries while training",
        attributes={"rate": Attribute("float", 0.1, minimum=0, description="with which probability (below 1)")},
        meanings=_program("dropout"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "global_pool",
        "the mean over all positions: one number a channel",
        synonyms=("global_avg_pool",),
        meanings=_program("global_pool"),
    ),
    Operator("flatten", "all numbers in one vector", meanings=_program("flatten")),
    Operator(
        "linear",
        "a linear map of vectors, or of the channels at every position",
        attributes={
            "features": Attribute("int", minimum=1, description="length of the output; that of the input"),
            "bias": Attribute("bool", True, description="whether a bias is added"),
        },
        meanings=_program("linear"),
    ),
)
