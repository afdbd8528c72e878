"""For every operator of a registry small networks around it, found from its declaration alone.

Each attribute takes each of its other values in turn, on every kind of input that the operator takes. A new operator
appears in the tests that use this without being named anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from eclose.algebra.declarations import Attribute, Operator
from eclose.algebra.errors import EcloseError
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.shapes import Classes, Input, Output, Tokens
from eclose.algebra.terms import Term
from eclose.meanings.program import Program, compile_term

# Odd and unequal sizes first; the second of a kind is for what needs more room.
INPUTS: dict[str, tuple[Input, ...]] = {
    "vector": ((5,),),
    "1d": ((3, 11), (3, 19)),
    "2d": ((3, 7, 9), (3, 14, 11)),
    "3d": ((2, 5, 4, 5), (2, 9, 8, 8)),
    "tokens": (Tokens(7, 11), Tokens(17, 11)),
}
OUTPUT = Classes(3)
CHANNELS = 8
NUMBERS: tuple[int, ...] = (2, 1, 3, 5, 4, 7, 0, 12)
SIZES: tuple[Any, ...] = (5, 2, 1, 3, 0, 7)
FLOATS = (0.25, 0.0, 1.5)


@dataclass(frozen=True)
class OperatorCase:
    """A network around one operator.

    Attributes:
        operator: its name.
        setting: the attribute that is not what it is by default, and its value.
        kind: of the input, a key of `INPUTS`.
        occurrence: the operator's own term inside `term`.
        term: the whole network.
        input: what goes into it.
        output: what is asked of it.
        program: the network, compiled.
    """

    operator: str
    setting: str
    kind: str
    occurrence: Term
    term: Term
    input: Input
    output: Output
    program: Program

    def __str__(self) -> str:
        return f"{self.operator}-{self.setting or 'plain'}-{self.kind}"


def other_values(attribute: Attribute) -> tuple[Any, ...]:
    """Return legal values that differ from the default, the likeliest to fit into a network first."""
    if attribute.among:
        values: tuple[Any, ...] = attribute.among
    elif attribute.kind == "string":
        values = ("some/name",)
    elif attribute.kind == "bool":
        values = (True, False)
    else:
        values = {"int": NUMBERS, "size": SIZES, "float": FLOATS}[attribute.kind]
    least = attribute.minimum
    legal = [value for value in values if isinstance(value, str | bool) or least is None or value >= least]
    return tuple(value for value in legal if attribute.default is None or value != attribute.default)


def needed(operator: Operator, without: str = "") -> list[dict[str, Any]]:
    """Return ways to fill in the required attributes."""
    keys = [key for key, attribute in operator.attributes.items() if attribute.required and key != without]
    choices = [other_values(operator.attributes[key])[:2] + (0,) for key in keys]
    return [dict(zip(keys, values, strict=True)) for values in product(*choices)]


def occurrences(operator: Operator, given: dict[str, Any], registry: Registry) -> Iterator[Term]:
    """Yield terms of an operator that obey the declarations, with simple children."""
    for required in needed(operator, *given) if len(given) < 2 else [{}]:
        for children in families(operator, registry):
            try:
                yield registry.normal(operator.name, children, {**required, **given})
            except EcloseError:
                continue


def families(operator: Operator, registry: Registry) -> Iterator[tuple[Term, ...]]:
    """Yield children for a wiring; some want a function of two values first, some a choice of their input."""
    least, most = operator.children
    counts = [least] if most is not None else [max(2, least), least]
    if not operator.is_wiring:
        yield ()
        return
    layer, skip = registry.normal("conv", (), {}), registry.normal("id", (), {})
    for count in counts:
        yield tuple(layer if index % 2 == 0 else skip for index in range(count))
        yield (registry.normal("subtract", (), {}), *(layer if index == 0 else skip for index in range(count - 1)))
    yield tuple(registry.normal("on", (layer,), {"src": index % 2}) for index in range(counts[0]))


def surroundings(occurrence: Term, operator: Operator, registry: Registry) -> Iterator[Term]:
    """Yield networks that hold a term where it may stand."""
    normal = registry.normal
    stem, skip = normal("stem", (), {"channels": CHANNELS}), normal("id", (), {})
    layer = normal("conv", (), {"order": "conv"})
    types = registry.types(occurrence)
    builders = []
    if operator.role == "stem":
        builders = [lambda: occurrence]
    elif operator.role == "head":
        builders = [lambda: normal("Sequential", (stem, occurrence), {})]
    elif types == {"logits"}:
        builders = [lambda: normal("Sequential", (stem, normal("tap", (occurrence,), {"name": "side"})), {})]
    elif operator.inputs == 2 and not operator.is_wiring:
        two = (occurrence, layer, skip, skip, skip)
        builders = [lambda: normal("Sequential", (stem, normal("BinaryTopo", two, {})), {})]
    elif operator.inputs == 2:
        builders = [lambda: normal("Cells", (stem, layer, occurrence), {})]
    else:
        builders = [lambda: normal("Sequential", (stem, occurrence), {})]
        builders.append(lambda: normal("Cells", (stem, layer, normal("darts_cell", (occurrence,), {})), {}))
    for build in builders:
        try:
            yield build()
        except EcloseError:
            continue


def compiled(operator: Operator, given: dict[str, Any], kind: str, registry: Registry) -> OperatorCase | None:
    """Return the first network around an operator with some attributes that compiles, None where there is none."""
    setting = ",".join(f"{key}={value}" for key, value in given.items())
    for input in INPUTS[kind]:
        for occurrence in occurrences(operator, given, registry):
            for term in surroundings(occurrence, operator, registry):
                try:
                    program = compile_term(term, input, OUTPUT, registry=registry)
                except EcloseError:
                    continue
                return OperatorCase(operator.name, setting, kind, occurrence, term, input, OUTPUT, program)
    return None


@cache
def plain_cases() -> tuple[OperatorCase, ...]:
    """Return for every operator of the shared registry a network on every kind of input that it takes."""
    registry = default_registry()
    found = [compiled(operator, {}, kind, registry) for operator in registry for kind in INPUTS]
    return tuple(case for case in found if case is not None)


@cache
def attribute_cases() -> tuple[OperatorCase, ...]:
    """Return for every attribute of every operator networks in which it is not what it is by default.

    Of a number the first value that fits is taken, of a list of words every word.
    """
    registry = default_registry()
    found = []
    for operator in registry:
        kinds = [case.kind for case in plain_cases() if case.operator == operator.name]
        for key, attribute in operator.attributes.items():
            for value in other_values(attribute):
                cases = [compiled(operator, {key: value}, kind, registry) for kind in kinds]
                fitting = [case for case in cases if case is not None]
                found += fitting
                if fitting and not attribute.among and attribute.kind not in ("bool",):
                    break
    return tuple(found)
