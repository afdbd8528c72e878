"""Random small networks as terms, made of every operator of the registry, for tests of meanings.

A term is drawn from the declarations, so a new operator appears in these tests without being named here. Draws whose
shapes do not fit are drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

from eclose.algebra.declarations import Attribute, Operator
from eclose.algebra.errors import ShapeError
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.shapes import Classes, Input, Map, Output, Tokens, Values
from eclose.algebra.terms import Term
from eclose.meanings.program import Program, compile_term

INPUTS: dict[int, Input] = {0: Tokens(8, 11), 1: (3, 16), 2: (3, 10, 9), 3: (2, 8, 8, 9)}
OUTPUTS: dict[int, tuple[Output, ...]] = {
    0: (Classes(5), Tokens(11), Values(2)),
    1: (Classes(5), Map(2)),
    2: (Classes(5), Map(2), Values(3)),
    3: (Classes(4), Map(1)),
}
CHANNELS = 8
LARGEST_VALUE = 8_000  # entries of the largest value of one example
PLAIN_WIRINGS = ("Sequential", "Parallel", "Repeat", "Given", "choice", "pick", "tap", "BinaryTopo")
OF_CELLS = ("Cells", "darts_cell", "node", "on", "hblock")


@dataclass(frozen=True)
class Case:
    """A network that compiles."""

    term: Term
    input: Input
    output: Output
    program: Program


class Drawing:
    """Draws one term.

    Args:
        rng: the source of randomness.
        registry: the operators to draw from.
        choices: whether `choice` and `pick` may occur.
        exclude: operators that are never drawn, e.g. those whose value is random in evaluation.
    """

    def __init__(self, rng: Random, registry: Registry, choices: bool, exclude: frozenset[str]):
        self.rng, self.registry = rng, registry
        banned = exclude if choices else exclude | {"choice", "pick"}
        operators = [op for op in registry if op.name not in banned and drawable(op)]
        self.primitives = [op for op in operators if not op.is_wiring and op.role is None and op.result == "feature"]
        self.unary = [op for op in self.primitives if op.inputs == 1]
        self.binary = [op for op in self.primitives if op.inputs == 2]
        self.wirings = [op for op in operators if op.edges and op.name != "BinaryTopo"]
        self.wirings += [op for op in operators if op.name in PLAIN_WIRINGS]
        self.names = 0

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def attributes(self, operator: Operator) -> dict[str, Any]:
        """Draw some of the attributes; strides mostly stay what they are."""
        given = {}
        for key, attribute in operator.attributes.items():
            if attribute.required or self.rng.random() < 0.25:
                value = self.value(key, attribute)
                if value is not None:
                    given[key] = value
        return given

    def value(self, key: str, attribute: Attribute) -> Any:
        pick = self.rng.choice
        if attribute.among:
            return pick(attribute.among)
        if attribute.kind == "bool":
            return pick((True, False))
        if key == "name":
            return self.name("n")
        small = {
            "kernel": (1, 3, 5),
            "stride": (1, 1, 2),
            "channels": (4, 8),
            "groups": (1, 2, 4),
            "heads": (1, 2, 4),
            "dilation": (1, 2),
            "features": (4, 8),
            "rate": (0.0, 0.3),
            "dropout": (0.0, 0.3),
            "ratio": (1, 2),
            "factor": (2,),
            "n": (1, 2, 3),
            "k": (1, 2),
        }
        if key in small:
            return pick(small[key])
        return None

    def primitive(self, operator: Operator | None = None) -> Term:
        operator = operator or self.rng.choice(self.unary)
        return self.registry.normal(operator.name, (), self.attributes(operator))

    def feature(self, depth: int) -> Term:
        """Draw a term that takes a feature and gives one."""
        if depth <= 0 or self.rng.random() < 0.35:
            return self.primitive()
        return self.wiring(self.rng.choice(self.wirings), depth)

    def wiring(self, operator: Operator, depth: int) -> Term:
        least, most = operator.children
        count = self.rng.randint(least, least + 2) if most is None else least
        attributes = self.attributes(operator)
        children = [self.feature(depth - 1) for _ in range(count)]
        if operator.name == "BinaryTopo":
            function = self.primitive(self.rng.choice(self.binary))
            children = [function, *children[1:3], *[self.registry.normal("id", (), {})] * 2]
        if operator.name == "tap" and self.rng.random() < 0.5:
            children = [self.registry.normal("auxiliary_head", (), {})]
        if operator.name == "pick":
            attributes = {"k": self.rng.randint(1, count), "logits": True, "name": self.name("p")}
        if operator.name == "Given":
            attributes = {"affine": self.rng.random() < 0.5, "pool_norm": self.rng.random() < 0.5}
        return self.registry.normal(operator.name, tuple(children), attributes)

    def cell(self, depth: int) -> Term:
        """Draw a cell of two inputs."""
        nodes = []
        for index in range(self.rng.randint(1, 3)):
            edges = [
                self.registry.normal("on", (self.feature(depth - 1),), {"src": self.rng.randrange(index + 2)})
                for _ in range(2)
            ]
            nodes.append(self.registry.normal("node", tuple(edges), {}))
        return self.registry.normal("darts_cell", tuple(nodes), {})

    def network(self, force: Operator | None, axes: int, depth: int) -> Term:
        """Draw a whole network that contains the operator `force`."""
        normal = self.registry.normal
        if force is not None and force.name in OF_CELLS:
            stems = normal("stem", (), {"channels": CHANNELS}), normal("id", (), {})
            cells = tuple(self.cell(depth - 1) for _ in range(2))
            body = normal("Cells", (*stems, *cells), {})
            if force.name == "hblock":
                tier = normal("node", (normal("on", (self.feature(1),), {"src": 0}),), {})
                block = normal("hblock", (tier, self.feature(0)), {})
                body = normal("Sequential", (stems[0], block), {})
            return normal("Sequential", (body, normal("head", (), {})), {})
        stem, head = normal("stem", (), {"channels": CHANNELS}), normal("head", (), {})
        body = [self.feature(depth)]
        if force is None:
            pass
        elif force.role == "stem":
            stem = normal(force.name, (), {"channels": CHANNELS})
        elif force.role == "head":
            head = normal(force.name, (), self.attributes(force))
        elif force.name == "auxiliary_head":
            body.append(normal("tap", (self.primitive(force),), {"name": "auxiliary"}))
        elif force.is_wiring:
            body.append(self.wiring(force, depth))
        elif force.inputs == 2:
            ident = normal("id", (), {})
            children = (self.primitive(force), self.feature(1), self.feature(1), ident, ident)
            body.append(normal("BinaryTopo", children, {}))
        else:
            body.append(self.primitive(force))
        self.rng.shuffle(body)
        return normal("Sequential", (stem, *body, head), {})


def random_cases(
    seed: int,
    count: int,
    *,
    axes: tuple[int, ...] = (1, 2, 3, 0),
    depth: int = 3,
    choices: bool = True,
    exclude: frozenset[str] = frozenset(),
    registry: Registry | None = None,
    largest: int = 60,
) -> Iterator[Case]:
    """Yield networks that compile; operators take turns to be contained, so that all of them occur."""
    registry = registry if registry is not None else default_registry()
    forced = [op for op in registry if op.name not in exclude and drawable(op) and (choices or not is_choice(op))]
    for index in range(count):
        rng = Random(f"{seed} {index}")
        force = forced[(index * 7 + seed) % len(forced)] if index < 7 * len(forced) else None
        yield drawn(rng, registry, force, axes[index % len(axes)], depth, choices, exclude, largest)


def covering_cases(
    seed: int, *, axes: tuple[int, ...] = (1, 2, 3, 0), choices: bool = True, exclude: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Case]]:
    """Yield for each operator that has a program a small network that contains it."""
    registry = default_registry()
    usable = [op for op in registry if op.name not in exclude and drawable(op)]
    for index, operator in enumerate(usable):
        if is_choice(operator) and not choices:
            continue
        rng = Random(f"{seed} {operator.name}")
        number = axes[index % len(axes)]
        yield operator.name, drawn(rng, registry, operator, number, 1, choices, exclude, 30)


def drawable(operator: Operator) -> bool:
    """Return whether an operator has a program and, as a primitive, needs nothing that only a space can give."""
    needs = any(attribute.required for attribute in operator.attributes.values())
    return "program" in operator.meanings and (operator.is_wiring or not needs)


def is_choice(operator: Operator) -> bool:
    return operator.name in ("choice", "pick")


def drawn(
    rng: Random,
    registry: Registry,
    force: Operator | None,
    axes: int,
    depth: int,
    choices: bool,
    exclude: frozenset[str],
    largest: int,
) -> Case:
    """Draw until a network compiles; operators that need another number of axes get it after some attempts."""
    for attempt in range(4000):
        number = axes if attempt < 200 else rng.choice((0, 1, 2, 3))
        term = Drawing(rng, registry, choices, exclude).network(force, number, depth)
        if term.size > largest:
            continue
        input, output = INPUTS[number], rng.choice(OUTPUTS[number])
        try:
            program = compile_term(term, input, output, registry=registry, policy="adapt")
        except ShapeError:
            continue
        if max(prod(step.shape) for step in program.steps) <= LARGEST_VALUE:
            return Case(term, input, output, program)
    raise AssertionError(f"no network with {force.name if force else 'anything'} could be drawn")
