"""The parameter groups of a model: weights, alphas and the parameters of learned operations.

The three are disjoint and cover the model, so that each can have an optimiser of its own.
"""

from __future__ import annotations

from torch import nn

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.operations.mixture import Alphas

KINDS = ("alpha", "operation")


def architecture(model: nn.Module, kind: str | None = None) -> dict[str, nn.Parameter]:
    """Return the architecture parameters by name: all of them, or one kind (`"alpha"` or `"operation"`).

    A module of a learned operation names its own in `operation_parameters`, a tuple of attribute names.
    """
    if kind is not None and kind not in KINDS:
        raise RequestError(f"kind must be 'alpha' or 'operation', not {kind!r}{did_you_mean(str(kind), KINDS)}")
    chosen: set[int] = set()
    for module in model.modules():
        if kind in (None, "alpha") and isinstance(module, Alphas):
            chosen.update(id(parameter) for parameter in module.parameters())
        if kind in (None, "operation"):
            for name in getattr(module, "operation_parameters", ()):
                chosen.add(id(getattr(module, name)))
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in chosen}


def weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return every parameter that is no architecture parameter, by name."""
    taken = {id(parameter) for parameter in architecture(model).values()}
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) not in taken}
