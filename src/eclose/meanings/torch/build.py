"""From a term to a torch module: completed, compiled to a program, built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.shapes import Input, Output, as_input, as_output
from eclose.algebra.terms import Term
from eclose.meanings.program import Program, compile_term
from eclose.meanings.program.completion import completed
from eclose.meanings.torch.net import Net


def build_net(program: Program) -> Net:
    """Return the module of a program; parameters are drawn from torch's generator in the order of the layers."""
    return Net(program)


def build(
    term: Term,
    *,
    input: Input,
    output: Output | None = None,
    classes: int | None = None,
    registry: Registry | None = None,
    policy: str = "reject",
    context: Mapping[str, Any] | None = None,
) -> Net:
    """Return the network of a term.

    Args:
        term: a normalised term; where it has no stem or head it gets the default one.
        input: `(C, *spatial)` or `Tokens(length, vocab)`.
        output: what the network gives: `Classes`, `Map`, `Values` or `Tokens`.
        classes: short for `output=Classes(classes)`.
        registry: the operators; those that ship and those a user registered without.
        policy: where shapes differ at a merge, `"reject"` is an error with the place, `"adapt"` inserts adapters.
        context: what the whole term inherits (`channels`, `stride`, `affine`, `pool_norm`, `conv_bias`).
    """
    registry = registry if registry is not None else default_registry()
    given, asked = as_input(input), as_output(output, classes)
    term = completed(term, given, asked, registry)
    return build_net(compile_term(term, given, asked, registry=registry, policy=policy, context=context))


__all__ = ["build", "build_net"]
