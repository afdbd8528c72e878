"""What goes into a network and what comes out, without any tensor library.

An input is a shape (channels first, no batch), for example `(3, 32, 32)`, or `Tokens(length, vocab)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from eclose.algebra.errors import RequestError


@dataclass(frozen=True)
class Classes:
    """One logit a class."""

    count: int


@dataclass(frozen=True)
class Map:
    """A dense prediction: `channels` values at every position of the input."""

    channels: int


@dataclass(frozen=True)
class Values:
    """A vector of real numbers (regression)."""

    count: int


@dataclass(frozen=True)
class Tokens:
    """A sequence of integers below `vocab`; as an output, `Tokens(vocab=50)` is one distribution a position."""

    length: int = 0
    vocab: int = 0

    def __post_init__(self) -> None:
        if self.length and not self.vocab:  # Tokens(50) as an output: fifty symbols, any length
            object.__setattr__(self, "vocab", self.length)
            object.__setattr__(self, "length", 0)


Shape: TypeAlias = tuple[int, ...]
Input: TypeAlias = Shape | Tokens
Output: TypeAlias = Classes | Map | Values | Tokens


def as_input(value: object) -> Input:
    """Return a checked input description."""
    if isinstance(value, Tokens):
        if value.length < 1 or value.vocab < 1:
            raise RequestError(f"input {value} needs a length and a vocabulary of at least 1")
        return value
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        shape = tuple(value)
        if all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in shape):
            return shape
    raise RequestError(f"input must be a shape such as (3, 32, 32) or Tokens(length, vocab), not {value!r}")


def as_output(output: Output | None, classes: int | None) -> Output | None:
    """Return the output that `output=` or its short form `classes=` asks for."""
    if output is not None and classes is not None:
        raise RequestError("give output= or classes=, not both")
    if classes is not None:
        if not isinstance(classes, int) or isinstance(classes, bool) or classes < 1:
            raise RequestError(f"classes must be a whole number of at least 1, not {classes!r}")
        return Classes(classes)
    if output is not None and not isinstance(output, Classes | Map | Values | Tokens):
        raise RequestError(f"output must be Classes, Map, Values or Tokens, not {output!r}")
    return output
