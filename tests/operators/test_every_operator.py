"""Every registered operator in every meaning, found through the registry, so that a new one needs no new test."""

from __future__ import annotations

import builtins
import copy
import pickle
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import eclose
from eclose.algebra.declarations import TYPES, Operator, resolve
from eclose.algebra.errors import EcloseError, TermError
from eclose.algebra.printing import exact_text
from eclose.algebra.reading import parse, read_exact
from eclose.algebra.registry import default_registry
from eclose.algebra.terms import distinct
from eclose.meanings.cost import program_cost
from eclose.meanings.cost.memory import needed_steps
from eclose.meanings.drawing import draw, text_drawing
from eclose.meanings.graph import duplicate_key, term_graph
from eclose.meanings.numpy import parameters_of, run
from eclose.meanings.program import Program, compile_term
from eclose.meanings.source import program_source
from eclose.meanings.torch.build import build_net
from eclose.meanings.torch.export import exported
from support.operator_cases import (
    INPUTS,
    OperatorCase,
    attribute_cases,
    compiled,
    occurrences,
    other_values,
    plain_cases,
)

REGISTRY = default_registry()
OPERATORS = list(REGISTRY)
WITH_PROGRAM = [operator for operator in OPERATORS if "program" in operator.meanings]
PLAIN, WITH_ATTRIBUTES = plain_cases(), attribute_cases()
CASES = (*PLAIN, *WITH_ATTRIBUTES)
BATCH = 3


def tags_of(case: OperatorCase) -> frozenset[str]:
    return REGISTRY.operator(case.operator).tags


def example(program: Program, batch: int = BATCH) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    if program.input_type == "tokens":
        return torch.randint(0, 11, (batch, *program.input_shape), generator=generator)
    return torch.randn(batch, *program.input_shape, generator=generator, dtype=torch.float64)


def net_of(case: OperatorCase) -> torch.nn.Module:
    """Return the net in float64 with parameters and running statistics that are not the initial ones."""
    torch.manual_seed(3)
    net = build_net(case.program).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        net.train()(example(case.program), taps=True)
    return net.eval()


def values_of(net, *arguments) -> list[torch.Tensor]:
    torch.manual_seed(9)  # noise is random in evaluation too
    output, taps = net(*arguments, taps=True)
    return [output, *taps.values()]


def written(program: Program) -> torch.nn.Module:
    """Return the module of the written source, run where eclose does not exist."""

    def importing(module, *arguments, **options):
        assert module.partition(".")[0] == "torch", f"the text imports {module}"
        return builtins.__import__(module, *arguments, **options)

    namespace = {"__builtins__": {**vars(builtins), "__import__": importing}, "__name__": "written"}
    exec(compile(program_source(program), "written", "exec"), namespace)
    return namespace["Network"]()


