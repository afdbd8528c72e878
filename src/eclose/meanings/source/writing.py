"""From a term to the text of a module: completed, compiled to a program, written line by line.

The text has one line for each layer with parameters and one for each step of the forward pass, whatever the depth of
the term. Parameters have the names that the built network gives them, so that its weights can be loaded.
"""

from __future__ import annotations

import builtins
import json
import keyword
import textwrap
from collections.abc import Mapping
from math import prod
from typing import Any

from eclose.algebra.errors import EcloseError, RequestError
from eclose.algebra.printing import term_text
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.shapes import Input, Output, Shape, as_input, as_output
from eclose.algebra.terms import Term, distinct
from eclose.meanings.program import Program, compile_term
from eclose.meanings.program.completion import completed
from eclose.meanings.program.layers import LAYERS
from eclose.meanings.source.helpers import HELPERS, helper_texts
from eclose.meanings.source.layers import RULES, Layer, Written
from eclose.meanings.source.variables import needed_values, variables

WIDTH = 110
LONGEST_TERM = 4_000  # characters of a term that is quoted above the class
TAKEN = frozenset({"torch", "nn", "F", *HELPERS})

HEADER = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"


def source(
    term: Term,
    *,
    input: Input,
    output: Output | None = None,
    registry: Registry | None = None,
    name: str = "Network",
    policy: str = "reject",
    context: Mapping[str, Any] | None = None,
) -> str:
    """Return the text of a plain PyTorch module that computes what the built network computes.

    The module imports nothing but torch, and the built network's `state_dict` loads into it.

    Args:
        term: a normalised term without open choices; where it has no stem or head it gets the default one.
        input: `(C, *spatial)` or `Tokens(length, vocab)`.
        output: what the network gives: `Classes`, `Map`, `Values` or `Tokens`.
        registry: the operators; those that ship and those a user registered without.
        name: what the class is called.
        policy: what happens where shapes differ at a merge: `"reject"` or `"adapt"`.
        context: what the whole term inherits (`channels`, `stride`, `affine`, `pool_norm`, `conv_bias`).
    """
    checked_name(name)
    registry = registry if registry is not None else default_registry()
    given, asked = as_input(input), as_output(output, None)
    whole = completed(term, given, asked, registry)
    refuse_open(whole)
    program = compile_term(whole, given, asked, registry=registry, policy=policy, context=context)
    return program_source(program, name=name, about=term_text(term, registry))


