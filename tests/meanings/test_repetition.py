"""Values that are equal by construction are computed once, and nothing else changes."""

from __future__ import annotations

import torch

import eclose as ec
from eclose.meanings.program.repetition import repetitions
from eclose.operations.mixture import MixtureWeights


def supernet():
    torch.manual_seed(0)
    space = ec.space("nasbench201")
    return ec.build(space.supernet(cells=1, channels=4), input=(3, 8, 8), classes=10).double().train()


def test_equal_poolings_and_activations_of_a_node_are_one():
    net = supernet()
    steps = net.program.steps
    same = repetitions(net.program)
    # Three edges leave node 0 of each cell, two leave node 1: of their 6 poolings 3 are left, of their zeros too.
    assert sum(steps[value - 1].layer == "avg_pool" for value in same) == 3 * 3
    for value, first in same.items():
        assert steps[value - 1].layer == steps[first - 1].layer
        assert first < value


def test_a_network_computes_the_same_without_repetition():
    net, x = supernet(), torch.randn(4, 3, 8, 8, dtype=torch.float64)
    outputs, gradients = [], []
    for same in (net._same, {}):
        net._same = same
        net.zero_grad(set_to_none=True)
        output = net(x)
        output.square().sum().backward()
        outputs.append(output.detach())
        gradients.append({name: parameter.grad for name, parameter in net.named_parameters()})
    assert torch.equal(outputs[0], outputs[1])
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-10, atol=1e-12)


def test_an_alternative_that_was_not_selected_is_no_source():
    """The first of equal poolings may stand in an alternative that hard weights leave out."""
    net, x = supernet(), torch.randn(2, 3, 8, 8, dtype=torch.float64)
    names = list(net.alphas)
    pool = 4
    for chosen in names[1:]:
        weights = {name: MixtureWeights(None, (pool if name == chosen else 1,)) for name in names}
        expected = {name: MixtureWeights(None, (pool if name == chosen else 1,)) for name in names}
        first = net(x, weights=weights)
        net._same, kept = {}, net._same
        second = net(x, weights=expected)
        net._same = kept
        assert torch.equal(first, second)


def test_soft_weights_leave_zero_out_and_hard_ones_do_not():
    net, x = supernet(), torch.randn(2, 3, 8, 8, dtype=torch.float64)
    zero = [name for name, module in net.layers.items() if type(module).__name__ == "Zero"]
    seen = []
    for name in zero:
        net.layers[name].register_forward_hook(lambda *call: seen.append(1))
    net(x)
    assert not seen
    net(x, weights={name: MixtureWeights(None, (0,)) for name in net.alphas})
    assert seen