def close(found, wanted, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


# Declarations


def test_all_references_of_all_declarations_resolve():
    for operator in OPERATORS:
        assert operator.meanings, f"{operator.name} has no meaning at all"
        for kind, reference in operator.meanings.items():
            assert callable(resolve(reference)), (operator.name, kind)
        if operator.is_wiring:
            assert "graph" in operator.meanings, operator.name


def test_all_references_anywhere_in_the_package_resolve():
    root = Path(eclose.__file__).parent
    found = {
        match
        for file in root.rglob("*.py")
        for match in re.findall(r'"(eclose(?:\.\w+)*:\w[\w.]*)"', file.read_text(encoding="utf-8"))
    }
    assert len(found) > 20
    for reference in sorted(found):
        resolve(reference)


def test_every_operator_describes_itself_and_its_attributes():
    for operator in OPERATORS:
        assert operator.description and "\n" not in operator.description, operator.name
        for key, attribute in operator.attributes.items():
            assert attribute.description, (operator.name, key)
            if attribute.default is not None:
                assert attribute.checked(attribute.default) == attribute.default
        for names in (operator.aliases, operator.spellings):
            for alias, fixed in names.items():
                assert REGISTRY.meant(alias).operator is operator
                assert set(fixed) <= set(operator.attributes)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_terms_with_each_attribute_survive_printing_and_pickling(operator):
    written_ones = [{}, *({key: value} for key, a in operator.attributes.items() for value in other_values(a))]
    for given in written_ones:
        term = next(occurrences(operator, given, REGISTRY))
        for key, value in given.items():
            assert REGISTRY.value(term, key) == value
        assert parse(str(term)) is term
        assert read_exact(exact_text(term)) is term
        assert pickle.loads(pickle.dumps(term)) is term
        assert copy.deepcopy(term) is term
    everything = {key: other_values(a)[0] for key, a in operator.attributes.items()}
    term = next(occurrences(operator, everything, REGISTRY))
    assert parse(str(term)) is term and dict(term.attributes) == everything


def test_defaults_are_left_out_and_every_name_means_its_operator():
    for operator in OPERATORS:
        plain = next(occurrences(operator, {}, REGISTRY))
        defaults = {key: a.default for key, a in operator.attributes.items() if a.default is not None}
        assert REGISTRY.normal(operator.name, plain.children, {**dict(plain.attributes), **defaults}) is plain
        for synonym in operator.synonyms:
            count = operator.counted.get(synonym, len(plain.children))
            children = (plain.children * count)[:count]
            assert REGISTRY.normal(synonym, children, dict(plain.attributes)).name == operator.name
        for alias, fixed in {**operator.aliases, **operator.spellings}.items():
            term = REGISTRY.normal(alias, plain.children, {})
            assert {key: REGISTRY.value(term, key) for key in fixed} == dict(fixed)
            assert parse(str(term)) is term


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_wrong_numbers_of_children_and_wrong_attributes_are_refused(operator):
    plain = next(occurrences(operator, {}, REGISTRY))
    given, children = dict(plain.attributes), plain.children
    least, most = operator.children
    child = REGISTRY.normal("id", (), {})
    if least:
        with pytest.raises(TermError, match=rf"{operator.name} takes .* not {least - 1}"):
            REGISTRY.normal(operator.name, (child,) * (least - 1), given)
    if most is not None:
        with pytest.raises(TermError, match=rf"{operator.name} takes .* not {most + 1}"):
            REGISTRY.normal(operator.name, (child,) * (most + 1), given)
    with pytest.raises(TermError, match="has no attribute 'unheard_of'"):
        REGISTRY.normal(operator.name, children, {**given, "unheard_of": 1})
    for key, attribute in operator.attributes.items():
        wrong = {"int": 1.5, "float": "much", "bool": 1, "string": 3, "size": (1, 2.5)}[attribute.kind]
        with pytest.raises(TermError, match=f"{key} must be"):
            REGISTRY.normal(operator.name, children, {**given, key: wrong})
        if attribute.minimum is not None:
            with pytest.raises(TermError, match=f"{key} must be at least"):
                REGISTRY.normal(operator.name, children, {**given, key: int(attribute.minimum) - 1})
        if attribute.among:
            with pytest.raises(TermError, match=f"{key} must be one of"):
                REGISTRY.normal(operator.name, children, {**given, key: "unheard_of"})
        if attribute.required:
            with pytest.raises(TermError, match=f"{operator.name} needs {key}="):
                REGISTRY.normal(operator.name, children, {k: v for k, v in given.items() if k != key})


@pytest.mark.parametrize("operator", [op for op in OPERATORS if op.is_wiring], ids=lambda operator: operator.name)
def test_children_of_a_type_that_is_not_accepted_are_refused_without_torch(operator):
    registry = REGISTRY.copy()
    for kind in TYPES:
        registry.add(Operator(f"gives_{kind}", "for a test", result=kind))
    plain = next(occurrences(operator, {}, registry))
    for index in range(len(plain.children)):
        for kind in TYPES:
            child = registry.normal(f"gives_{kind}", (), {})
            children = (*plain.children[:index], child, *plain.children[index + 1 :])
            if kind in operator.accepted(index, len(children)):
                assert registry.normal(operator.name, children, dict(plain.attributes)).children[index] is child
            else:
                with pytest.raises(TermError, match=f"child {index + 1}: it gives {kind} where .* is needed"):
                    registry.normal(operator.name, children, dict(plain.attributes))


# Networks


def test_there_is_a_network_for_every_operator_and_attribute():
    kinds = {}
    for case in PLAIN:
        kinds.setdefault(case.operator, set()).add(case.kind)
    assert set(kinds) == {operator.name for operator in WITH_PROGRAM}
    shown = {(case.operator, case.setting.partition("=")[0]) for case in WITH_ATTRIBUTES}
    assert shown == {(operator.name, key) for operator in WITH_PROGRAM for key in operator.attributes}
    for name, found in kinds.items():  # what works on one grid works on every grid
        assert found >= {"1d", "2d", "3d"} or found == {"tokens"}, name
        if REGISTRY.operator(name).role is None:
            assert "tokens" in found, name


def check_torch(case: OperatorCase) -> None:
    """The built net has the inferred shapes, and finite gradients reach the input and every parameter."""
    torch.manual_seed(1)
    net = build_net(case.program).double().train()
    x = example(case.program)
    if x.is_floating_point():
        x.requires_grad_()
    output, taps = net(x, taps=True)
    assert output.shape == (BATCH, *case.program.output_shape)
    for name, value in taps.items():
        assert value.shape == (BATCH, *case.program.shape(case.program.taps[name]))
    values = [output, *taps.values()]
    torch.manual_seed(2)
    loss = sum((value * torch.randn_like(value)).sum() for value in values)
    tags = tags_of(case)
    if loss.grad_fn is None:  # everything is ignored, and nothing has a parameter
        assert "constant" in tags
        return
    loss.backward()
    used = {f"layers.{case.program.steps[index].name}" for index in needed_steps(case.program, taps=True)}
    used |= {"alphas"} if case.program.choices else set()
    for name, parameter in net.named_parameters():
        if name.rpartition(".")[0] not in used:
            continue
        if "constant" in tags and parameter.grad is None:
            assert "stem" in name
            continue
        assert parameter.grad is not None, name
        assert "partial" in tags or parameter.grad.isfinite().all(), name
    if x.requires_grad and "constant" not in tags:
        assert "partial" in tags or (x.grad.isfinite().all() and x.grad.abs().max() > 0)
    if "partial" not in tags:
        assert all(value.isfinite().all() for value in values)


def check_numpy(case: OperatorCase) -> None:
    """The numpy interpreter, which shares no code with torch, gives the same."""
    if "random" in tags_of(case):
        return
    net, x = net_of(case), example(case.program)
    with torch.no_grad():
        wanted = values_of(net, x)
    with np.errstate(all="ignore"):  # functions that are undefined on parts of R
        output, taps = run(case.program, x.numpy(), parameters_of(net), taps=True)
    for found, expected in zip([output, *taps.values()], wanted, strict=True):
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-9, atol=1e-10)


