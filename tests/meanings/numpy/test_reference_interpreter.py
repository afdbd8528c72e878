"""The numpy meaning against the torch meaning, which shares no code with it."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from eclose.algebra.errors import RequestError, ShapeError
from eclose.algebra.reading import parse
from eclose.algebra.registry import default_registry
from eclose.algebra.shapes import Classes, Tokens
from eclose.meanings.numpy import parameters_of, run
from eclose.meanings.numpy.functions import BINARY as NUMPY_BINARY
from eclose.meanings.numpy.functions import UNARY as NUMPY_UNARY
from eclose.meanings.numpy.layer import Layer
from eclose.meanings.numpy.layers import RULES
from eclose.meanings.program import compile_term
from eclose.meanings.program.formulas import BINARY, UNARY
from eclose.meanings.program.layers import LAYERS
from eclose.meanings.torch.build import build_net
from eclose.meanings.torch.layers import build_layer
from eclose.operations.mixture import MixtureWeights
from support.random_terms import Case, covering_cases, random_cases
from support.single_layers import named, single_layers

# Without functions that make rounding errors grow without bound when they are stacked; each of these is tested alone.
WILD = frozenset({"exp", "sinh", "cosh", "cubic", "square", "atanh", "log", "divide", "square_root", "sinc", "noise"})


def test_the_table_covers_every_kind_of_layer():
    assert set(RULES) == set(LAYERS)
    assert set(NUMPY_UNARY) == set(UNARY)
    assert set(NUMPY_BINARY) == set(BINARY)


@pytest.mark.parametrize("single", single_layers(), ids=named)
def test_one_layer_equals_torch(single):
    kind, settings, shapes = single
    generator = torch.Generator().manual_seed(1)
    module = build_layer(kind, settings, shapes).double().eval()
    for tensor in [*module.parameters(), *module.buffers()]:
        if tensor.is_floating_point():
            with torch.no_grad():
                tensor.copy_(torch.rand(tensor.shape, generator=generator, dtype=torch.float64) + 0.5)
    inputs = [torch.randn((3, *shape), generator=generator, dtype=torch.float64) for shape in shapes]
    with torch.no_grad():
        expected = module(*inputs).numpy(force=True)
    parameters = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    shape = LAYERS[kind].shape(settings, shapes)
    layer = Layer(settings, parameters, shape, np.random.default_rng(0))
    result = RULES[kind](layer, *[x.numpy() for x in inputs])
    assert result.shape == (3, *shape) == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)


def test_noise_is_standard_normal_of_the_subsampled_shape():
    settings = LAYERS["noise"].complete({"stride": (2, 2)})
    layer = Layer(settings, {}, (4, 50, 50), np.random.default_rng(0))
    result = RULES["noise"](layer, np.zeros((4, 4, 99, 100)))
    assert result.shape == (4, 4, 50, 50)
    assert abs(result.mean()) < 0.03 and abs(result.std() - 1.0) < 0.03


def example(case: Case) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    if isinstance(case.input, Tokens):
        return torch.randint(0, case.input.vocab, (2, case.input.length), generator=generator)
    return torch.randn(2, *case.input, generator=generator, dtype=torch.float64)


def trained_a_little(case: Case) -> torch.nn.Module:
    """Return the net in float64 with running statistics and alphas that are not the initial ones."""
    torch.manual_seed(3)
    net = build_net(case.program).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        net.train()(example(case))
    return net.eval()


def assert_equal_to_torch(case: Case) -> None:
    net, x = trained_a_little(case), example(case)
    with torch.no_grad():
        expected, expected_taps = net(x, taps=True)
    result, taps = run(case.program, x.numpy(), parameters_of(net), taps=True)
    assert taps.keys() == expected_taps.keys()
    for found, wanted in [(result, expected), *((taps[name], expected_taps[name]) for name in taps)]:
        np.testing.assert_allclose(found, wanted.numpy(force=True), rtol=1e-9, atol=1e-10, err_msg=str(case.term))


def test_random_networks_equal_torch():
    for case in random_cases(1, 80, exclude=WILD):
        assert_equal_to_torch(case)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_network_with_each_operator_equals_torch(seed):
    seen = set()
    for name, case in covering_cases(seed, exclude=WILD):
        assert_equal_to_torch(case)
        seen.add(name)
    assert {"conv", "attention", "darts_cell", "choice", "hblock"} <= seen


def test_given_and_hard_weights_equal_torch():
    text = (
        'Sequential(stem(channels=4), choice(conv, Sequential(sep_conv, choice(id, avg_pool, name="b")), id, '
        'name="a"), head)'
    )
    program = compile_term(parse(text), (2, 6, 5), Classes(3), registry=default_registry())
    torch.manual_seed(0)
    net = build_net(program).double().eval()
    x = torch.randn(2, 2, 6, 5, dtype=torch.float64)
    soft = {"a": torch.tensor([0.2, 0.5, 0.3]).double(), "b": torch.tensor([0.9, 0.1]).double()}
    state = parameters_of(net)
    weights = {name: value.numpy() for name, value in soft.items()}
    np.testing.assert_allclose(run(program, x.numpy(), state, weights=weights), net(x, weights=soft).detach().numpy())
    for chosen in (0, 1, 2):
        hard = {"a": MixtureWeights(soft["a"], (chosen,)), "b": MixtureWeights(soft["b"], (1,))}
        result = run(program, x.numpy(), state, weights=weights, selected={"a": (chosen,), "b": (1,)})
        np.testing.assert_allclose(result, net(x, weights=hard).detach().numpy(), rtol=1e-10)


def test_bad_requests_say_what_is_wrong():
    program = compile_term(parse("Sequential(stem, head)"), (1, 4, 4), Classes(2), registry=default_registry())
    x = np.zeros((1, 1, 4, 4))
    with pytest.raises(ShapeError, match=r"takes inputs \(N, 1, 4, 4\), not \(1, 1, 4, 5\)"):
        run(program, np.zeros((1, 1, 4, 5)), {})
    with pytest.raises(RequestError, match=r"needs the parameter 'stem_0/conv\.weight'"):
        run(program, x, {})
    with pytest.raises(ShapeError, match="must have shape"):
        run(program, x, {"stem_0/conv.weight": np.zeros((2, 2))})
    with pytest.raises(RequestError, match="no numpy meaning"):
        RULES["custom"](Layer({"module": "mine:Layer"}, {}, (1,), None), x)


def test_importing_the_meaning_imports_neither_torch_nor_numpy():
    code = "import sys, eclose.meanings.numpy; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
