"""The memory of a training step against what torch's autograd really keeps."""

from __future__ import annotations

import pytest
import torch

import eclose as ec
from eclose.meanings.cost import program_cost
from eclose.meanings.program import compile_term
from eclose.meanings.torch.build import build_net

CASES = {
    "nasbench201": {"cells": 2, "channels": 8},
    "darts": {"cells": 4, "channels": 8},
    "s2": {"cells": 4, "channels": 8},
    "nasbench1shot1-2": {"cells": 3, "channels": 8},
    "layer-choice": {"channels": 2, "last": 32},
}


@pytest.mark.parametrize("name", CASES)
def test_a_supernet_keeps_what_is_predicted(name):
    space = ec.space(name)
    term = space.supernet(**CASES[name])
    net = build_net(compile_term(term, (3, 32, 32), ec.Classes(10), registry=space.grammar.registry)).train()
    kept: dict[int, int] = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    own = {tensor.untyped_storage().data_ptr() for tensor in (*net.parameters(), *net.buffers())}
    batch = 8
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = net(torch.randn(batch, 3, 32, 32))
    measured = sum(size for pointer, size in kept.items() if pointer not in own)
    predicted = batch * program_cost(net.program).training_memory
    assert output.requires_grad
    assert predicted == pytest.approx(measured, rel=0.06)