def check_source(case: OperatorCase) -> None:
    """The written module runs without eclose and equals the net."""
    if case.program.choices or case.operator == "pick":
        return
    net, other, x = net_of(case), written(case.program).double(), example(case.program)
    assert list(other.state_dict()) == list(net.state_dict())
    other.load_state_dict(net.state_dict())
    with torch.no_grad():
        close(values_of(other.eval(), x), values_of(net, x))


def check_cost(case: OperatorCase) -> None:
    """Parameters and products are those that torch counts."""
    net = build_net(case.program).eval()
    found = program_cost(case.program)
    assert found.parameters == sum(p.numel() for p in eclose.weights(net).values())
    assert found.alphas == sum(p.numel() for p in eclose.architecture(net).values())
    x = example(case.program, 1)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as flops, torch.no_grad():
        net(x if case.program.input_type == "tokens" else x.float())  # taps are not counted
    assert 2 * found.multiply_adds == flops.get_total_flops()


def check_copies(case: OperatorCase) -> None:
    """A deepcopy and a pickle compute the same and share nothing; a second build has the same names."""
    net, x = net_of(case), example(case.program)
    with torch.no_grad():
        wanted = values_of(net, x)
        for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            close(values_of(other, x), wanted, 0.0)
            addresses = {p.data_ptr() for p in net.parameters()}
            assert not addresses & {p.data_ptr() for p in other.parameters()}
    again = build_net(compile_term(case.term, case.input, case.output, registry=REGISTRY)).double().eval()
    assert list(again.state_dict()) == list(net.state_dict())
    again.load_state_dict(net.state_dict())
    with torch.no_grad():
        close(values_of(again, x), wanted, 0.0)


CHECKS = (check_torch, check_numpy, check_source, check_cost, check_copies)


def check_all(check, cases: Iterable[OperatorCase]) -> None:
    for case in cases:
        try:
            check(case)
        except Exception as error:
            raise AssertionError(f"{case}: {case.term}") from error


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("operator", WITH_PROGRAM, ids=lambda operator: operator.name)
def test_networks_around_every_operator(operator, check):
    cases = [case for case in PLAIN if case.operator == operator.name]
    check_all(check, cases[:1] if check is check_copies else cases)  # copies know nothing of the kind of input


