"""Activation functions made of unary and binary functions (Ramachandran et al., 2018; Schrodi et al., 2023).

A term is one activation function; the network is a ResNet-20 in which it stands wherever a ReLU stood, each time with
parameters of its own. `square_root` and `atanh` are undefined on parts of the line: such a function fails when it is
evaluated.
"""

from __future__ import annotations

from typing import Any

from eclose.algebra.terms import Term
from eclose.spaces._space import Space
from eclose.spaces._terms import term

GRAMMAR = """
L2    -> BinaryTopo(BinOp, L1, L1, id, id) | UnaryTopo(L1)
L1    -> BinaryTopo(BinOp, UnOp, UnOp, id, id) | UnaryTopo(UnOp)
BinOp -> add | multi | sub | div | bmax | bmin | bsigmoid | bgaussian_sq | bgaussian_abs | wavg
UnOp  -> id | neg | abs | square | cubic | square_root | mconst | aconst | log | exp | sin | cos | sinh | cosh | tanh
       | asinh | atanh | sinc | umax | umin | sigmoid | logexp | gaussian | erf | const
level function: L2
level part: L1
level op: UnOp, BinOp
"""

GRAMMAR_3 = """
L3    -> BinaryTopo(BinOp, L2, L2, id, id) | UnaryTopo(L2)""" + GRAMMAR.replace(
    "level function: L2", "level function: L3\nlevel half: L2"
)

RELU = "UnaryTopo(UnaryTopo(umax))"
SWISH = "BinaryTopo(bsigmoid, UnaryTopo(mconst), UnaryTopo(id), id, id)"


def network(activation: Term, *, blocks: int = 3, channels: int = 16) -> Term:
    """Return a ResNet of three stages (He et al., 2016) with the activation in place of every ReLU.

    Args:
        activation: what stands wherever a ReLU stood.
        blocks: residual blocks a stage: 3 for ResNet-20, 5 for ResNet-32, 9 for ResNet-56.
        channels: of the first stage; doubled twice.
    """
    row = [term("stem", channels=channels), activation]
    for stage in range(3):
        for block in range(blocks):
            row += _block(activation, channels * 2**stage, halves=stage > 0 and block == 0)
    return term("Sequential", *row, term("head"))


def _block(activation: Term, channels: int, halves: bool) -> list[Term]:
    """Return two convolutions with a shortcut beside them; a shortcut that halves fills new channels with zeros."""
    first: dict[str, Any] = {"channels": channels, "stride": 2} if halves else {"channels": channels}
    residual = term(
        "Sequential",
        term("conv", order="conv-norm", **first),
        activation,
        term("conv", order="conv-norm", channels=channels),
    )
    shortcut = term("id")
    if halves:
        sampled, empty = term("max_pool", kernel=1, stride=2), term("zero", stride=2)
        shortcut = term("Parallel", sampled, empty, merge="concat")
    return [term("Parallel", residual, shortcut), activation]


ACTIVATION = Space(
    "activation",
    "activation functions of two levels of unary and binary functions",
    GRAMMAR,
    skeleton=network,
)
ACTIVATION_3 = Space(
    "activation-3",
    "activation functions of three levels",
    GRAMMAR_3,
    skeleton=network,
)

__all__ = ["ACTIVATION", "ACTIVATION_3", "GRAMMAR", "GRAMMAR_3", "RELU", "SWISH", "network"]
