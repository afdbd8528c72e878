"""Written source against the built network: run where eclose cannot be imported, with the same weights."""

import ast
import builtins
from itertools import chain

import pytest
import torch

import eclose.spaces
from eclose.algebra.errors import EcloseError, RequestError
from eclose.algebra.reading import parse
from eclose.algebra.registry import default_registry
from eclose.algebra.shapes import Classes, Map, Tokens
from eclose.meanings.program import Program, compile_term
from eclose.meanings.program.completion import completed
from eclose.meanings.program.layers import LAYERS
from eclose.meanings.source import program_source, source
from eclose.meanings.source.layers import RULES, Layer
from eclose.meanings.torch.build import build, build_net
from eclose.meanings.torch.layers import build_layer
from support.own_layers import CUSTOM
from support.random_terms import covering_cases, random_cases
from support.single_layers import named, single_layers

# Functions that blow values up until no digit of two correct answers need agree; each is tested alone as a layer.
WILD = frozenset({"exp", "sinh", "cosh", "cubic", "square", "atanh", "log", "divide", "square_root"})


def module_of(text, name="Network"):
    """Return the class that a text defines, run where eclose does not exist."""

    def importing(module, *arguments, **options):
        assert module.partition(".")[0] == "torch", f"the text imports {module}"
        return builtins.__import__(module, *arguments, **options)

    namespace = {"__builtins__": {**vars(builtins), "__import__": importing}, "__name__": "written"}
    exec(compile(text, "written", "exec"), namespace)
    return namespace[name]


def example(program: Program) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    if program.input_type == "tokens":
        return torch.randint(0, 10, (2, *program.input_shape), generator=generator)
    return torch.randn(2, *program.input_shape, generator=generator, dtype=torch.float64)


def assert_equal(program: Program, text: str):
    ast.parse(text)
    assert "eclose" not in text
    torch.manual_seed(3)
    net = build_net(program).double()
    torch.manual_seed(3)
    written = module_of(text)().double()
    state, fresh = net.state_dict(), written.state_dict()
    assert list(state) == list(fresh)
    for key, value in state.items():
        assert torch.equal(value, fresh[key]), "the same seed gives the same initial weights"
    x = example(program)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        net.train()(x)
        written.load_state_dict(net.state_dict())
        torch.manual_seed(5)  # noise is random in evaluation too
        expected, taps = net.eval()(x, taps=True)
        torch.manual_seed(5)
        result, found = written.eval()(x, taps=True)
        torch.manual_seed(5)
        expected_alone = net(x)
        torch.manual_seed(5)
        alone = written(x)
    assert found.keys() == taps.keys()
    for one, other in [(result, expected), (alone, expected_alone), *((found[name], taps[name]) for name in taps)]:
        assert one.shape == other.shape
        assert other.isfinite().all(), "NaN would prove nothing"
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_every_kind_of_layer_is_written():
    assert set(RULES) == set(LAYERS)


@pytest.mark.parametrize("single", single_layers(), ids=named)
def test_one_layer_equals_the_built_one(single):
    kind, settings, shapes = single
    generator = torch.Generator().manual_seed(1)
    module = build_layer(kind, settings, shapes).double().eval()
    for tensor in [*module.parameters(), *module.buffers()]:
        if tensor.is_floating_point():
            with torch.no_grad():
                tensor.copy_(torch.rand(tensor.shape, generator=generator, dtype=torch.float64) + 0.5)
    inputs = [torch.randn((3, *shape), generator=generator, dtype=torch.float64) for shape in shapes]
    written = RULES[kind](Layer(settings, shapes, LAYERS[kind].shape(settings, shapes)))
    arguments = [f"x{index}" for index in range(len(shapes))]
    call = written.call.format(*arguments, layer="self.layer")
    from eclose.meanings.source.helpers import helper_texts
    from eclose.meanings.source.writing import HEADER

    made = [f"        self.layer = {written.module}"] if written.module else []
    lines = ["class One(nn.Module):", "    def __init__(self):", "        super().__init__()", *made]
    lines += [f"    def forward(self, {', '.join(arguments)}):", f"        return {call}"]
    text = "\n\n".join([HEADER, *helper_texts(written.helpers), "\n".join(lines)])
    one = module_of(text, "One")().double().eval()
    one.load_state_dict({f"layer.{key}": value for key, value in module.state_dict().items()})
    with torch.no_grad():
        torch.testing.assert_close(one(*inputs), module(*inputs), rtol=1e-12, atol=1e-12, equal_nan=True)


def test_random_networks_equal_the_built_ones():
    cases = random_cases(5, 60, choices=False, exclude=WILD)
    covering = (case for _, case in covering_cases(4, choices=False, exclude=WILD))
    for case in chain(cases, covering):
        assert_equal(case.program, program_source(case.program, about=str(case.term)))


@pytest.mark.slow
def test_many_random_networks_equal_the_built_ones():
    for case in random_cases(11, 400, choices=False, exclude=WILD, largest=120):
        assert_equal(case.program, program_source(case.program))


