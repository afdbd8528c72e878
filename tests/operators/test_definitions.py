"""Operators against their definitions in the literature, written by hand, in float64 with the same weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from eclose.algebra.errors import ShapeError
from eclose.algebra.reading import parse
from eclose.algebra.registry import default_registry
from eclose.algebra.shapes import Classes
from eclose.meanings.program import compile_term
from eclose.meanings.torch.build import build
from eclose.operators.wirings import EDGES
from support.definitions import (
    AuxiliaryHead,
    FactorizedReduce,
    ReductionThenNormal,
    ResidualDown,
    dil_conv,
    relu_conv_bn,
    sep_conv,
)

SIZES = [(7, 9), (8, 6), (8, 9)]
REGISTRY = default_registry()


def agree(text: str, reference: nn.Module, shape: tuple[int, ...], **options) -> nn.Module:
    """Assert that a term is a module, training and evaluating, with the module's weights in the order of its layers."""
    torch.manual_seed(0)
    net, reference = build(parse(text), input=shape, **options).double(), reference.double()
    mine, theirs = net.state_dict(), reference.state_dict()
    assert [tuple(value.shape) for value in mine.values()] == [tuple(value.shape) for value in theirs.values()]
    fresh = {
        key: torch.randn_like(value) if value.is_floating_point() and "running" not in key else value
        for key, value in theirs.items()
    }
    reference.load_state_dict(fresh)
    net.load_state_dict(dict(zip(mine, fresh.values(), strict=True)))
    x = torch.randn(3, *shape, dtype=torch.float64)
    for training in (True, False):  # the second sees the running statistics of the first
        torch.manual_seed(4)
        found = net.train(training)(x)
        torch.manual_seed(4)
        torch.testing.assert_close(found, reference.train(training)(x), rtol=1e-10, atol=1e-10)
    return net


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        """Return its value."""
        return self.function(x)


# The convolution family


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5])
def test_convolutions_of_darts(size, stride, kernel):
    shape, given = (4, *size), {"context": {"stride": stride, "channels": 6}}
    agree(f"sep_conv_{kernel}x{kernel}", sep_conv(4, 6, kernel, stride), shape, **given)
    agree(f"dil_conv_{kernel}x{kernel}", dil_conv(4, 6, kernel, stride), shape, **given)
    agree(f"sep_conv(kernel={kernel}, stride={stride})", sep_conv(4, 4, kernel, stride), shape)
    without = {"context": {"stride": stride, "affine": False}}
    agree(f"sep_conv_{kernel}x{kernel}", sep_conv(4, 4, kernel, stride, affine=False), shape, **without)
    agree(f"nor_conv_{kernel}x{kernel}", relu_conv_bn(4, 6, kernel, stride), shape, **given)
    agree("nor_conv_1x1", relu_conv_bn(4, 4, 1, stride, affine=False), shape, **without)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stride", [1, 2])
def test_pools_skips_zeros_and_noise(size, stride):
    shape, given = (4, *size), {"context": {"stride": stride}}
    mean = nn.AvgPool2d(3, stride, 1, count_include_pad=False)
    agree("max_pool_3x3", nn.MaxPool2d(3, stride, 1), shape, **given)
    agree("avg_pool_3x3", mean, shape, **given)
    normed = {"context": {"stride": stride, "pool_norm": True}}
    for text, pool in (("max_pool_3x3", nn.MaxPool2d(3, stride, 1)), ("avg_pool_3x3", mean)):
        agree(text, nn.Sequential(pool, nn.BatchNorm2d(4, affine=False)), shape, **normed)
    agree("skip_connect", nn.Identity() if stride == 1 else FactorizedReduce(4, 4), shape, **given)
    agree("none", Call(lambda x: 0 * x[:, :, ::stride, ::stride]), shape, **given)
    agree("noise", Call(lambda x: torch.randn_like(x[:, :, ::stride, ::stride])), shape, **given)


@pytest.mark.parametrize("size", SIZES)
def test_blocks_that_halve_the_resolution(size):
    shape = (4, *size)
    agree("factorized_reduce", FactorizedReduce(4, 4), shape)
    agree("factorized_reduce(channels=7)", FactorizedReduce(4, 7), shape)
    agree("factorized_reduce", FactorizedReduce(4, 6, affine=False), shape, context={"channels": 6, "affine": False})
    agree("resBlock", ResidualDown(4, 8), shape)
    agree("down(channels=5)", ResidualDown(4, 5), shape)


