"""NAS-Bench-201: closed formulas, names and strings, and the hierarchical grammar that contains it."""

from __future__ import annotations

from random import Random

import pytest
import torch

import eclose
from eclose.algebra.errors import EcloseError
from eclose.algebra.registry import default_registry
from eclose.meanings.cost import program_cost
from eclose.meanings.program import compile_term
from eclose.meanings.torch.build import build_net
from eclose.spaces.nasbench_strings import nb201_string, read_nb201

DATA = {
    "cifar10": ((3, 32, 32), 10, 73_306, (7.943872, 4.36224, 35.81952, 1.29024)),
    "cifar100": ((3, 32, 32), 100, 73_306 + 5_850, (7.949632, 4.36224, 35.81952, 1.29024)),
    "imagenet16-120": ((3, 16, 16), 120, 73_306 + 7_150, (1.993792, 1.09056, 8.95488, 0.32256)),
}


def counts(cell) -> tuple[int, int, int]:
    kinds = [(child.name, child.get("kernel", 3)) for child in cell.children]
    return kinds.count(("conv", 1)), kinds.count(("conv", 3)), kinds.count(("avg_pool", 3))


def program(cell, data: str):
    space = eclose.space("nasbench201")
    input, classes, _, _ = DATA[data]
    term = space.network(cell, input=input, output=eclose.Classes(classes), size="evaluation")
    return compile_term(term, input, eclose.Classes(classes), registry=default_registry())


@pytest.mark.parametrize("data", DATA)
def test_parameters_and_multiply_adds_follow_the_closed_formulas(data):
    space = eclose.space("nasbench201")
    cells = list(space.enumerate())
    assert len(cells) == 15_625
    _, _, constant, (base, one, three, pool) = DATA[data]
    for cell in Random(data).sample(cells, 60):
        ones, threes, pools = counts(cell)
        found = program_cost(program(cell, data), counting="nasbench201")
        assert found.parameters == constant + 28_000 * ones + 243_040 * threes
        assert abs(found.multiply_adds / 1e6 - (base + one * ones + three * threes + pool * pools)) < 1e-9


@pytest.mark.slow
def test_parameters_of_all_cells_follow_the_closed_formula():
    for cell in eclose.space("nasbench201").enumerate():
        ones, threes, _ = counts(cell)
        assert program_cost(program(cell, "cifar10")).parameters == 73_306 + 28_000 * ones + 243_040 * threes


def test_built_networks_have_the_parameters_of_the_formula():
    cells = list(eclose.space("nasbench201").enumerate())
    for cell in Random(1).sample(cells, 12):
        ones, threes, _ = counts(cell)
        net = build_net(program(cell, "cifar10"))
        assert sum(p.numel() for p in net.parameters()) == 73_306 + 28_000 * ones + 243_040 * threes


@pytest.mark.slow
def test_two_hundred_built_networks_have_the_parameters_of_the_formula():
    cells = list(eclose.space("nasbench201").enumerate())
    for cell in Random(2).sample(cells, 200):
        ones, threes, _ = counts(cell)
        net = build_net(program(cell, "cifar10"))
        assert sum(p.numel() for p in net.parameters()) == 73_306 + 28_000 * ones + 243_040 * threes


def test_strings_go_both_ways():
    space = eclose.space("nasbench201")
    for cell in space.enumerate(200):
        text = nb201_string(cell)
        assert read_nb201(text) is cell
    known = "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|nor_conv_3x3~2|"
    assert nb201_string(read_nb201(known)) == known
    with pytest.raises(EcloseError, match="nor_conv_3x3"):
        read_nb201(known.replace("nor_conv_3x3~0", "nor_conv_3x4~0"))


def test_the_hierarchical_grammar_with_fixed_macro_is_the_benchmark_network():
    hierarchical = eclose.space("hierarchical-nb201-fixed_1_none")
    cells = eclose.space("nasbench201")
    macro = hierarchical.sample(5)
    cell = next(node for node in eclose.algebra.terms.distinct(macro) if node.name == "Cell")
    assert cell in cells
    one = build_net(
        compile_term(hierarchical.network(macro), (3, 16, 16), eclose.Classes(10), registry=default_registry())
    ).double()
    other = build_net(
        compile_term(cells.network(cell), (3, 16, 16), eclose.Classes(10), registry=default_registry())
    ).double()
    mine, theirs = list(one.state_dict().values()), list(other.state_dict().values())
    assert [value.shape for value in mine] == [value.shape for value in theirs]
    with torch.no_grad():
        for value, given in zip(theirs, mine, strict=True):
            if value.is_floating_point():
                given.copy_(torch.rand_like(given) + 0.1)
            value.copy_(given)
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    assert torch.allclose(one.eval()(x), other.eval()(x), rtol=1e-12, atol=1e-12)
    assert torch.allclose(one.train()(x), other.train()(x), rtol=1e-10, atol=1e-10)
