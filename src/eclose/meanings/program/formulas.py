"""The functions a program may apply entry by entry, by name and with their formulas.

Backends implement exactly these; no operator and no tensor library is known here.
"""

from __future__ import annotations

from collections.abc import Mapping

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
