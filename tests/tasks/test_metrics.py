"""Losses and metrics against numpy, summed up over batches of uneven size."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from eclose.tasks import LOSSES, METRICS, Metric
from eclose.tasks.metrics import as_metric

RNG = np.random.default_rng(0)
BOUNDS = [0, 1, 8, 10, 27, 30]  # batches of 1, 7, 2, 17 and 3 items
LOGITS, DENSE = RNG.normal(size=(30, 8)), RNG.normal(size=(30, 8, 3, 4))
LABELS, DENSE_LABELS = RNG.integers(0, 8, 30), RNG.integers(0, 8, (30, 3, 4))
SOME = np.where(RNG.random((30, 3, 4)) < 0.3, -100, DENSE_LABELS)
NUMBERS, YES = RNG.normal(size=(30, 8)) + 1, RNG.integers(0, 2, (30, 8))
MAPS = RNG.normal(size=(30, 8, 3, 4))
FRAMES, ROLL = RNG.normal(size=(30, 5, 9)), RNG.integers(0, 2, (30, 5, 9)).astype(float)
CUT = np.where(np.arange(9) < RNG.integers(1, 10, 30)[:, None, None], ROLL, -1.0)  # sequences of unequal length


def score(metric: Metric, outputs: np.ndarray, targets: np.ndarray) -> float:
    total = count = 0.0
    for begin, end in pairwise(BOUNDS):
        batch = torch.as_tensor(outputs[begin:end], dtype=torch.float32), torch.as_tensor(targets[begin:end])
        found = metric.measure(*batch)
        assert all(isinstance(value, torch.Tensor) and value.dim() == 0 for value in found)
        total, count = total + float(found[0]), count + float(found[1])
    return total / count


def flat(outputs, labels):
    """Return logits (M, K) and labels (M,) of all positions that count."""
    outputs = np.moveaxis(outputs, 1, -1).reshape(-1, outputs.shape[1])
    labels = labels.reshape(-1)
    return outputs[labels >= 0], labels[labels >= 0]


def accuracy(outputs, labels):
    outputs, labels = flat(outputs, labels)
    return 100 * np.mean([int(np.argmax(row)) == label for row, label in zip(outputs, labels, strict=True)])


def top_5(outputs, labels):
    outputs, labels = flat(outputs, labels)
    return 100 * np.mean([label in np.argsort(row)[-5:] for row, label in zip(outputs, labels, strict=True)])


def likelihood(outputs, labels):
    outputs, labels = flat(outputs, labels)
    chances = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    return -np.mean([np.log(row[label]) for row, label in zip(chances, labels, strict=True)])


def binary(outputs, targets):
    chances = 1 / (1 + np.exp(-outputs))
    return -np.mean(targets * np.log(chances) + (1 - targets) * np.log(1 - chances))


def frames(outputs, targets):
    values = []
    for sequence, wanted in zip(outputs, targets, strict=True):
        for time in range(wanted.shape[1]):
            if wanted[0, time] >= 0:
                chances = 1 / (1 + np.exp(-sequence[:, time]))
                values.append(-np.log(np.where(wanted[:, time] == 1, chances, 1 - chances)).sum())
    return np.mean(values)


def relative(outputs, targets):
    return np.mean([np.linalg.norm(o - t) / np.linalg.norm(t) for o, t in zip(outputs, targets, strict=True)])


def huber(outputs, targets):
    away = np.abs(outputs - targets)
    return np.mean(np.where(away < 1, away**2 / 2, away - 0.5))


METRIC_CASES = [
    ("accuracy", LOGITS, LABELS, accuracy),
    ("accuracy", DENSE, DENSE_LABELS, accuracy),
    ("accuracy", DENSE, SOME, accuracy),
    ("top-5-accuracy", LOGITS, LABELS, top_5),
    ("top-5-accuracy", DENSE, SOME, top_5),
    ("negative-log-likelihood", LOGITS, LABELS, likelihood),
    ("negative-log-likelihood", DENSE, SOME, likelihood),
    ("binary-accuracy", LOGITS, YES, lambda o, t: 100 * np.mean((o > 0) == (t == 1))),
    ("mean-squared-error", LOGITS, NUMBERS, lambda o, t: np.mean((o - t) ** 2)),
    ("mean-squared-error", DENSE, MAPS, lambda o, t: np.mean((o - t) ** 2)),
    ("mean-absolute-error", LOGITS, NUMBERS, lambda o, t: np.mean(np.abs(o - t))),
    ("relative-l2", DENSE, MAPS, relative),
    ("relative-l2", LOGITS, NUMBERS, relative),
    ("frame-negative-log-likelihood", FRAMES, ROLL, frames),
    ("frame-negative-log-likelihood", FRAMES, CUT, frames),
]


@pytest.mark.parametrize(("name", "outputs", "targets", "plain"), METRIC_CASES)
def test_metrics_over_uneven_batches(name, outputs, targets, plain):
    assert score(METRICS.get(name), outputs, targets) == pytest.approx(plain(outputs, targets), rel=1e-5)


LOSS_CASES = [
    ("cross-entropy", LOGITS, LABELS, likelihood),
    ("cross-entropy", DENSE, SOME, likelihood),
    ("binary-cross-entropy", LOGITS, YES, binary),
    ("mean-squared-error", LOGITS, NUMBERS, lambda o, t: np.mean((o - t) ** 2)),
    ("mean-absolute-error", DENSE, MAPS, lambda o, t: np.mean(np.abs(o - t))),
    ("huber", LOGITS, NUMBERS, huber),
    ("relative-l2", DENSE, MAPS, relative),
    ("frame-negative-log-likelihood", FRAMES, CUT, frames),
]


@pytest.mark.parametrize(("name", "outputs", "targets", "plain"), LOSS_CASES)
def test_losses_of_a_batch(name, outputs, targets, plain):
    value = LOSSES.get(name)(torch.as_tensor(outputs), torch.as_tensor(targets))
    assert value.dim() == 0 and float(value) == pytest.approx(plain(outputs, targets), rel=1e-5)


def test_everything_that_ships_is_tested():
    assert {case[0] for case in METRIC_CASES} == {entry.name for entry in METRICS}
    assert {case[0] for case in LOSS_CASES} == {entry.name for entry in LOSSES}


def test_top_5_of_fewer_classes_is_always_right():
    assert score(METRICS.get("top-5-accuracy"), LOGITS[:, :3], LABELS % 3) == 100


def test_a_missing_axis_of_one_channel_is_added():
    metric = METRICS.get("mean-squared-error")
    assert score(metric, LOGITS[:, :1], NUMBERS[:, 0]) == score(metric, LOGITS[:, :1], NUMBERS[:, :1])
    assert score(metric, DENSE[:, :1], MAPS[:, 0]) == score(metric, DENSE[:, :1], MAPS[:, :1])


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_outputs_of_other_precision(kind):
    outputs, targets = torch.as_tensor(LOGITS).to(kind), torch.as_tensor(NUMBERS)
    value = LOSSES.get("mean-squared-error")(outputs, targets)
    assert value.dtype == torch.float32
    assert float(value) == pytest.approx(np.mean((LOGITS - NUMBERS) ** 2), rel=2e-2)


def test_functions_of_a_batch_are_averaged_by_items():
    by_item = as_metric(lambda o, t: (o - t).abs().mean(1), "minimise")
    by_batch = as_metric(lambda o, t: float((o - t).abs().mean()), "minimise")
    expected = np.mean(np.abs(LOGITS - NUMBERS))
    assert score(by_item, LOGITS, NUMBERS) == pytest.approx(expected)
    assert score(by_batch, LOGITS, NUMBERS) == pytest.approx(expected)


def test_what_is_better():
    nan = float("nan")
    up, down = METRICS.get("accuracy"), METRICS.get("relative-l2")
    assert up.better(2, 1) and not up.better(1, 2) and down.better(1, 2) and not down.better(2, 1)
    assert not any(metric.better(a, b) for metric in (up, down) for a, b in ((nan, 1), (1, nan), (1, 1)))
