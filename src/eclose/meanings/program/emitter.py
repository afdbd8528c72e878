"""The emitter: folds a term into a flat program without recursion.

Every operator's `"program"` meaning gets a `Site` (its occurrence) and the values it is applied to. A primitive's
meaning is a plain function; a wiring's meaning is a generator that yields the calls of its children and receives their
values, so a term may be 100,000 deep. Nothing here knows a particular operator or a tensor library.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from types import GeneratorType
from typing import Any, NoReturn

from eclose.algebra.declarations import Operator
from eclose.algebra.errors import EcloseError, LimitError, RequestError, ShapeError
from eclose.algebra.paths import below, label
from eclose.algebra.registry import Registry
from eclose.algebra.shapes import Input, Output, Shape, Tokens
from eclose.algebra.terms import Term, refuse_beyond
from eclose.meanings.program.ir import Bundle, ChoiceSite, Guard, Program, Step, Tensor, Value
from eclose.meanings.program.layers import LAYERS

POLICIES = ("reject", "adapt")
STEP_LIMIT = 2_000_000


@dataclass(frozen=True)
class Context:
    """What the surroundings hand down to an occurrence."""

    channels: int | None = None
    stride: int = 1
    affine: bool = True
    pool_norm: bool = False
    conv_bias: bool = False


class Call:
    """A wiring's request to evaluate a term on some values; its value is sent back into the wiring."""

    __slots__ = ("context", "guard", "inputs", "path", "position", "take_stride", "term")

    def __init__(self, term: Term, inputs: tuple[Value, ...], context: Context, path: str, position: str, guard: int):
        self.term, self.inputs, self.context = term, inputs, context
        self.path, self.position, self.guard = path, position, guard
        self.take_stride = True  # False afterwards, where the term had no use for the inherited stride


class Site:
    """One occurrence of an operator, as its meaning sees it."""

    __slots__ = ("_emitter", "_locals", "context", "guard", "operator", "path", "position", "stride_read", "term")

    def __init__(self, emitter: Emitter, operator: Operator, call: Call):
        self._emitter = emitter
        self.operator, self.term, self.context = operator, call.term, call.context
        self.path, self.position, self.guard = call.path, call.position, call.guard
        self.stride_read = False
        self._locals: dict[str, int] = {}

    def value(self, key: str) -> Any:
        """Return an attribute's value: what the term sets, else the default, else None (inherited)."""
        given = self.term.get(key)
        return given if given is not None else self.operator.attributes[key].default

    @property
    def stride(self) -> int:
        """The stride here: an explicit attribute, else the inherited one."""
        self.stride_read = True
        given = self.term.get("stride")
        return given if given is not None else self.context.stride

    def channels(self, x: Tensor) -> int:
        """Return the output channels here: an explicit attribute, else the inherited number, else those of `x`."""
        given = self.term.get("channels")
        if given is not None:
            return int(given)
        return self.context.channels if self.context.channels is not None else x.shape[0]

    @property
    def input(self) -> Input:
        """What goes into the network, for stems and heads."""
        return self._emitter.input

    @property
    def output(self) -> Output | None:
        """What is asked of the network, for heads."""
        return self._emitter.output

    @property
    def vocab(self) -> int | None:
        """The vocabulary of the network's token input."""
        source = self._emitter.input
        return source.vocab if isinstance(source, Tokens) else None

    @property
    def policy(self) -> str:
        """What to do where shapes differ at a merge."""
        return self._emitter.policy

    def layer(
        self, kind: str, /, *inputs: Tensor, local: str | None = None, type: str = "feature", **settings: Any
    ) -> Tensor:
        """Emit one layer of this occurrence and return its output."""
        known = LAYERS.get(kind)
        if known is None:
            raise RequestError(f"operator {self.operator.name!r} emits the unknown layer kind {kind!r}")
        try:
            settings = known.complete(settings)
            shape = known.shape(settings, tuple(x.shape for x in inputs))
        except ShapeError as error:
            self.fail(str(error))
        name = local or kind
        count = self._locals.get(name, 0)
        self._locals[name] = count + 1
        name = below(self.path, name if count == 0 else f"{name}_{count}")
        return self._emitter.step(
            Step(kind, settings, tuple(x.index for x in inputs), shape, name, self.operator.name, self.guard, type)
        )

    def child(self, index: int, *inputs: Value, copy: int | None = None, **changes: Any) -> Call:
        """Return the call of child `index`; `copy` tells repeated evaluations of one child apart."""
        term = self.term.children[index]
        return Call(
            term,
            inputs,
            replace(self.context, **changes) if changes else self.context,
            below(self.path, label(term.name, index if copy is None else copy)),
            below(self.position, label(term.name, index)),
            self.guard,
        )

    def helper(self, name: str, *inputs: Value, local: str, **attributes: Any) -> Call:
        """Return the call of another operator on behalf of this one (e.g. a cell's preprocessing)."""
        term = Term(name, (), attributes)
        return Call(term, inputs, replace(self.context, stride=1), below(self.path, local), self.position, self.guard)

    def alternative(self, index: int, choice: str, *inputs: Value) -> Call:
        """Return the call of alternative `index` of a choice: its layers are needed only where it has a weight."""
        call = self.child(index, *inputs)
        call.guard = self._emitter.guard(Guard(self.guard, choice, index))
        return call

    def choice(self, site: ChoiceSite) -> None:
        """Register a choice; occurrences that share a name must agree."""
        self._emitter.choice(site, self)

    def tap(self, name: str, value: Tensor) -> None:
        """Register a side output."""
        self._emitter.tap(name, value, self)

    def droppable(self, value: Value) -> None:
        """Mark the output of an operation on an edge, which drop-path may drop while training."""
        if isinstance(value, Tensor) and value.type == "feature":
            self._emitter.droppable.append(value.index)

    def is_zero(self, value: Tensor) -> bool:
        """Return whether a value is zero by construction."""
        return value.index > 0 and self._emitter.steps[value.index - 1].layer == "zero"

    def fail(self, message: str) -> NoReturn:
        """Raise a located error."""
        raise ShapeError(f"at {self.path or self.operator.name}: {message}")

    def one(self, value: Value, use: str = "a feature") -> Tensor:
        """Return a value that must be a single tensor, or fail saying what came instead."""
        if not isinstance(value, Tensor):
            self.fail(f"a mixture of {' and '.join(sorted(value.parts))} came where {use} is needed")
        return value


