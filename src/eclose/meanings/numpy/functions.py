"""The unary and binary functions in numpy, written from their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from eclose.meanings.numpy.layer import Array, Layer


def erf(x: Array) -> Array:
    """Return erf entry by entry."""
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def softplus(x: Array) -> Array:
    """Return ln(1 + exp(x)) without overflow."""
    return np.logaddexp(0.0, x)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -x))


def hardsigmoid(x: Array) -> Array:
    """Return the piecewise linear sigmoid."""
    return np.clip(x + 3.0, 0.0, 6.0) / 6.0


def elu(x: Array) -> Array:
    """Return x where it is positive, else exp(x) - 1."""
    return np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))


SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def selu(x: Array) -> Array:
    """Return the self-normalising ELU of Klambauer et al. (2017)."""
    return SELU_SCALE * np.where(x > 0.0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0.0)))


UNARY: dict[str, Callable[[Array, Array], Array]] = {
    "relu": lambda x, beta: np.maximum(x, 0.0),
    "relu6": lambda x, beta: np.clip(x, 0.0, 6.0),
    "leaky_relu": lambda x, beta: np.where(x > 0.0, x, 0.01 * x),
    "elu": lambda x, beta: elu(x),
    "selu": lambda x, beta: selu(x),
    "gelu": lambda x, beta: x * 0.5 * (1.0 + erf(x / math.sqrt(2.0))),
    "silu": lambda x, beta: x * sigmoid(x),
    "mish": lambda x, beta: x * np.tanh(softplus(x)),
    "hardswish": lambda x, beta: x * hardsigmoid(x),
    "hardsigmoid": lambda x, beta: hardsigmoid(x),
    "softplus": lambda x, beta: softplus(x),
    "softsign": lambda x, beta: x / (1.0 + np.abs(x)),
    "sigmoid": lambda x, beta: sigmoid(x),
    "tanh": lambda x, beta: np.tanh(x),
    "neg": lambda x, beta: -x,
    "abs": lambda x, beta: np.abs(x),
    "square": lambda x, beta: x * x,
    "cubic": lambda x, beta: x * x * x,
    "square_root": lambda x, beta: np.sqrt(x),
    "log": lambda x, beta: np.log(np.abs(x) + 1e-6),
    "exp": lambda x, beta: np.exp(x),
    "sin": lambda x, beta: np.sin(x),
    "cos": lambda x, beta: np.cos(x),
    "sinh": lambda x, beta: np.sinh(x),
    "cosh": lambda x, beta: np.cosh(x),
    "asinh": lambda x, beta: np.arcsinh(x),
    "atanh": lambda x, beta: np.arctanh(x),
    "sinc": lambda x, beta: np.sinc(x),
    "umax": lambda x, beta: np.maximum(x, 0.0),
    "umin": lambda x, beta: np.minimum(x, 0.0),
    "logexp": lambda x, beta: softplus(x),
    "gaussian": lambda x, beta: np.exp(-x * x),
    "erf": lambda x, beta: erf(x),
    "mconst": lambda x, beta: beta * x,
    "aconst": lambda x, beta: beta + x,
    "const": lambda x, beta: beta + np.zeros_like(x),
}

BINARY: dict[str, Callable[[Array, Array, Array], Array]] = {
    "add": lambda x, y, beta: x + y,
    "multiply": lambda x, y, beta: x * y,
    "subtract": lambda x, y, beta: x - y,
    "divide": lambda x, y, beta: x / (y + 1e-6),
    "maximum": lambda x, y, beta: np.maximum(x, y),
    "minimum": lambda x, y, beta: np.minimum(x, y),
    "bsigmoid": lambda x, y, beta: sigmoid(x) * y,
    "bgaussian_sq": lambda x, y, beta: np.exp(-beta * (x - y) ** 2),
    "bgaussian_abs": lambda x, y, beta: np.exp(-beta * np.abs(x - y)),
    "wavg": lambda x, y, beta: beta * x + (1.0 - beta) * y,
}


def function(layer: Layer, x: Array) -> Array:
    """Apply a unary function; NaN where it is undefined."""
    with np.errstate(all="ignore"):
        return UNARY[layer.settings["name"]](x, layer.parameters.get("beta"))


def binary(layer: Layer, x: Array, y: Array) -> Array:
    """Apply a binary function."""
    with np.errstate(all="ignore"):
        return BINARY[layer.settings["name"]](x, y, layer.parameters.get("beta"))
