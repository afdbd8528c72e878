"""Costs against torch: its parameters, its flop counter, and the memory of the tensors that really are alive."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import eclose
from eclose.algebra.errors import RequestError
from eclose.algebra.shapes import Tokens
from eclose.meanings.cost import cost, program_cost
from eclose.meanings.cost.operations import COUNTINGS, PRODUCTS
from eclose.meanings.program.layers import LAYERS
from eclose.meanings.torch.build import build_net
from eclose.spaces import SPACES
from support.random_terms import Case, random_cases

CASES = list(random_cases(11, 50, choices=False, largest=80))


def example(input, batch: int = 1) -> torch.Tensor:
    if isinstance(input, Tokens):
        return torch.zeros(batch, input.length, dtype=torch.long)
    return torch.randn(batch, *input)


class Alive(TorchDispatchMode):
    """Counts the bytes of all storages that are alive, as an allocator sees them."""

    def __init__(self, *known: torch.Tensor):
        super().__init__()
        self.now = self.peak = 0
        self.storages: dict[int, int] = {}
        self.outside = {tensor.untyped_storage()._cdata for tensor in known}

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self.storages and key not in self.outside:
                    self.storages[key] = storage.nbytes()
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self.free, key)
        return result

    def free(self, key: int) -> None:
        self.now -= self.storages.pop(key, 0)


def measured_peak(case: Case) -> int:
    net = build_net(case.program).eval()
    x = example(case.input)
    # A fused attention would keep no scores, which are promised to be counted.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), Alive(x, *net.parameters(), *net.buffers()) as alive:
        net(x)
    return alive.peak + x.numel() * 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.term.name)
def test_parameters_and_multiply_adds_equal_torch(case):
    net = build_net(case.program).eval()
    found = program_cost(case.program)
    assert found.parameters == sum(parameter.numel() for parameter in net.parameters())
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as flops:  # fused attention is not counted
        net(example(case.input))
    assert 2 * found.multiply_adds == flops.get_total_flops()
    assert sum(layer.parameters for layer in found.layers) == found.parameters


def test_peak_memory_is_that_of_the_tensors_alive():
    ratios = sorted(program_cost(case.program).peak_memory / measured_peak(case) for case in CASES)
    assert abs(ratios[len(ratios) // 2] - 1.0) < 0.01
    # Small things that a layer needs only inside itself (a padded copy, a function made of several) are not promised.
    assert ratios[0] > 0.5
    assert ratios[-1] < 1.15


def test_a_chain_of_layers_keeps_two_values_alive():
    term = eclose.parse("Sequential(stem(channels=8), conv(channels=8), conv(channels=8), conv(channels=8), head)")
    found = cost(term, input=(3, 16, 16), classes=2)
    assert found.peak_memory == 4 * (3 * 256 + 2 * 8 * 256)


def test_side_by_side_values_are_alive_together():
    branches = ", ".join(["max_pool"] * 6)
    term = eclose.parse(f'Sequential(stem(channels=8), Parallel({branches}, merge="concat"), head)')
    found = cost(term, input=(3, 16, 16), classes=2)
    assert found.peak_memory >= 4 * (3 * 256 + 12 * 8 * 256)


def test_every_kind_of_layer_has_a_rule():
    assert set(PRODUCTS) == set(LAYERS)
    assert all(set(counting.rules) == set(LAYERS) for counting in COUNTINGS.values())
    with pytest.raises(RequestError, match="did you mean 'products'"):
        cost(eclose.parse("conv"), input=(3, 8, 8), classes=2, counting="product")


def test_the_public_function_speaks_of_the_same_network_as_build():
    for entry in SPACES:
        space = eclose.space(entry.name)
        term = space.sample(1)
        net = eclose.build(term, space=space)
        found = eclose.cost(term, space=space)
        assert found.parameters == sum(parameter.numel() for parameter in net.parameters()), entry.name
        assert "parameters" in str(found)
        assert str(found.layers[0].name) in found.layers_text()


def test_a_supernet_costs_what_all_alternatives_cost():
    space = eclose.space("darts-with-none")
    supernet = space.supernet()
    found = cost(supernet, input=(3, 32, 32), classes=10)
    assert found.parameters == 1_930_618
    assert found.alphas == 2 * 14 * 8
    net = eclose.build(supernet, input=(3, 32, 32), classes=10)
    assert sum(parameter.numel() for parameter in eclose.weights(net).values()) == 1_930_618


def test_memory_grows_with_the_batch():
    found = cost(eclose.parse("conv"), input=(3, 8, 8), classes=2)
    assert found.memory(10) - found.memory(9) == found.peak_memory
    assert found.memory(4, training=True) - found.memory(3, training=True) == found.training_memory
    assert found.training_memory >= found.peak_memory // 2


def test_nothing_is_built_for_a_term_of_a_hundred_thousand_layers():
    term = eclose.parse("conv")
    for _ in range(100_000):
        term = eclose.Term("Sequential", (term, eclose.parse("relu")))
    assert (
        cost(term, input=(1, 4, 4), classes=2).parameters
        == cost(eclose.parse("conv"), input=(1, 4, 4), classes=2).parameters
    )