Meaning = Generator[Call, Value, Value]


class Emitter:
    """Collects the steps of one program."""

    def __init__(self, registry: Registry, input: Input, output: Output | None, policy: str):
        if policy not in POLICIES:
            raise RequestError(f"policy must be 'reject' or 'adapt', not {policy!r}")
        self.registry, self.input, self.output, self.policy = registry, input, output, policy
        self.steps: list[Step] = []
        self.guards: list[Guard] = []
        self.choices: dict[str, ChoiceSite] = {}
        self.taps: dict[str, int] = {}
        self.droppable: list[int] = []
        self._guard_index: dict[Guard, int] = {}
        self._meanings: dict[str, Any] = {}
        self._names: set[str] = set()

    def step(self, step: Step) -> Tensor:
        """Add a step and return its output."""
        if len(self.steps) >= STEP_LIMIT:
            raise LimitError(f"this network has more than {STEP_LIMIT:,} layers")
        if step.name in self._names:
            raise ShapeError(f"two layers are named {step.name!r}; this is a fault of operator {step.operator!r}")
        self._names.add(step.name)
        self.steps.append(step)
        return Tensor(len(self.steps), step.shape, step.type)

    def guard(self, guard: Guard) -> int:
        """Return the index of a guard."""
        found = self._guard_index.get(guard)
        if found is None:
            found = self._guard_index[guard] = len(self.guards)
            self.guards.append(guard)
        return found

    def choice(self, new: ChoiceSite, site: Site) -> None:
        """Register a choice site."""
        known = self.choices.setdefault(new.name, new)
        if (known.kind, known.alternatives, known.keep) != (new.kind, new.alternatives, new.keep):
            site.fail(
                f"{new.kind} {new.name!r} has {new.alternatives} alternatives (keeping {new.keep}) here and is a "
                f"{known.kind} of {known.alternatives} (keeping {known.keep}) elsewhere: one name is one decision"
            )

    def tap(self, name: str, value: Tensor, site: Site) -> None:
        """Register a side output."""
        if name in self.taps:
            site.fail(f"two taps are named {name!r}")
        self.taps[name] = value.index

    def run(self, term: Term, value: Value, context: Context) -> Value:
        """Emit the layers of a term applied to a value; an explicit stack stands for the recursion."""
        stack: list[tuple[Meaning, Call, Site]] = []
        call: Call | None = Call(term, (value,), context, "", "", -1)
        result: Value | None = None
        while call is not None or stack:
            if call is not None:
                site, started = self._start(call)
                if isinstance(started, GeneratorType):
                    stack.append((started, call, site))
                    call, result = self._advance(stack, None)
                else:
                    call.take_stride = site.stride_read
                    call, result = None, started
            else:
                call, result = self._advance(stack, result)
        assert result is not None
        return result

    def _start(self, call: Call) -> tuple[Site, Any]:
        name = call.term.name
        operator = self.registry.operator(name)
        meaning = self._meanings.get(name)
        if meaning is None:
            meaning = self._meanings[name] = operator.meaning("program")
        site = Site(self, operator, call)
        inputs = call.inputs
        if operator.inputs is not None and len(inputs) > operator.inputs:
            inputs = inputs[len(inputs) - operator.inputs :]  # a chain inside a cell of two inputs sees the last one
        if operator.inputs is not None and len(inputs) < operator.inputs:
            site.fail(f"{name} takes {operator.inputs} inputs and is given {len(inputs)}")
        if not operator.is_wiring:
            inputs = tuple(self._usable(site, value) for value in inputs)
        return site, meaning(site, *inputs)

    @staticmethod
    def _usable(site: Site, value: Value) -> Tensor:
        tensor = site.one(value)
        if tensor.type in ("attention", "kernel", "logits"):
            article = "an" if tensor.type == "attention" else "a" if tensor.type == "kernel" else ""
            site.fail(f"{article} {tensor.type} came where a feature is needed".replace("  ", " ").strip())
        return tensor

    @staticmethod
    def _advance(stack: list[tuple[Meaning, Call, Site]], value: Value | None) -> tuple[Call | None, Value | None]:
        generator = stack[-1][0]
        try:
            return (generator.send(value) if value is not None else next(generator)), None
        except StopIteration as stop:
            stack.pop()
            return None, stop.value


