"""Mixtures: the weighted sum of alternatives, with the weights passed in.

A mixture holds no parameters and no reference to a network, so it can be copied, pickled and replaced by a faster one.
What turns alphas into weights (softmax, a Gumbel sample, a hard choice, ...) belongs to the strategies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class MixtureWeights:
    """The weights of one choice for one forward pass.

    Attributes:
        values: one weight an alternative, shape `(K,)`; None is the plain sum of what is evaluated.
        selected: the alternatives that are evaluated at all (hard weights); None evaluates every one.
        leak: a scalar that is added to the mixture everywhere. Its value is zero; it hands a gradient to weights whose
            alternatives were not evaluated.
    """

    values: Tensor | None = None  # shape: (K,)
    selected: tuple[int, ...] | None = None
    leak: Tensor | None = None  # shape: ()

    @property
    def entries(self) -> tuple[Tensor, ...]:
        """The weights one by one: taken apart once, however many mixtures of a network read them."""
        found: tuple[Tensor, ...] | None = self.__dict__.get("_entries")
        if found is None:
            assert self.values is not None
            found = self.values.unbind()
            object.__setattr__(self, "_entries", found)
        return found

    def needs(self, alternative: int) -> bool:
        """Return whether an alternative is evaluated."""
        return self.selected is None or alternative in self.selected


class Mixture(nn.Module):
    """`sum_j weights[alternatives[j]] * inputs[j]` over the inputs that are present.

    Args:
        alternatives: which alternative each input belongs to; of several types of value each has a mixture of its own,
            so the alternatives of one mixture may be any part of the choice's.
        count: the number of alternatives of the choice, which is the length of its weights.
    """

    def __init__(self, alternatives: Sequence[int], count: int):
        super().__init__()
        self.alternatives = tuple(alternatives)
        self.count = count

    def forward(self, inputs: Sequence[Tensor | None], weights: MixtureWeights) -> Tensor | None:
        """Return the mixture, or None where every input is absent."""
        total: Tensor | None = None
        for alternative, value in zip(self.alternatives, inputs, strict=True):
            if value is None or not weights.needs(alternative):
                continue
            if weights.values is None:
                total = value if total is None else total + value
                continue
            weight = weights.entries[alternative]
            total = value * weight if total is None else torch.addcmul(total, value, weight)
        return total if total is None or weights.leak is None else total + weights.leak

    def extra_repr(self) -> str:
        """Show the alternatives."""
        return f"alternatives={self.alternatives}, count={self.count}"


class Alphas(nn.Module):
    """Architecture parameters by the name of their choice: a parameter group of their own, read like a dictionary.

    Any name is allowed: one that a module uses itself (`forward`, `keys`, ...) is kept under another attribute.
    """

    def __init__(self, alphas: Mapping[str, nn.Parameter]):
        super().__init__()
        self._attributes: dict[str, str] = {}
        for name, alpha in alphas.items():
            attribute = name
            while hasattr(self, attribute) or (attribute != name and attribute in alphas):
                attribute += "_"
            self._attributes[name] = attribute
            self.register_parameter(attribute, alpha)

    def __getitem__(self, name: str) -> nn.Parameter:
        alpha = self._parameters[self._attributes[name]]
        assert alpha is not None
        return alpha

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the choices."""
        return tuple(self._attributes)

    def values(self) -> tuple[nn.Parameter, ...]:
        """Return the parameters."""
        return tuple(self[name] for name in self)

    def items(self) -> tuple[tuple[str, nn.Parameter], ...]:
        """Return the names with their parameters."""
        return tuple((name, self[name]) for name in self)


def softmax_weights(alphas: Mapping[str, Tensor]) -> dict[str, MixtureWeights]:
    """Return the plain relaxation `theta = softmax(alpha)` for every choice."""
    return {name: MixtureWeights(torch.softmax(alpha, -1)) for name, alpha in alphas.items()}


def checked_weights(
    given: Mapping[str, MixtureWeights | Tensor], counts: Mapping[str, int]
) -> dict[str, MixtureWeights]:
    """Return weights for exactly the choices in `counts`, each of the right length and, on a CPU, finite.

    Elsewhere the values are not looked at: that would stop an accelerator at every step.
    """
    missing, extra = counts.keys() - given.keys(), given.keys() - counts.keys()
    if missing or extra:
        problem = f"weights are missing for {sorted(missing)}" if missing else f"there are no choices {sorted(extra)}"
        raise ValueError(problem)
    result = {}
    for name, count in counts.items():
        weights = given[name]
        if not isinstance(weights, MixtureWeights):
            weights = MixtureWeights(weights)
        if weights.values is not None:
            _refuse_wrong(name, count, weights.values)
        if weights.selected is not None and not all(0 <= index < count for index in weights.selected):
            raise ValueError(f"choice {name!r} has alternatives 0 to {count - 1}; selected are {weights.selected}")
        if weights.selected is not None and not weights.selected:
            raise ValueError(f"choice {name!r} needs at least one selected alternative")
        result[name] = weights
    return result


def _refuse_wrong(name: str, count: int, values: Tensor) -> None:
    if not isinstance(values, Tensor):
        raise ValueError(f"choice {name!r} needs its weights as a tensor, not as {type(values).__name__}")
    if values.shape != (count,):
        raise ValueError(f"choice {name!r} needs weights of shape ({count},), not {tuple(values.shape)}")
    if values.device.type == "cpu" and not torch.compiler.is_compiling() and not values.isfinite().all():
        raise ValueError(f"choice {name!r} has weights that are no numbers: {values.tolist()}")


__all__ = ["Alphas", "Mixture", "MixtureWeights", "checked_weights", "softmax_weights"]
