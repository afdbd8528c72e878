"""What torch would refuse in the middle of a forward pass is refused with its place, or computed after all."""

import pytest
import torch
from torch.nn import functional

import eclose
from eclose.algebra.errors import ShapeError
from eclose.algebra.shapes import Tokens
from eclose.meanings.source import source
from eclose.meanings.torch.build import build


def test_means_of_windows_larger_than_a_volume():
    term = eclose.parse("Sequential(stem(channels=2), avg_pool(kernel=5))")
    net = build(term, input=(1, 2, 3, 5)).double().eval()
    x = torch.randn(2, 1, 2, 3, 5, dtype=torch.float64)
    feature = torch.zeros(2, 2, 6, 7, 9, dtype=torch.float64)
    mask = torch.zeros_like(feature)
    inside = (slice(None), slice(None), slice(2, 4), slice(2, 5), slice(2, 7))
    stem = build(eclose.parse("stem(channels=2)"), input=(1, 2, 3, 5)).double().eval()
    stem.load_state_dict({key.replace("stem_0/", ""): value for key, value in net.state_dict().items()})
    feature[inside], mask[inside] = stem(x).detach(), 1.0
    sums = feature.unfold(2, 5, 1).unfold(3, 5, 1).unfold(4, 5, 1).sum((-1, -2, -3))
    counts = mask.unfold(2, 5, 1).unfold(3, 5, 1).unfold(4, 5, 1).sum((-1, -2, -3))
    torch.testing.assert_close(net(x), sums / counts, rtol=1e-10, atol=1e-10)
    assert "volume_mean" in source(term, input=(1, 2, 3, 5))


def test_a_darts_cell_of_small_volumes_runs():
    net = build(
        eclose.parse("Sequential(avg_pool_3x3, down, avg_pool_3x3, down, avg_pool_3x3)"), input=(1, 5, 5, 5), classes=2
    )
    assert net(torch.randn(2, 1, 5, 5, 5)).shape == (2, 2)


def test_an_embedding_smaller_than_the_vocabulary_of_its_input_is_refused():
    with pytest.raises(ShapeError, match=r"embedding of 5 tokens cannot read .* tokens below 11"):
        build(eclose.parse("Sequential(embedding(vocab=5), head)"), input=Tokens(4, 11), classes=2)
    net = build(eclose.parse("Sequential(embedding(vocab=20), head)"), input=Tokens(4, 11), classes=2)
    assert net(torch.full((1, 4), 10)).shape == (1, 2)


def test_groups_of_one_number_are_refused():
    with pytest.raises(ShapeError, match="group_norm with 8 groups leaves one number in each"):
        build(eclose.parse("Sequential(stem(channels=8), group_norm)"), input=(5,))
    assert build(eclose.parse("Sequential(stem(channels=8), group_norm(groups=4))"), input=(5,)) is not None


def test_a_constant_is_no_view_of_its_parameter():
    net = build(eclose.parse("const"), input=(2, 3, 3))
    with torch.no_grad():
        value = net(torch.zeros(1, 2, 3, 3))
        assert not value.requires_grad
        value.zero_()
        assert torch.equal(net(torch.zeros(1, 2, 3, 3)), torch.ones(1, 2, 3, 3))


def test_logits_of_a_pick_count_with_and_without_a_name():
    for name in ("", ', name="edges"'):
        term = eclose.parse(f"pick(relu, tanh, neg, k=2, logits=true{name})")
        net = build(term, input=(2, 5))
        assert len(net.alphas) == 1
        ((choice, site),) = net.program.choices.items()
        assert (site.kind, site.keep, site.alternatives) == ("pick", 2, 3)
        x, weights = torch.randn(3, 2, 5), torch.tensor([0.2, 0.5, 0.3])
        wanted = 0.2 * functional.relu(x) + 0.5 * torch.tanh(x) - 0.3 * x
        torch.testing.assert_close(net(x, weights={choice: weights}), wanted)