def compile_term(
    term: Term,
    input: Input,
    output: Output | None = None,
    *,
    registry: Registry,
    policy: str = "reject",
    context: Mapping[str, Any] | None = None,
) -> Program:
    """Return the flat program of a term.

    Args:
        term: a normalised term.
        input: `(C, *spatial)` or `Tokens(length, vocab)`.
        output: what heads give where the term does not say.
        registry: the operators.
        policy: what happens where shapes differ at a merge: `"reject"` is a located error, `"adapt"` inserts adapters.
        context: what the whole term inherits (`channels`, `stride`, `affine`, `pool_norm`).
    """
    refuse_beyond(term)
    emitter = Emitter(registry, input, output, policy)
    tokens = isinstance(input, Tokens)
    shape: Shape = (input.length,) if isinstance(input, Tokens) else input
    value = emitter.run(term, Tensor(0, shape, "tokens" if tokens else "feature"), Context(**(context or {})))
    if isinstance(value, Bundle):
        raise ShapeError(f"the network ends in a mixture of {' and '.join(sorted(value.parts))}")
    if value.type in ("attention", "kernel"):
        raise ShapeError(f"the network ends in {'an' if value.type == 'attention' else 'a'} {value.type}")
    return Program(
        input_shape=shape,
        input_type="tokens" if tokens else "feature",
        steps=tuple(emitter.steps),
        output=value.index,
        output_type=value.type,
        taps=emitter.taps,
        guards=tuple(emitter.guards),
        choices=emitter.choices,
        droppable=tuple(emitter.droppable),
    )


__all__ = ["Call", "Context", "EcloseError", "Emitter", "Meaning", "Site", "compile_term"]