def test_even_sizes_need_no_padding_in_a_factorized_reduce():
    net = build(parse("factorized_reduce"), input=(4, 8, 6)).double().eval()
    x = torch.randn(2, 4, 8, 6, dtype=torch.float64)
    even, odd = (net.state_dict()[f"layers.{half}.weight"] for half in ("even", "odd"))
    positive = functional.relu(x)
    halves = [functional.conv2d(positive, even, stride=2), functional.conv2d(positive[:, :, 1:, 1:], odd, stride=2)]
    torch.testing.assert_close(net(x), torch.cat(halves, 1) / math.sqrt(1 + 1e-5))


@pytest.mark.parametrize("size", SIZES)
def test_convolutions_in_other_orders(size):
    shape = (4, *size)
    plain = nn.Conv2d(4, 4, 3, padding=1, bias=False)
    agree("conv3x3o", plain, shape)
    agree("conv1x1o", nn.Conv2d(4, 4, 1, bias=False), shape)
    agree("dconv3x3o", nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), shape)
    agree("conv3x3_bn_relu", nn.Sequential(plain, nn.BatchNorm2d(4), nn.ReLU()), shape)
    layer = nn.Sequential(nn.Hardswish(), plain, nn.LayerNorm((4, *size)))
    agree('conv(activation="hardswish", norm="layer")', layer, shape)
    first = nn.Sequential(nn.InstanceNorm2d(4, affine=True), nn.SiLU(), nn.Conv2d(4, 6, 3, 2, 1))
    text = 'conv(order="norm-act-conv", norm="instance", activation="silu", channels=6, stride=2, bias=true)'
    agree(text, first, shape)
    agree("conv(groups=2, dilation=2)", nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 3, 1, 2, 2, 2, False), bn()), shape)
    axial = (nn.Conv2d(4, 4, (1, 7), (1, 2), (0, 3), bias=False), nn.Conv2d(4, 4, (7, 1), (2, 1), (3, 0), bias=False))
    agree("conv_7x1_1x7(stride=2)", nn.Sequential(nn.ReLU(), *axial, bn()), shape)
    biased = nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4, affine=False))
    agree("nor_conv_3x3", biased, shape, context={"affine": False, "conv_bias": True})  # NAS-Bench-201's supernet


def bn(channels: int = 4) -> nn.Module:
    return nn.BatchNorm2d(channels)


@pytest.mark.parametrize("size", SIZES)
def test_stems_and_heads(size):
    stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), bn(16))
    agree("stem", stem, (3, *size))
    first = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, bias=False), bn(4), nn.ReLU(), nn.Conv2d(4, 8, 3, 2, 1, bias=False))
    agree("stem0(channels=8)", nn.Sequential(first, bn(8)), (3, *size))
    second = nn.Sequential(nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1, bias=False), bn(8))
    agree("stem1(channels=8)", second, (8, *size))
    mean = Call(lambda x: x.mean((2, 3)))
    agree("Sequential(stem, head)", nn.Sequential(stem, mean, nn.Linear(16, 5)), (3, *size), classes=5)
    whole = nn.Sequential(stem, bn(16), nn.ReLU(), mean, nn.Linear(16, 5))
    agree("Sequential(stem, head(norm=true))", whole, (3, *size), classes=5)
    for text, stride, norm in (("auxiliary_head", 3, True), ("auxiliary_head_imagenet", 2, False)):
        net = build(parse(f'tap({text}, name="aux")'), input=(4, 8, 8), classes=3).double()
        reference = AuxiliaryHead(16, 3, stride, norm).double()
        values = [v for key, v in net.state_dict().items() if ".tap_" in key]
        reference.load_state_dict(dict(zip(reference.state_dict(), values, strict=True)))
        x = torch.randn(2, 4, 8, 8, dtype=torch.float64)
        feature = build(parse("stem"), input=(4, 8, 8)).double()
        stems = [v for key, v in net.state_dict().items() if ".stem_" in key]
        feature.load_state_dict(dict(zip(feature.state_dict(), stems, strict=True)))
        with torch.no_grad():
            wanted = reference.eval()(feature.eval()(x))
            torch.testing.assert_close(net.eval()(x, taps=True)[1]["aux"], wanted, rtol=1e-10, atol=1e-10)


# Functions