@pytest.mark.parametrize("kinds", [("2d",), pytest.param(tuple(INPUTS), marks=pytest.mark.slow)], ids=["2d", "all"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("operator", [op for op in WITH_PROGRAM if op.attributes], ids=lambda operator: operator.name)
def test_networks_around_every_operator_with_each_attribute(operator, check, kinds):
    cases = [case for case in WITH_ATTRIBUTES if case.operator == operator.name]
    kinds = kinds if any(case.kind in kinds for case in cases) else ("tokens",)
    check_all(check, (case for case in cases if case.kind in kinds))


def test_an_inherited_and_an_explicit_stride_give_the_sizes_rounded_up():
    seen = set()
    for operator in WITH_PROGRAM:
        stride = operator.attributes.get("stride")
        if stride is None or stride.default is not None or operator.is_wiring:
            continue
        for kind in ("1d", "2d", "3d"):
            case = compiled(operator, {"stride": 2}, kind, REGISTRY)
            assert case is not None
            sizes = case.input[1:]
            assert case.program.output_shape[1:] == tuple(-(-n // 2) for n in sizes), case
            given = REGISTRY.normal("Given", (next(occurrences(operator, {}, REGISTRY)),), {"stride": 2})
            term = REGISTRY.normal("Sequential", (case.term.children[0], given), {})
            inherited = compile_term(term, case.input, registry=REGISTRY)
            assert inherited.output_shape == case.program.output_shape
            assert [step.settings for step in inherited.steps] == [step.settings for step in case.program.steps]
        seen.add(operator.name)
    assert {"conv", "max_pool"} <= seen


# Other meanings


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_operator_is_drawn_with_its_name(operator):
    terms = [next(occurrences(operator, {}, REGISTRY))]
    terms += [
        next(occurrences(operator, {key: other_values(a)[0]}, REGISTRY)) for key, a in operator.attributes.items()
    ]
    for term in terms:
        name = str(term).partition("(")[0]
        assert name in "".join(ElementTree.fromstring(draw(term)).itertext())
        assert name in text_drawing(term) or "series" in operator.tags  # a chain of arrows needs no name


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_operator_has_a_graph(operator):
    for term in islice(occurrences(operator, {}, REGISTRY), 1):
        if operator.name == "motifs":
            term = REGISTRY.normal("motifs", (term, term), {})
        graph = term_graph(term)
        assert graph.edges or "identity" in operator.tags
        assert all(edge.source < edge.target for edge in graph.edges)
        assert duplicate_key(term) == duplicate_key(parse(str(term)))


def side_by_side(cases: list[OperatorCase]) -> Program:
    """Return one network with many operators next to each other."""
    branches = []
    for case in cases:
        if case.occurrence not in branches and not tags_of(case) & {"random"}:
            branches.append(case.occurrence)
    flat = [REGISTRY.normal("Sequential", (branch, REGISTRY.normal("global_pool", (), {})), {}) for branch in branches]
    body = REGISTRY.normal("Parallel", tuple(flat), {"merge": "concat"})
    stem = REGISTRY.normal("stem", (), {"channels": 8})
    return compile_term(
        REGISTRY.normal("Sequential", (stem, body), {}), cases[0].input, cases[0].output, registry=REGISTRY
    )


@pytest.mark.parametrize("kind", ["1d", "2d", "3d"])
def test_operators_side_by_side_survive_export(kind):
    suited = []
    for case in PLAIN:
        operator = REGISTRY.operator(case.operator)
        plain = case.input == INPUTS[kind][0] and case.program.output_type == "feature"
        on_a_stem = operator.role is None and operator.inputs != 2 and case.term.name == "Sequential"
        feature = REGISTRY.types(case.occurrence) == {"feature"} and len(case.program.output_shape) > 1
        if plain and on_a_stem and feature:
            suited.append(case)
    assert len({case.operator for case in suited}) > 60
    program = side_by_side(suited)
    net = build_net(program).double().eval()
    x = example(program)
    with torch.no_grad():
        close(exported(net).module()(x), net(x))


def check_export(case: OperatorCase) -> None:
    if "random" in tags_of(case):
        return
    net, x = net_of(case), example(case.program)
    with torch.no_grad():
        close(exported(net).module()(x), net(x))


@pytest.mark.slow
@pytest.mark.parametrize("operator", WITH_PROGRAM, ids=lambda operator: operator.name)
def test_every_network_survives_export(operator):
    for case in CASES:
        if case.operator == operator.name:
            check_export(case)


def test_a_meaning_that_is_missing_is_said():
    with pytest.raises(EcloseError, match="motifs"):
        compile_term(parse("motifs(conv)"), (3, 8, 8), registry=REGISTRY)
    for operator in OPERATORS:
        with pytest.raises(TermError, match="has no 'unheard_of' meaning"):
            operator.meaning("unheard_of")


def test_every_term_of_a_network_is_normal():
    for case in CASES:
        for node in distinct(case.term):
            assert REGISTRY.normal(node.name, node.children, dict(node.attributes)) is node
