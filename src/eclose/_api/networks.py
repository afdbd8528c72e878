"""Public functions that give a term a meaning: a network, a graph, a picture, costs, source text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eclose._api.requests import as_term, network_request
from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.registry import Registry
from eclose.algebra.shapes import Output
from eclose.algebra.terms import Term

BACKENDS = ("torch",)


def build(
    term: Term | str,
    *,
    input: Any = None,
    output: Output | None = None,
    classes: int | None = None,
    space: Any = None,
    task: Any = None,
    size: str | None = None,
    backend: str = "torch",
    policy: str = "reject",
    registry: Registry | None = None,
    **options: Any,
) -> Any:
    """Return the network of a term, a `torch.nn.Module`.

    Args:
        term: a term or its text; without a stem or a head it gets the default ones.
        input: a shape (channels first, no batch) or `Tokens(length, vocab)`.
        output: `Classes(10)`, `Map(1)`, `Values(3)` or `Tokens(50)`.
        classes: short for `output=Classes(classes)`.
        space: the space whose skeleton goes around the term.
        task: where input and output come from.
        size: of the space's network, `"search"` or `"evaluation"`.
        backend: which meaning; `"torch"`.
        policy: what happens where shapes differ at a merge: `"reject"` (an error) or `"adapt"` (adapter layers).
        registry: the operators.
        options: further options of the space's skeleton, e.g. `channels=36`.
    """
    if backend not in BACKENDS:
        raise RequestError(
            f"unknown backend {backend!r}{did_you_mean(backend, BACKENDS)} (known: {', '.join(BACKENDS)})"
        )
    request = network_request(
        term,
        input=input,
        output=output,
        classes=classes,
        space=space,
        task=task,
        size=size,
        registry=registry,
        **options,
    )
    from eclose.meanings.torch.build import build as build_torch

    return build_torch(
        request.term, input=request.input, output=request.output, registry=request.registry, policy=policy
    )


def cost(
    term: Term | str,
    *,
    input: Any = None,
    output: Output | None = None,
    classes: int | None = None,
    space: Any = None,
    task: Any = None,
    size: str | None = None,
    policy: str = "reject",
    registry: Registry | None = None,
    **options: Any,
) -> Any:
    """Return what a network costs, without building it: parameters, multiply-adds, peak memory.

    The arguments are those of `build`.
    """
    from eclose.meanings.cost import cost as term_cost

    request = network_request(
        term,
        input=input,
        output=output,
        classes=classes,
        space=space,
        task=task,
        size=size,
        registry=registry,
        **options,
    )
    return term_cost(request.term, input=request.input, output=request.output, registry=request.registry, policy=policy)


def source(
    term: Term | str,
    *,
    input: Any = None,
    output: Output | None = None,
    classes: int | None = None,
    space: Any = None,
    task: Any = None,
    size: str | None = None,
    name: str = "Network",
    registry: Registry | None = None,
    **options: Any,
) -> str:
    """Return the text of a plain PyTorch module that computes the same and needs no eclose.

    Args:
        name: what the class is called. The other arguments are those of `build`.
    """
    from eclose.meanings.source import source as program_source

    request = network_request(
        term,
        input=input,
        output=output,
        classes=classes,
        space=space,
        task=task,
        size=size,
        registry=registry,
        **options,
    )
    return program_source(
        request.term, input=request.input, output=request.output, registry=request.registry, name=name
    )


def graph(term: Term | str, registry: Registry | None = None) -> Any:
    """Return the edge-labelled graph of a term."""
    from eclose.meanings.graph import term_graph

    return term_graph(as_term(term, registry), registry)


def draw(term: Term | str, file: str | Path | None = None, registry: Registry | None = None) -> str:
    """Return a drawing of a term as SVG text, and write it to a file where one is given."""
    from eclose.meanings.drawing import draw as draw_term

    return draw_term(as_term(term, registry), file, registry)


def exported(net: Any, **arguments: Any) -> Any:
    """Return what `torch.export` makes of a built network."""
    from eclose.meanings.torch.export import exported as export

    return export(net, **arguments)
