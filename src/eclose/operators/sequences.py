"""Blocks for sequences of tokens (and any other grid of positions), as plain data.

A sequence of embedded tokens is a feature `(C, length)`, so convolutions, normalisations and wirings work on it too.
"""

from __future__ import annotations

from eclose.algebra.declarations import Attribute, Operator
from eclose.operators.convolutions import ACTIVATIONS, KEEPS

HEADS = Attribute("int", 4, minimum=1, description="the number of attention heads; it divides the channels")
CAUSAL = Attribute("bool", False, description="whether a position sees only those before it and itself")
RATIO = Attribute("int", 4, minimum=1, description="hidden channels for each input channel")
ACTIVATION = Attribute("string", "gelu", among=ACTIVATIONS, description="the function between the two maps")
RATE = Attribute("float", 0.0, minimum=0, description="probability with which dropout zeroes an entry (below 1)")


def _program(function: str) -> dict[str, str]:
    return {"program": f"eclose.meanings.program.sequences:{function}"}


OPERATORS: tuple[Operator, ...] = (
    Operator(
        "attention",
        "multi-head self-attention over all positions, with its output projection",
        attributes={"heads": HEADS, "causal": CAUSAL, "dropout": RATE},
        synonyms=("self_attention",),
        meanings=_program("attention"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "mlp",
        "two linear maps of the channels at every position with an activation between them",
        attributes={"ratio": RATIO, "activation": ACTIVATION, "dropout": RATE},
        meanings=_program("mlp"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "encoder_block",
        "one layer of a transformer encoder: x + attention(norm(x)), then x + mlp(norm(x))",
        attributes={"heads": HEADS, "causal": CAUSAL, "ratio": RATIO, "activation": ACTIVATION, "dropout": RATE},
        synonyms=("transformer_block",),
        meanings=_program("encoder_block"),
        tags=frozenset({KEEPS}),
    ),
    Operator(
        "positions",
        "adds a learned vector to every position",
        synonyms=("position_embedding",),
        meanings=_program("positions"),
        tags=frozenset({KEEPS}),
    ),
)
