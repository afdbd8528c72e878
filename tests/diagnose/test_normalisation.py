"""Batch-norm statistics against means and variances computed directly."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from eclose.algebra.errors import RequestError
from eclose.diagnose.normalisation import preserved, recalibrate, recalibrated


class Network(nn.Module):
    """Two batch norms in a row, one that is never used and one without running statistics."""

    def __init__(self) -> None:
        super().__init__()
        drawn = torch.Generator().manual_seed(0)
        self.first = nn.BatchNorm2d(3, momentum=0.3)
        self.dropout = nn.Dropout(0.5)
        self.second = nn.BatchNorm2d(3, affine=False, momentum=None)
        self.unused = nn.BatchNorm1d(4)
        self.batchwise = nn.BatchNorm2d(3, track_running_stats=False)
        for layer in (self.first, self.second, self.unused):
            layer.running_mean.copy_(torch.randn(layer.num_features, generator=drawn))
            layer.running_var.copy_(torch.rand(layer.num_features, generator=drawn) + 0.5)
            layer.num_batches_tracked.fill_(17)

    def forward(self, x: Tensor) -> Tensor:
        return self.batchwise(self.second(torch.relu(self.dropout(self.first(x)))))


def batches(count: int = 4) -> list[Tensor]:
    drawn = torch.Generator().manual_seed(1)
    return [torch.randn(size, 3, 5, 5, generator=drawn) * 3 + 1 for size in range(6, 6 + count)]


def buffers(model: nn.Module) -> dict[str, Tensor]:
    return {name: buffer.clone() for name, buffer in model.named_buffers()}


def same(model: nn.Module, kept: dict[str, Tensor], prefix: str = "") -> bool:
    return all(torch.equal(buffer, kept[name]) for name, buffer in model.named_buffers() if name.startswith(prefix))


def statistics(inputs: list[Tensor]) -> tuple[Tensor, Tensor]:
    means = [x.transpose(0, 1).reshape(3, -1).mean(1) for x in inputs]
    variances = [x.transpose(0, 1).reshape(3, -1).var(1) for x in inputs]  # unbiased, as running variances are
    return torch.stack(means).mean(0), torch.stack(variances).mean(0)


def test_statistics_are_the_means_over_batches():
    model, given = Network(), batches()
    recalibrate(model, given, model)
    mean, variance = statistics(given)
    torch.testing.assert_close(model.first.running_mean, mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(model.first.running_var, variance, rtol=1e-5, atol=1e-6)
    # The second layer sees the first one's normalisation by the batch, without dropout.
    hidden = []
    for x in given:
        rows = x.transpose(0, 1).reshape(3, -1)
        spread = (rows.var(1, unbiased=False) + model.first.eps).sqrt()
        hidden.append(torch.relu((x - rows.mean(1).view(1, 3, 1, 1)) / spread.view(1, 3, 1, 1)))
    mean, variance = statistics(hidden)
    torch.testing.assert_close(model.second.running_mean, mean, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.second.running_var, variance, rtol=1e-4, atol=1e-5)


def test_what_no_batch_reaches_is_left_as_it_was():
    model = Network()
    kept = buffers(model)
    recalibrate(model, batches(), model)
    assert same(model, kept, "unused")
    assert not same(model, kept, "first")


@pytest.mark.parametrize("training", [True, False])
def test_modes_and_momenta_are_restored(training):
    model = Network().train(training)
    model.second.train(not training)
    modes = [module.training for module in model.modules()]
    parameters = [parameter.clone() for parameter in model.parameters()]
    before = torch.get_rng_state()
    recalibrate(model, batches(), model)
    assert [module.training for module in model.modules()] == modes
    assert (model.first.momentum, model.second.momentum, model.unused.momentum) == (0.3, None, 0.1)
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), parameters, strict=True))
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), before)  # dropout drew nothing


def test_no_graph_is_kept():
    model, seen = Network(), []
    recalibrate(model, batches(1), lambda x: seen.append(model(x).requires_grad))
    assert seen == [False]


def test_the_old_statistics_are_back_after_the_block():
    model = Network()
    kept, held = buffers(model), model.first.running_mean
    with recalibrated(model, batches(), model):
        torch.testing.assert_close(model.first.running_mean, statistics(batches())[0], rtol=1e-5, atol=1e-6)
        model.train()(batches(1)[0])  # whatever happens inside
    assert same(model, kept)
    assert model.first.running_mean is held
    with pytest.raises(ZeroDivisionError), recalibrated(model, batches(), model):
        raise ZeroDivisionError
    assert same(model, kept)


def test_preserved_undoes_what_training_mode_does():
    model = Network().train()
    kept = buffers(model)
    with preserved(model):
        model(batches(1)[0])
        assert not same(model, kept)
    assert same(model, kept)


def test_a_failure_on_the_way_changes_nothing():
    model = Network().eval()
    kept = buffers(model)

    def failing(x: Tensor) -> None:
        model(x)
        if len(x) == 8:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        recalibrate(model, batches(), failing)
    with pytest.raises(RequestError, match="at least one batch"):
        recalibrate(model, [], model)
    assert same(model, kept)
    assert not any(module.training for module in model.modules())
    assert model.first.momentum == 0.3


def test_a_model_without_batch_norms_is_allowed():
    model = nn.Linear(2, 2)
    recalibrate(model, [torch.ones(1, 2)], model)
    with preserved(model):
        pass


def test_recalibrated_statistics_repair_a_network_with_others():
    """The purpose: evaluated with the statistics of other data, a network is wrong; recalibrated it is right."""
    given = batches(1)
    model = nn.BatchNorm2d(3)
    model.running_mean.fill_(40.0)
    right = nn.BatchNorm2d(3, track_running_stats=False)(given[0])
    model.eval()
    assert (model(given[0]) - right).abs().max() > 10
    recalibrate(model, given, model)
    assert (model(given[0]) - right).abs().max() < 0.05  # a running variance is the unbiased one