BETA = 0.7
UNARY = {
    "id": lambda x: x,
    "neg": lambda x: -x,
    "abs": abs,
    "square": lambda x: x**2,
    "cubic": lambda x: x**3,
    "square_root": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "mconst": lambda x: BETA * x,
    "aconst": lambda x: BETA + x,
    "log": lambda x: math.log(abs(x) + 1e-6),
    "exp": math.exp,
    "sin": math.sin,
    "cos": math.cos,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "atanh": lambda x: math.atanh(x) if -1 < x < 1 else math.nan,
    "sinc": lambda x: math.sin(math.pi * x) / (math.pi * x) if x else 1.0,
    "umax": lambda x: max(x, 0.0),
    "umin": lambda x: min(x, 0.0),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "logexp": lambda x: math.log(1 + math.exp(x)),
    "gaussian": lambda x: math.exp(-(x**2)),
    "erf": math.erf,
    "const": lambda x: BETA,
}
BINARY = {
    "add": lambda x, y: x + y,
    "multi": lambda x, y: x * y,
    "sub": lambda x, y: x - y,
    "div": lambda x, y: x / (y + 1e-6),
    "bmax": max,
    "bmin": min,
    "bsigmoid": lambda x, y: y / (1 + math.exp(-x)),
    "bgaussian_sq": lambda x, y: math.exp(-BETA * (x - y) ** 2),
    "bgaussian_abs": lambda x, y: math.exp(-BETA * abs(x - y)),
    "wavg": lambda x, y: BETA * x + (1 - BETA) * y,
}
POINTS = [-3.0, -1.5, -0.9, -0.25, -1e-3, 0.0, 1e-3, 0.25, 0.5, 0.9, 1.0, 1.5, 3.0, 12.0]


