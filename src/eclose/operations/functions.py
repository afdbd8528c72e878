"""Functions applied entry by entry, by the names and formulas of `meanings.program.formulas`.

Each is one torch expression; those with a learned number a channel hold it as `beta`, initially 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6  # keeps log and divide finite

PLAIN: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "relu6": functional.relu6,
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "selu": functional.selu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "mish": functional.mish,
    "hardswish": functional.hardswish,
    "hardsigmoid": functional.hardsigmoid,
    "softplus": functional.softplus,
    "softsign": functional.softsign,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "neg": torch.neg,
    "abs": torch.abs,
    "square": torch.square,
    "cubic": lambda x: x * x * x,
    "square_root": torch.sqrt,
    "log": lambda x: torch.log(torch.abs(x) + EPSILON),
    "exp": torch.exp,
    "sin": torch.sin,
    "cos": torch.cos,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "asinh": torch.asinh,
    "atanh": torch.atanh,
    "sinc": torch.sinc,
    "umax": lambda x: torch.clamp(x, min=0),
    "umin": lambda x: torch.clamp(x, max=0),
    "logexp": functional.softplus,
    "gaussian": lambda x: torch.exp(-x * x),
    "erf": torch.erf,
}
LEARNED: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mconst": lambda x, beta: beta * x,
    "aconst": lambda x, beta: beta + x,
    "const": lambda x, beta: beta.expand_as(x).clone(),  # a view would be the parameter itself
}
PLAIN_BINARY: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "multiply": torch.mul,
    "subtract": torch.sub,
    "divide": lambda x, y: x / (y + EPSILON),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "bsigmoid": lambda x, y: torch.sigmoid(x) * y,
}
LEARNED_BINARY: Mapping[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "bgaussian_sq": lambda x, y, beta: torch.exp(-beta * torch.square(x - y)),
    "bgaussian_abs": lambda x, y, beta: torch.exp(-beta * torch.abs(x - y)),
    "wavg": lambda x, y, beta: beta * x + (1 - beta) * y,
}


class Function(nn.Module):
    """A function without parameters, of one value or two.

    Args:
        name: a key of `PLAIN` or `PLAIN_BINARY`.
    """

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def forward(self, *values: Tensor) -> Tensor:
        """Return the function of the values, entry by entry."""
        return PLAIN[self.name](values[0]) if len(values) == 1 else PLAIN_BINARY[self.name](values[0], values[1])

    def extra_repr(self) -> str:
        """Show the function."""
        return self.name


class LearnedFunction(nn.Module):
    """A function with a learned `beta` for each channel.

    Args:
        name: a key of `LEARNED` or `LEARNED_BINARY`.
        shape: of the values, `(C, *spatial)`.
    """

    def __init__(self, name: str, shape: tuple[int, ...]):
        super().__init__()
        self.name = name
        self.beta = nn.Parameter(torch.ones(shape[0], *(1 for _ in shape[1:])))

    def forward(self, *values: Tensor) -> Tensor:
        """Return the function of the values, entry by entry."""
        if len(values) == 1:
            return LEARNED[self.name](values[0], self.beta)
        return LEARNED_BINARY[self.name](values[0], values[1], self.beta)

    def extra_repr(self) -> str:
        """Show the function."""
        return self.name


def function(name: str, shape: tuple[int, ...]) -> nn.Module:
    """Return the module of a function for values of a shape `(C, *spatial)`."""
    learned = name in LEARNED or name in LEARNED_BINARY
    return LearnedFunction(name, shape) if learned else Function(name)


__all__ = ["Function", "LearnedFunction", "function"]
