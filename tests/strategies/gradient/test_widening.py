"""Widening: what is copied, what is replicated, and that momentum goes the same way."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import eclose
from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.structure import structured
from eclose.strategies.gradient.widening import widen, widen_state
from eclose.train.groups import SGD

SPACES = {"nasbench201": {"cells": 1}, "darts": {"cells": 3}}
CHANNELS = 12


def network(space: str, k: int, seed: int) -> nn.Module:
    found = eclose.space(space)
    term = found.network(structured(found.relaxed(), partial=k), channels=CHANNELS, **SPACES[space])
    torch.manual_seed(seed)
    net = eclose.build(term, input=(3, 8, 8), classes=4)
    with torch.no_grad():
        for buffer in net.buffers():  # no statistics are what they begin as
            if buffer.is_floating_point():
                buffer.uniform_(0.5, 2.0)
    return net


def everything(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in net.state_dict().items()}


def is_copied(old: torch.Tensor, new: torch.Tensor) -> bool:
    """Return whether a tensor holds the old one first, and everywhere else slices of it, found by comparing."""
    rebuilt = old
    for axis in range(old.dim()):
        inside = tuple(slice(0, size) for size in old.shape)
        seen = new[(*inside[:axis], slice(None), *inside[axis + 1 :])].movedim(axis, 0)
        rows = old.movedim(axis, 0)
        if not torch.equal(seen[: len(rows)], rows):
            return False
        sources = [next((i for i, row in enumerate(rows) if torch.equal(one, row)), None) for one in seen]
        if None in sources:
            return False
        rebuilt = rebuilt.index_select(axis, torch.tensor(sources))
    return torch.equal(rebuilt, new)


@pytest.mark.parametrize("space", SPACES)
def test_every_widened_channel_is_a_copy_of_an_old_one(space):
    old, new = network(space, 6, 0), network(space, 4, 1)
    before, shapes = everything(old), {name: value.shape for name, value in new.state_dict().items()}
    assert before.keys() == shapes.keys()
    widen(old, new, seed=5)
    after = everything(new)
    assert {name: value.shape for name, value in after.items()} == shapes
    grown = [name for name in after if after[name].shape != before[name].shape]
    assert len(grown) > 50
    assert any("running_var" in name for name in grown)
    assert any(after[name].shape[1] > before[name].shape[1] for name in grown if after[name].dim() == 4)
    for name in after:
        assert torch.equal(after[name], before[name]) if name not in grown else is_copied(before[name], after[name])
        assert not name.startswith("alphas.") or name not in grown
    assert all(torch.equal(value, before[name]) for name, value in old.state_dict().items())
    x = torch.randn(2, 3, 8, 8)
    assert new(x).isfinite().all()


def test_the_tensors_of_an_operation_agree_about_their_channels():
    old, new = network("nasbench201", 6, 0), network("nasbench201", 2, 1)
    marks = torch.arange(100.0)
    with torch.no_grad():
        for value in (*old.parameters(), *old.buffers()):
            if value.dim() and value.is_floating_point():
                value.copy_(marks[: len(value)].reshape(-1, *[1] * (value.dim() - 1)).expand_as(value))
    widen(old, new, seed=5)
    state = new.state_dict()
    drawn = set()
    for name, value in state.items():
        if name.endswith("/batch_norm.running_mean") and value.shape[0] == CHANNELS // 2:
            weight = state[name.replace("batch_norm.running_mean", "conv.weight")]
            assert torch.equal(weight[:, 0, 0, 0], value)
            assert torch.equal(value, state[name.replace("mean", "var")])
            drawn.add(tuple(value.tolist()))
    assert len(drawn) > 5 and {values[:2] for values in drawn} == {(0.0, 1.0)}  # operations draw channels of their own


def test_momentum_is_replicated_with_its_parameter():
    old, new = network("darts", 6, 0), network("darts", 4, 1)
    weights = eclose.weights(old)
    optimiser = SGD()(list(weights.values()), 0.1)
    old(torch.randn(4, 3, 8, 8)).square().sum().backward()
    optimiser.step()
    with torch.no_grad():  # a momentum that is a known function of its parameter shows which entry went where
        for parameter in weights.values():
            optimiser.state[parameter]["momentum_buffer"].copy_(3 * parameter + 1)
    state = {name: {**optimiser.state[parameter], "step": torch.tensor(7.0)} for name, parameter in weights.items()}
    widen(old, new, seed=9)
    carried = widen_state(state, old, new, seed=9)
    assert carried.keys() == weights.keys()
    for name, parameter in eclose.weights(new).items():
        assert carried[name]["momentum_buffer"].shape == parameter.shape
        assert torch.equal(carried[name]["momentum_buffer"], 3 * parameter.detach() + 1)
        assert carried[name]["step"] == 7 and carried[name]["step"] is not state[name]["step"]
    other = widen_state(state, old, new, seed=10)
    assert any(not torch.equal(other[name]["momentum_buffer"], carried[name]["momentum_buffer"]) for name in other)


def test_a_seed_decides_and_the_global_generator_does_not():
    old = network("nasbench201", 6, 0)
    results = []
    for seed, state in ((1, 11), (1, 12), (2, 11)):
        new = network("nasbench201", 3, 1)
        torch.manual_seed(state)
        before = torch.get_rng_state()
        widen(old, new, seed)
        assert torch.equal(torch.get_rng_state(), before)
        results.append(torch.cat([value.flatten() for value in new.parameters()]))
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])


def test_equal_shapes_are_a_copy_to_the_bit():
    old, new = network("nasbench201", 4, 0), network("nasbench201", 4, 1)
    x = torch.randn(2, 3, 8, 8)
    assert not torch.equal(old.eval()(x), new.eval()(x))
    widen(old, new, seed=3)
    assert all(torch.equal(value, old.state_dict()[name]) for name, value in new.state_dict().items())
    assert torch.equal(old(x), new(x))
    assert not {p.data_ptr() for p in old.parameters()} & {p.data_ptr() for p in new.parameters()}


def test_what_is_not_wider_is_refused():
    old = network("nasbench201", 4, 0)
    with pytest.raises(RequestError, match=r"conv.*never fewer"):
        widen(old, network("nasbench201", 6, 0), 0)
    with pytest.raises(RequestError, match=r"the new network has no '.*only the k of partial may differ"):
        widen(old, network("nasbench201", 1, 0), 0)
    text = "partial(choice({}), k={})"
    two, three = (
        eclose.build(eclose.parse(text.format(inside, 2)), input=(4, 5, 5)) for inside in ("conv, id", "conv, id, relu")
    )
    with pytest.raises(RequestError, match="alphas are copied as they are"):
        widen(two, three, 0)
    larger = eclose.build(eclose.parse(text.format("conv5x5, id", 2)), input=(4, 5, 5))
    with pytest.raises(RequestError, match="only channels can be widened"):
        widen(two, larger, 0)
    with pytest.raises(RequestError, match=r"the old network has no parameter 'unheard\.of'"):
        widen_state({"unheard.of": {}}, old, old, 0)
    name = next(name for name, parameter in old.named_parameters() if parameter.dim() == 4)
    with pytest.raises(RequestError, match=r"momentum_buffer of .* has shape \(3,\)"):
        widen_state({name: {"momentum_buffer": torch.zeros(3)}}, old, old, 0)
