"""Partial channel connections against their definition (Xu et al., 2020), written by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import eclose
from eclose.algebra.declarations import Operator
from eclose.algebra.errors import ShapeError, TermError
from eclose.algebra.registry import default_registry
from eclose.meanings.drawing import draw, text_drawing
from eclose.meanings.graph import duplicate_key
from eclose.meanings.program import compile_term
from eclose.meanings.torch.build import build

REGISTRY = default_registry()
POOLS = {1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d}


def shuffled(x: torch.Tensor, groups: int) -> torch.Tensor:
    """Return the channels in the order of ShuffleNet: output j takes channel (j mod g) (C / g) + j div g."""
    each = x.shape[1] // groups
    return torch.stack([x[:, (j % groups) * each + j // groups] for j in range(x.shape[1])], 1)


def by_hand(x: torch.Tensor, operation: nn.Module, k: int, stride: int) -> torch.Tensor:
    part = x.shape[1] // k
    mixed, rest = operation(x[:, :part]), x[:, part:]
    if stride > 1:  # windows that cover the axis, -inf where it does not reach
        margins = []
        for size in reversed(rest.shape[2:]):
            missing = -size % stride
            margins += [missing - missing // 2, missing // 2]
        rest = functional.pad(rest, margins, value=float("-inf"))
        rest = POOLS[rest.dim() - 2](rest, stride, stride)
    return shuffled(torch.cat([mixed, rest], 1), k)


@pytest.mark.parametrize("sizes", [(8,), (9,), (8, 6), (7, 9), (1, 4), (5, 4, 6)], ids=str)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 4, 8])
def test_a_part_goes_through_the_child_and_the_rest_passes_by(k, stride, sizes):
    torch.manual_seed(0)
    axes = len(sizes)
    net = build(eclose.parse(f'Given(partial(conv(order="conv"), k={k}), stride={stride})'), input=(8, *sizes)).double()
    kind = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[axes]
    operation = kind(8 // k, 8 // k, 3, stride, 1, bias=False).double()
    ((name, weight),) = net.named_parameters()
    assert weight.shape == operation.weight.shape and name == "layers.partial_0/conv_0/conv.weight"
    operation.load_state_dict({"weight": weight.detach()})
    x = torch.randn(3, 8, *sizes, dtype=torch.float64)
    found = net(x)
    assert found.shape == (3, 8, *(-(-n // stride) for n in sizes))
    torch.testing.assert_close(found, by_hand(x, operation, k, stride), rtol=1e-12, atol=1e-12)


def test_even_sizes_are_pooled_as_in_the_reference():
    net = build(eclose.parse("Given(partial(max_pool(kernel=2)), stride=2)"), input=(8, 6, 4))
    x = torch.randn(2, 8, 6, 4)
    wanted = functional.max_pool2d(x, 2, 2)
    assert torch.equal(net(x), shuffled(wanted, 4))


def test_the_shuffle_spreads_the_computed_channels():
    x = torch.arange(8.0).reshape(1, 8, 1)
    assert build(eclose.parse("partial(neg, k=4)"), input=(8, 1))(x).flatten().tolist() == [0, 2, 4, 6, -1, 3, 5, 7]
    assert build(eclose.parse("partial(neg, k=2)"), input=(8, 1))(x).flatten().tolist() == [0, 4, -1, 5, -2, 6, -3, 7]


def test_an_operation_that_ignores_the_stride_leaves_the_sizes():
    net = build(eclose.parse("Given(partial(relu), stride=2)"), input=(4, 7, 5))
    assert net.program.output_shape == (4, 7, 5)


def test_one_part_is_exactly_the_child():
    term, child = "Given(partial(sep_conv_3x3, k=1), stride=2)", "Given(sep_conv_3x3, stride=2)"
    net, other = build(eclose.parse(term), input=(6, 7, 9)).eval(), build(eclose.parse(child), input=(6, 7, 9)).eval()
    assert [step.layer for step in net.program.steps] == [step.layer for step in other.program.steps]
    other.load_state_dict(dict(zip(other.state_dict(), net.state_dict().values(), strict=True)))
    x = torch.randn(2, 6, 7, 9)
    assert torch.equal(net(x), other(x))
    assert duplicate_key(eclose.parse("Sequential(partial(conv, k=1), relu)")) == duplicate_key(
        eclose.parse("Sequential(conv, relu)")
    )


def test_neither_an_identity_nor_zeros_inside_is_contracted_away():
    keys = {
        text: duplicate_key(eclose.parse(text))
        for text in ("id", "zero", "partial(id)", "partial(zero)", "partial(id, k=2)", "partial(conv)", "conv")
    }
    assert len(set(map(repr, keys.values()))) == len(keys)
    nested = [duplicate_key(eclose.parse(f"partial(Sequential({inside}))")) for inside in ("id, conv", "conv, id")]
    assert nested[0] == nested[1] == duplicate_key(eclose.parse("partial(conv)"))


def test_it_stands_on_the_edges_of_a_reduction_cell():
    cell = (
        "darts_cell(node(on(partial(sep_conv_3x3), src=0), on(partial(id), src=1)), "
        "node(on(partial(max_pool_3x3), src=1), on(partial(dil_conv_5x5), src=2)))"
    )
    term = eclose.parse(f"Cells(stem(channels=8), id, Given({cell}, stride=2, channels=8, pool_norm=true))")
    program = compile_term(term, (3, 9, 11), registry=REGISTRY)
    assert program.output_shape == (16, 5, 6)
    pooled = [step for step in program.steps if step.name.endswith("bypass")]
    assert [step.name.split("/")[-4:-1] for step in pooled] == [
        ["node_0", "on_0", "partial_0"],
        ["node_0", "on_1", "partial_0"],
        ["node_1", "on_0", "partial_0"],
    ]
    assert {step.shape for step in pooled} == {(6, 5, 6)}


def test_what_does_not_fit_is_said_with_what_would():
    def failure(text: str, channels: int = 12) -> str:
        with pytest.raises(ShapeError) as caught:
            build(eclose.parse(text), input=(channels, 6, 6))
        return str(caught.value)

    message = failure("Sequential(relu, partial(conv, k=5))")
    assert "at partial_1: partial(k=5) cannot divide 12 channels" in message
    assert "k=1, k=2, k=3, k=4, k=6 or k=12 would do" in message
    assert "k=1 or k=7 would do" in failure("partial(conv)", 7)
    assert "must keep its 3 channels, and gives 5" in failure("partial(conv(channels=5))")
    assert "cannot make 24 channels of 12" in failure("Given(partial(conv), channels=24)")
    assert "inherited stride" in failure("partial(conv(stride=2))")
    registry = REGISTRY.copy()
    registry.add(Operator("gates", "for a test", result="attention"))
    with pytest.raises(TermError, match="gives attention where feature is needed"):
        registry.normal("partial", (registry.normal("gates", (), {}),), {})


def test_it_is_drawn_as_a_frame_around_its_child():
    term = eclose.parse("Sequential(conv, partial(choice(conv, sep_conv_3x3, id), k=2))")
    assert text_drawing(term) == "conv → partial(choice(conv, sep_conv_3x3, id), k=2)"
    assert "partial" in draw(term) and "sep_conv_3x3" in draw(term)