@pytest.mark.parametrize("name", [space.name for space in eclose.spaces.SPACES])
def test_a_sample_of_every_space_equals_the_built_network(name):
    space = eclose.spaces.space(name)
    registry = default_registry()
    input = space.input if isinstance(space.input, Tokens) else (space.input[0], *(16 for _ in space.input[1:]))
    options = {key: 4 for key in ("channels",) if key in space.options}
    for seed in range(20):  # some activations are undefined on parts of their input, and NaN proves nothing
        whole = space.network(space.sample(seed), input=input, output=space.output, **options)
        program = compile_term(whole, input, space.output, registry=registry)
        torch.manual_seed(3)
        if build_net(program).double()(example(program)).isfinite().all():
            break
    else:
        raise AssertionError("no sample has a finite output")
    text = source(whole, input=input, output=space.output, registry=registry)
    assert_equal(program, text)


def test_the_source_of_a_term_has_the_shape_and_names_of_the_built_network():
    term = parse("Residual(conv(kernel=3), id, conv(kernel=3))")
    text = source(term, input=(3, 8, 8), output=Classes(10), name="Small")
    small = module_of(text, "Small")()
    net = build(term, input=(3, 8, 8), classes=10)
    assert {key: value.shape for key, value in small.state_dict().items()} == {
        key: value.shape for key, value in net.state_dict().items()
    }
    assert f"{sum(p.numel() for p in net.parameters()):,} parameters" in text
    assert sum("nn.Conv2d" in line for line in text.splitlines()) == 3
    assert text.count("class ") == 1 and "def " in text  # no helper that is not used


def test_side_outputs_are_computed_only_when_asked_for():
    term = parse('Sequential(stem, tap(auxiliary_head(classes=3), name="a\\"\\u00fcx"), conv, tap(id, name="b"), head)')
    text = source(term, input=(3, 16, 16), output=Classes(4))
    net = module_of(text)().eval()
    calls = []
    for key, layer in net.layers.items():
        layer.register_forward_hook(lambda *_, key=key: calls.append(key))
    x = torch.randn(2, 3, 16, 16)
    assert net(x).shape == (2, 4)
    assert not any("tap" in key for key in calls)
    output, taps = net(x, taps=True)
    assert output.shape == (2, 4) and {key: tuple(value.shape) for key, value in taps.items()} == {
        'a"üx': (2, 3),
        "b": (2, 16, 16, 16),
    }
    assert any("tap" in key for key in calls)


@pytest.mark.parametrize("name", ["1x", "class", "", "a b", "None", "torch", "nn", "F", "attention", "super", 3])
def test_a_name_that_no_class_can_have_is_refused(name):
    with pytest.raises(RequestError):
        source(parse("conv"), input=(3, 8, 8), output=Classes(2), name=name)


@pytest.mark.parametrize(
    "text",
    [
        'choice(conv, id, name="a")',
        "choice(conv, id)",
        "pick(conv, id, k=1)",
        'pick(conv, id, k=2, name="b", logits=true)',
    ],
)
def test_open_choices_are_refused(text):
    with pytest.raises(EcloseError, match="is open"):
        source(parse(text), input=(3, 8, 8), output=Classes(2))


def test_a_layer_of_the_users_own_is_refused_by_its_place():
    registry = default_registry().copy()
    registry.add(CUSTOM)
    with pytest.raises(RequestError, match=r"at mine_1.*'torch\.nn:Identity'"):
        source(parse("Sequential(stem, mine, head)", registry), input=(3, 8, 8), output=Classes(2), registry=registry)


def test_motifs_are_no_network():
    with pytest.raises(EcloseError):
        source(parse("motifs(conv)"), input=(3, 8, 8), output=Classes(2))


def test_a_long_chain_is_written_with_one_variable():
    chain_of_relu = parse("Repeat(Residual(relu, id, tanh), n=400)")
    text = source(chain_of_relu, input=(2, 4, 4), output=Map(1))
    assert len({line.split("=")[0].strip() for line in text.splitlines() if line.startswith("        x")}) == 2
    program = compile_term(
        completed(chain_of_relu, (2, 4, 4), Map(1), default_registry()),
        (2, 4, 4),
        Map(1),
        registry=default_registry(),
    )
    assert_equal(program, text)


def test_a_wide_sum_compiles():
    registry = default_registry()
    branch = registry.normal("tanh", (), {})
    wide = registry.normal("Parallel", (branch,) * 3000, {})
    program = compile_term(completed(wide, (2, 2), Classes(2), registry), (2, 2), Classes(2), registry=registry)
    assert_equal(program, program_source(program))


def test_five_thousand_layers_deep():
    registry = default_registry()
    term = registry.normal("tanh", (), {})
    for _ in range(1250):
        term = registry.normal(
            "Residual", (registry.normal("channel_norm", (), {}), registry.normal("id", (), {}), term), {}
        )
        term = registry.normal("Sequential", (term, registry.normal("relu", (), {})), {})
    program = compile_term(completed(term, (2, 4), Classes(2), registry), (2, 4), Classes(2), registry=registry)
    assert len(program.steps) > 3500
    text = source(term, input=(2, 4), output=Classes(2))
    assert max(len(line) - len(line.lstrip()) for line in text.splitlines()) <= 16
    net, written = build_net(program).double(), module_of(text)().double()
    state = net.state_dict()
    assert list(state) == list(written.state_dict())
    with torch.no_grad():
        for key, value in written.state_dict(keep_vars=True).items():  # load_state_dict is quadratic in the layers
            value.copy_(state[key])
        x = example(program)
        torch.testing.assert_close(written.eval()(x), net.eval()(x), rtol=1e-10, atol=1e-10)