def checked_name(name: object) -> str:
    """Return a name that a class can have here, or raise with what is wrong."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise RequestError(f"{name!r} cannot name a class: use letters, digits and underscores, and no Python keyword")
    if name in TAKEN or hasattr(builtins, name):
        raise RequestError(f"the class cannot be called {name!r}, which the module uses itself; choose another name")
    return name


def refuse_open(term: Term) -> None:
    """Raise where a term leaves a decision open: a plain network has nothing to decide it with."""
    for node in distinct(term):
        keeps = node.get("k", len(node.children)) if node.name == "pick" else len(node.children)
        if node.name == "choice" or (node.name == "pick" and (keeps < len(node.children) or node.get("logits"))):
            called = f" {node.get('name')!r}" if node.get("name") else ""
            raise RequestError(
                f"the {node.name}{called} of {len(node.children)} alternatives is open; only a decided term can be "
                "written as source (derive one from the search, or sample the term)"
            )


def program_source(program: Program, *, name: str = "Network", about: str = "") -> str:
    """Return the text of a module that computes a program.

    Args:
        program: what `compile_term` returned; without choices.
        name: what the class is called.
        about: a text put above the class as a comment.
    """
    checked_name(name)
    written = [_written(program, index) for index in range(len(program.steps))]
    names = _layer_names(program)
    helpers: set[str] = set()
    modules, lines = [], _forward(program, written, names)
    parameters = 0
    for index, layer in enumerate(written):
        helpers.update(layer.helpers)
        parameters += _parameter_count(program, index)
        if layer.module:
            modules.append(f"                {json.dumps(names[index])}: {layer.module},")
    init = [f"        self.layers = nn.ModuleDict({'' if modules else ')'}"]
    if modules:
        init += ["            {", *modules, "            }", "        )"]
    text = [HEADER, *helper_texts(helpers)]
    heading = [*_comment(about), f"class {name}(nn.Module):"]
    body = [
        f'    """From {_shape(program.input_shape)} to {_shape(program.output_shape)}; {parameters:,} parameters."""',
        "",
        "    def __init__(self):",
        "        super().__init__()",
        *init,
        "",
        "    def forward(self, x, taps=False):",
        *(["        layers = self.layers"] if modules else []),
        *lines,
    ]
    return "\n\n\n".join([*text, "\n".join([*heading, *body])]) + "\n"


def _written(program: Program, index: int) -> Written:
    step = program.steps[index]
    rule = RULES.get(step.layer)
    if rule is None:
        raise RequestError(f"a layer of the kind {step.layer!r} cannot be written as source")
    try:
        return rule(Layer(step.settings, _shapes(program, index), step.shape))
    except EcloseError as error:
        raise type(error)(f"at {step.name}: {error}") from None


def _forward(program: Program, written: list[Written], names: list[str]) -> list[str]:
    """Return the lines of the forward pass."""
    same = {0: 0}  # a layer that hands its input through is its input
    for index, layer in enumerate(written):
        same[index + 1] = same[program.steps[index].inputs[0]] if layer.call == "{0}" else index + 1
    inputs = [tuple(same[value] for value in step.inputs) for step in program.steps]
    output, taps = same[program.output], {name: same[value] for name, value in program.taps.items()}
    always = needed_values(program, {output}, inputs.__getitem__)
    results = {output, *taps.values()}
    needed = needed_values(program, results, inputs.__getitem__)
    called = variables(program, needed, results, inputs.__getitem__)
    lines: list[str] = []
    inside, part = False, ""
    for index, layer in enumerate(written):
        if index + 1 not in needed:
            continue
        step = program.steps[index]
        if _part(step.name) != part:
            part, inside = _part(step.name), False
            lines += [f"        # {part}"] if part.isidentifier() else []
        if index + 1 in always:
            inside, indent = False, "        "
        else:
            if not inside:
                lines.append("        if taps:")
            inside, indent = True, "            "
        value = layer.call.format(
            *(called[source] for source in inputs[index]), layer=f"layers[{json.dumps(names[index])}]"
        )
        changed = step.shape != program.shape(step.inputs[0])
        lines.append(f"{indent}{called[index + 1]} = {value}" + (f"  # {_shape(step.shape)}" if changed else ""))
    side = ", ".join(f"{name!a}: {called[value]}" for name, value in taps.items())
    lines.append(f"        return ({called[output]}, {{{side}}}) if taps else {called[output]}")
    return lines


def _layer_names(program: Program) -> list[str]:
    """Return the keys of the modules as the built network chooses them: `values` becomes `values_`, ..."""
    from torch import nn

    reserved = nn.ModuleDict()
    taken: set[str] = set()
    stateless: set[tuple[object, ...]] = set()
    names = []
    for index, step in enumerate(program.steps):
        shapes = _shapes(program, index)
        kind = LAYERS[step.layer]
        name = step.name
        if not kind.parameters(step.settings, shapes) and not kind.buffers(step.settings, shapes):
            key = (step.layer, repr(sorted(step.settings.items())), shapes)
            if key in stateless:
                names.append(name)
                continue
            stateless.add(key)
        if name in taken or hasattr(reserved, name):
            name += "_"
        taken.add(name)
        names.append(name)
    return names


def _parameter_count(program: Program, index: int) -> int:
    step = program.steps[index]
    shapes = LAYERS[step.layer].parameters(step.settings, _shapes(program, index)).values()
    return sum(map(prod, shapes))


def _shapes(program: Program, index: int) -> tuple[Shape, ...]:
    return tuple(program.shape(value) for value in program.steps[index].inputs)


def _part(name: str) -> str:
    """Return the first part of an occurrence's path, by which lines are grouped."""
    return name.partition("/")[0]


def _shape(shape: Shape) -> str:
    return f"({', '.join(map(str, ('N', *shape)))})"


def _comment(about: str) -> list[str]:
    """Return a text as comment lines; a long one is left out."""
    if not about or len(about) > LONGEST_TERM:
        return []
    return [
        f"# {line}"
        for written in about.splitlines()
        for line in textwrap.wrap(written, WIDTH, break_long_words=False, break_on_hyphens=False)
    ]


__all__ = ["program_source", "source"]
