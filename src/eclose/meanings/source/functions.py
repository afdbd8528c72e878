"""The functions of `meanings.program.formulas` without parameters, as torch expressions."""

from __future__ import annotations

UNARY_TEXTS: dict[str, str] = {
    **{
        name: f"F.{name}({{0}})"
        for name in (
            *("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish"),
            *("hardswish", "hardsigmoid", "softplus", "softsign"),
        )
    },
    **{
        name: f"torch.{name}({{0}})"
        for name in (
            *("sigmoid", "tanh", "abs", "square", "exp", "sin", "cos", "sinh", "cosh"),
            *("asinh", "atanh", "sinc", "erf"),
        )
    },
    "neg": "-{0}",
    "cubic": "{0} * {0} * {0}",
    "square_root": "torch.sqrt({0})",
    "log": "torch.log(torch.abs({0}) + 1e-6)",
    "umax": "{0}.clamp(min=0)",
    "umin": "{0}.clamp(max=0)",
    "logexp": "F.softplus({0})",
    "gaussian": "torch.exp(-{0} * {0})",
}

BINARY_TEXTS: dict[str, str] = {
    "add": "{0} + {1}",
    "multiply": "{0} * {1}",
    "subtract": "{0} - {1}",
    "divide": "{0} / ({1} + 1e-6)",
    "maximum": "torch.maximum({0}, {1})",
    "minimum": "torch.minimum({0}, {1})",
    "bsigmoid": "torch.sigmoid({0}) * {1}",
}


__all__ = ["BINARY_TEXTS", "UNARY_TEXTS"]