def values_of(text: str, points: list[float]) -> list[float]:
    net = build(parse(text), input=(1, len(points))).double().eval()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            assert name.endswith("beta") and parameter.shape == (1, 1) and parameter.eq(1).all()
            parameter.fill_(BETA)
        return net(torch.tensor(points, dtype=torch.float64)[None, None])[0, 0].tolist()


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_of_the_activation_space(name):
    points = [x for x in POINTS if not (name == "atanh" and abs(x) == 1)]  # a pole, where nothing is promised
    wanted = [UNARY[name](x) for x in points]
    assert values_of(f"UnaryTopo({name})", points) == pytest.approx(wanted, rel=1e-12, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_of_the_activation_space(name):
    wanted = [BINARY[name](2 * x, x * x) for x in POINTS]
    # The two operands are functions of the one input that is there: a twice, and its square.
    found = values_of(f"BinaryTopo({name}, BinaryTopo(add, id, id, id, id), square, id, id)", POINTS)
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_found_functions_of_the_literature():
    assert values_of("UnaryTopo(UnaryTopo(umax))", POINTS) == [max(x, 0.0) for x in POINTS]
    swish = "BinaryTopo(bsigmoid, UnaryTopo(mconst), UnaryTopo(id), id, id)"
    wanted = [x / (1 + math.exp(-BETA * x)) for x in POINTS]
    assert values_of(swish, POINTS) == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    inner = "BinaryTopo(bsigmoid, neg, umin, id, id), BinaryTopo(bmin, umax, erf, id, id)"
    wanted = [BETA * UNARY["sigmoid"](-x) * min(x, 0.0) + (1 - BETA) * min(max(x, 0.0), math.erf(x)) for x in POINTS]
    assert values_of(f"BinaryTopo(wavg, {inner}, id, id)", POINTS) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_logexp_does_not_overflow():
    assert values_of("logexp", [1000.0, -1000.0]) == [1000.0, 0.0]


# Wirings

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
TABLE = {  # source 1, sink the largest; the order is that of the arguments
    "Linear1": "12",
    "Linear2": "12 23",
    "Linear3": "12 23 34",
    "Linear4": "12 23 34 45",
    "Residual2": "12 13 23",
    "Residual": "12 13 23",
    "Residual3": "12 23 14 34",
    "Diamond2": "12 13 24 34",
    "Diamond": "12 13 24 34",
    "Diamond3": "12 13 24 35 46 56",
    "DiamondMid": "12 13 23 24 34",
    "Cell": "12 13 23 14 24 34",
    "Dense2": "12",
    "Dense3": "12 13 23",
    "Dense4": "12 13 23 14 24 34",
    "Dense5": "12 13 23 14 24 34 15 25 35 45",
    "DownsampleBlock": "12 23",
    "UnaryTopo": "12",
}


def edges_of(name: str) -> list[tuple[int, int]]:
    return [(int(pair[0]), int(pair[1])) for pair in TABLE[name].split()]


def gain(text: str) -> float:
    """Return the factor of a linear term whose i-th `mconst` child multiplies by the i-th prime."""
    net = build(parse(text), input=(1, 1)).double()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            place = name.partition("mconst_")[2].partition("/")[0]
            parameter.fill_(PRIMES[int(place)])
        return net(torch.ones(1, 1, 1, dtype=torch.float64)).item()


def paths(edges: list[tuple[int, int]], factors: tuple[int, ...]) -> int:
    reached = {1: 1}
    for end in range(2, max(end for _, end in edges) + 1):
        incoming = (reached[a] * f for (a, b), f in zip(edges, factors, strict=False) if b == end)
        reached[end] = sum(incoming)
    return reached[max(reached)]


@pytest.mark.parametrize("name", TABLE)
def test_wirings_connect_their_children_as_in_the_table(name):
    edges = edges_of(name)
    children = ", ".join(["mconst"] * len(edges))
    assert gain(f"{name}({children})") == paths(edges, PRIMES)


def test_the_table_has_every_wiring_that_is_given_by_edges():
    assert set(EDGES) <= set(TABLE)
    for name, edges in EDGES.items():
        assert [(a + 1, b + 1) for a, b in edges] == edges_of(name)
    binary = REGISTRY.operator("BinaryTopo").edges
    assert binary == ((3, 4), (0, 1), (0, 2), (1, 3), (2, 3))


def test_the_skip_is_the_second_child_of_residual_and_the_third_of_residual3():
    assert gain("Residual(mconst, id, mconst)") == 2 * 5 + 1
    assert gain("Residual(mconst, zero, mconst)") == 2 * 5
    assert gain("Residual3(mconst, mconst, id, mconst)") == 2 * 3 * 7 + 1
    assert gain("Residual3(mconst, mconst, zero, mconst)") == 2 * 3 * 7
    assert gain("Residual3(mconst, zero, mconst, mconst)") == 5  # all that is left is the skip


def test_binary_topo_applies_its_first_child_to_the_two_branches_in_order():
    assert gain("BinaryTopo(sub, mconst, mconst, mconst, mconst)") == 3 * 7 - 5 * 11
    assert gain("BinaryTopo(bmax, mconst, mconst, mconst, mconst)") == 5 * 11


def test_repeat_and_parallel():
    assert gain("Repeat(mconst, n=4)") == 2 * 3 * 5 * 7
    assert gain("Parallel(mconst, mconst, mconst)") == 2 + 3 + 5
    net = build(parse('Parallel(neg, square, Parallel(abs, sin, merge="concat"), merge="concat")'), input=(2, 5))
    x = torch.randn(3, 2, 5)
    assert torch.equal(net(x), torch.cat([-x, x * x, x.abs(), x.sin()], 1))
    net = build(parse("Repeat(conv, n=3)"), input=(2, 5, 5))
    assert len({p.data_ptr() for p in net.parameters()}) == 9


@pytest.mark.parametrize("name", [name for name in TABLE if not name.startswith("Linear")])
def test_an_inherited_stride_applies_to_the_edges_that_leave_the_source(name):
    edges = edges_of(name)
    children = ", ".join(["conv3x3o"] * len(edges))
    program = compile_term(parse(f"Given({name}({children}), stride=2, channels=6)"), (4, 16, 16), registry=REGISTRY)
    strides = {
        step.name.partition("conv_")[2].partition("/")[0]: (step.settings["stride"], step.settings["channels"])
        for step in program.steps
        if step.layer == "conv"
    }
    assert strides == {str(i): ((2, 2) if a == 1 else (1, 1), 6) for i, (a, _) in enumerate(edges)}
    assert program.output_shape == (6, 8, 8)


def strides_of(text: str, shape=(4, 16, 16)) -> list[tuple[str, int]]:
    program = compile_term(parse(text), shape, registry=REGISTRY)
    layers = [step for step in program.steps if step.layer in ("conv", "max_pool", "avg_pool", "zero")]
    return [(step.layer, step.settings["stride"][0]) for step in layers]


def test_what_is_inherited():
    assert strides_of("Given(Sequential(relu, conv, conv), stride=2)") == [("conv", 2), ("conv", 1)]
    assert strides_of("Given(Repeat(conv, n=3), stride=2)") == [("conv", 2), ("conv", 1), ("conv", 1)]
    assert strides_of("Given(Parallel(conv, max_pool, id), stride=2)")[:2] == [("conv", 2), ("max_pool", 2)]
    assert strides_of("Given(Parallel(conv(stride=1), max_pool(stride=1)), stride=2)") == [("conv", 1), ("max_pool", 1)]
    assert strides_of("Given(Sequential(down, conv), stride=2)")[-1] == ("conv", 1)  # down uses it up
    assert strides_of("Given(Given(conv, stride=1), stride=2)") == [("conv", 1)]
    assert strides_of("Given(Residual(Sequential(id, conv), max_pool, conv), stride=2)")[-1] == ("conv", 1)
    assert strides_of("Given(UnaryTopo(Given(max_pool, channels=3)), stride=2)") == [("max_pool", 2)]
    nets = {affine: build(parse(f"Given(conv, affine={affine})"), input=(4, 5, 5)) for affine in ("true", "false")}
    assert [len(list(net.parameters())) for net in nets.values()] == [3, 1]
    assert len(list(build(parse("Given(conv, conv_bias=true)"), input=(4, 5, 5)).parameters())) == 4
    assert len(list(build(parse("Given(conv(bias=false), conv_bias=true)"), input=(4, 5, 5)).parameters())) == 3
    assert len(build(parse("Given(avg_pool, pool_norm=true)"), input=(4, 5, 5)).state_dict()) == 3


@pytest.mark.parametrize("size", [(9, 11), (8, 6)])
def test_cells_of_darts(size):
    reduction = (
        "darts_cell(node(on(max_pool_3x3, src=0), on(skip_connect, src=1)), "
        "node(on(sep_conv_3x3, src=2), on(max_pool_3x3, src=1)))"
    )
    normal = (
        "darts_cell(node(on(skip_connect, src=0), on(skip_connect, src=1)), "
        "node(on(dil_conv_3x3, src=2), on(avg_pool_3x3, src=0)))"
    )
    text = f"Cells(stem(channels=4), id, Given({reduction}, stride=2, channels=6), Given({normal}, channels=8))"
    agree(text, ReductionThenNormal(3), (3, *size))


def test_cells_see_the_outputs_of_the_two_before():
    cell = "darts_cell(node(on(id, src=0)), node(on(id, src=1)))"
    program = compile_term(parse(f"Cells(stem(channels=2), id, {cell}, {cell}, {cell})"), (1, 6, 6), registry=REGISTRY)
    made = {step.name.partition("/")[0]: i + 1 for i, step in enumerate(program.steps) if step.layer == "concat"}
    first_of = {step.name: step.inputs[0] for step in program.steps if step.name.endswith("/relu")}
    assert first_of["darts_cell_4/preprocess_0/relu"] == made["darts_cell_2"]
    assert first_of["darts_cell_4/preprocess_1/relu"] == made["darts_cell_3"]
    assert first_of["darts_cell_3/preprocess_0/relu"] == first_of["darts_cell_2/preprocess_0/relu"]  # the stem


def test_a_tap_passes_its_input_on():
    net = build(parse('Sequential(neg, tap(square, name="s"), abs)'), input=(2, 5))
    x = torch.randn(3, 2, 5)
    output, taps = net(x, taps=True)
    assert torch.equal(output, x.abs()) and torch.equal(net(x), x.abs())
    assert taps.keys() == {"s"} and torch.equal(taps["s"], x * x)
    assert strides_of('Given(tap(conv, name="s"), stride=2)') == [("conv", 1)]
    with pytest.raises(ShapeError, match=r"at tap_2: two taps are named 's'"):
        build(parse('Sequential(neg, tap(square, name="s"), tap(abs, name="s"))'), input=(2, 5))


def test_unequal_shapes_are_a_located_error_or_are_adapted():
    text = "Sequential(stem(channels=4), Residual(conv(stride=2, channels=6), id, conv))"
    with pytest.raises(ShapeError, match=r"at Residual_1: the sum in Residual meets shapes .*sizes differ.*adapt"):
        build(parse(text), input=(3, 9, 7))
    net = build(parse(text), input=(3, 9, 7), policy="adapt").double()
    added = [step.layer for step in net.program.steps if "adapter" in step.name]
    assert added == ["resize", "conv"] and net.program.output_shape == (6, 5, 4)
    part = build(parse('Parallel(id, conv(order="conv", stride=2))'), input=(3, 9, 7), policy="adapt").double()
    x = torch.randn(2, 3, 9, 7, dtype=torch.float64)
    weight = part.state_dict()["layers.conv_1/conv.weight"]
    wanted = functional.adaptive_avg_pool2d(x, (5, 4)) + functional.conv2d(x, weight, stride=2, padding=1)
    torch.testing.assert_close(part(x), wanted)
    with pytest.raises(ShapeError, match="channels differ"):
        build(parse("Parallel(conv(channels=2), id)"), input=(3, 8, 8), output=Classes(2))
