"""Data and options that cannot be meant: each is refused in one line that says what and where."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from eclose import Classes, Map, Task, Tokens, Values
from eclose.algebra.errors import EcloseError, RequestError
from eclose.tasks.metrics import Metric

X = np.random.default_rng(0).normal(size=(12, 3, 6, 8)).astype(np.float32)
Y = np.arange(12) % 3
FLAT = X.reshape(12, -1)
NUMBERS = np.linspace(0, 1, 12)
WORDS = np.arange(96).reshape(12, 8) % 11


def changed(values, at, value):
    copy = np.array(values)
    copy[at] = value
    return copy


class Endless(IterableDataset):
    def __iter__(self):
        yield from ((torch.zeros(3), 0) for _ in range(4))


class Items(Dataset):
    """A dataset of the given items, or of what a function makes of an index."""

    def __init__(self, items, length=12):
        self.items, self.length = items, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.items(index) if callable(self.items) else self.items[index]


class Batches(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)


def loader(**options):
    return DataLoader(TensorDataset(torch.as_tensor(X), torch.as_tensor(Y)), **options)


CASES = {
    # what, train, options, message
    "no items": (lambda: (X[:0], Y[:0]), {}, "the train part is empty"),
    "no features": (lambda: (X[:, :0], Y), {}, "the train part is empty"),
    "one item": (lambda: (X[:1], Y[:1] + 1), {}, "held-out part cannot have 0.25 of 1"),
    "a valid part of size 0": (lambda: (X, Y), {"valid_fraction": 0.01}, "held-out part cannot have 0.01 of 12"),
    "a valid part of nothing": (lambda: (X, Y), {"valid_fraction": 0}, "held-out part cannot have 0 of 12"),
    "a valid part of all": (lambda: (X, Y), {"valid_fraction": 1.0}, "held-out part cannot have 1.0 of 12"),
    "a negative valid part": (lambda: (X, Y), {"valid_fraction": -3}, "held-out part cannot have -3"),
    "a NaN valid part": (lambda: (X, Y), {"valid_fraction": float("nan")}, "held-out part cannot have nan"),
    "a valid part that is a text": (lambda: (X, Y), {"valid_fraction": "some"}, "number of items or a share"),
    "a valid part that is a flag": (lambda: (X, Y), {"valid_fraction": True}, "number of items or a share"),
    "an empty valid part": (lambda: (X, Y), {"valid": (X[:0], Y[:0])}, "the valid part is empty"),
    "NaN inputs": (lambda: (changed(X, (5, 1, 2, 3), np.nan), Y), {}, r"train inputs hold NaN \(first in item 5\)"),
    "infinite inputs": (lambda: (changed(X, (7, 0), np.inf), Y), {}, "train inputs hold infinite values .* item 7"),
    "numbers too large": (lambda: (X.astype(float) * 1e200, Y), {}, "hold infinite values"),
    "NaN in the test part": (lambda: (X, Y), {"test": (X * np.nan, Y)}, "test inputs hold NaN .* item 0"),
    "NaN targets": (lambda: (X, changed(NUMBERS, 3, np.nan)), {}, r"train targets hold NaN \(first in item 3\)"),
    "infinite targets": (lambda: (X, changed(NUMBERS, 3, -np.inf)), {}, "train targets hold infinite values"),
    "fewer targets": (lambda: (X, Y[:11]), {}, "12 inputs but 11 targets"),
    "a single number": (lambda: (X, np.int64(3)), {}, "one input and one target an item"),
    "complex inputs": (lambda: (X.astype(complex), Y), {}, "train inputs must be numbers, not complex128"),
    "complex tensors": (lambda: (torch.as_tensor(X).to(torch.cfloat), Y), {}, "real numbers"),
    "texts": (lambda: (X, np.array(["cat"] * 12)), {}, r"train targets must be numbers, not <U3 .*cat"),
    "objects": (lambda: (np.array([None] * 12), Y), {}, "objects"),
    "dates": (lambda: (np.zeros((12, 3), "M8[s]"), Y), {}, "must be numbers, not datetime64"),
    "ragged lists": (lambda: ([[1.0, 2.0], [1.0]], [0, 1]), {}, "items differ in shape"),
    "sparse tensors": (lambda: (torch.as_tensor(FLAT).to_sparse(), Y), {}, "dense tensor"),
    "negative labels": (lambda: (X, changed(Y, 4, -1)), {}, r"label -1 in the train part \(item 4\) is out of range"),
    "labels too large": (lambda: (X, changed(Y, 4, 3)), {"classes": 3}, r"label 3 .*item 4.* the labels 0 to 2"),
    "labels from 1": (lambda: (X, Y + 1), {"classes": 3}, "label 3 in the train part"),
    "labels from 1, inferred": (lambda: (X, Y + 1), {}, "class 0 has no item in the train part"),
    "a stray label": (lambda: (X, changed(Y, 0, 10**12)), {}, "9 items for 1000000000001 classes"),
    "one class": (lambda: (X, Y * 0), {}, "nothing to tell apart"),
    "a class missing from train": (lambda: (X, Y % 2), {"classes": 3}, "class 2 has no item in the train part"),
    "a class missing from valid": (lambda: (X, Y), {"valid": (X, Y % 2)}, "class 2 has no item in the valid part"),
    "a class missing from test": (lambda: (X, Y), {"test": (X, Y % 2 + 1)}, "class 0 has no item in the test part"),
    "too few held out": (lambda: (X, Y), {"valid_fraction": 2}, "the valid part has 2 items for 3 classes"),
    "a test label nobody trains on": (lambda: (X, Y), {"test": (X, Y + 1)}, "class 3 has no item in the train part"),
    "float labels": (lambda: (X, Y.astype(float)), {"classes": 3}, r"float32, but Classes\(3\) needs whole-number"),
    "one-hot labels": (lambda: (X, np.eye(3)[Y]), {"classes": 3}, "needs whole-number labels"),
    "one-hot whole numbers": (lambda: (X, np.eye(3, dtype=int)[Y]), {"classes": 3}, "needs one label an item"),
    "labels with an axis": (lambda: (X, Y[:, None]), {"classes": 3}, r"shape \(12, 1\), but Classes\(3\) needs one"),
    "labels with an axis, inferred": (lambda: (X, Y[:, None]), {}, "cannot tell what targets of shape"),
    "labels of positions": (lambda: (X, np.zeros((12, 6, 7), int)), {"output": Map(3)}, r"needs \(12, 6, 8\)"),
    "a map of another size": (lambda: (X, np.zeros((12, 1, 8, 6))), {"output": Map(1)}, r"needs \(12, 1, 6, 8\)"),
    "a map of other channels": (lambda: (X, np.zeros((12, 2, 6, 8))), {"output": Map(3)}, r"needs \(12, 3, 6, 8\)"),
    "a map over rows": (lambda: (FLAT, FLAT), {"output": Map(1)}, "needs inputs with positions"),
    "a map over words": (lambda: (WORDS, WORDS), {"output": Map(11)}, r"Tokens\(vocab=...\)"),
    "values that would broadcast": (lambda: (X, NUMBERS[:, None]), {"output": Values(3)}, r"needs \(12, 3\)"),
    "values of another number": (lambda: (X, np.zeros((12, 2))), {"output": Values(3)}, r"needs \(12, 3\)"),
    "values with a third axis": (lambda: (X, np.zeros((12, 3, 1))), {"output": Values(3)}, r"needs \(12, 3\)"),
    "words of another length": (lambda: (WORDS, WORDS[:, :7]), {"output": Tokens(vocab=11)}, r"needs \(12, 8\)"),
    "words out of the vocabulary": (lambda: (WORDS, Y), {"input": Tokens(8, 10)}, "tokens from 0 to 10"),
    "negative words": (lambda: (WORDS - 1, Y), {}, "token -1; tokens start at 0"),
    "words as floats": (lambda: (WORDS.astype(float), Y), {"input": Tokens(8, 11)}, "whole-number tokens"),
    "words of another number": (lambda: (WORDS, Y), {"input": Tokens(9, 11)}, r"shape \(8,\) .* takes \(9,\)"),
    "whole numbers as pictures": (lambda: (X.astype(int), Y), {}, "neither images .* nor token sequences"),
    "whole numbers as a shape": (lambda: (X.astype(int), Y), {"input": (3, 6, 8)}, "uint8 images or float32 values"),
    "another rank": (lambda: (FLAT, Y), {"input": (3, 6, 8)}, r"shape \(144,\) an item, .* takes \(3, 6, 8\)"),
    "channels last": (lambda: (np.zeros((12, 6, 8, 3), np.uint8), Y), {}, "channels last; give them channels first"),
    "a valid part of another shape": (lambda: (X, Y), {"valid": (X[:, :2], Y)}, "valid inputs have shape"),
    "a valid part of another kind": (lambda: (X, Y), {"valid": (X.astype(np.uint8), Y)}, "must be alike"),
    "yes or no or more": (lambda: (X, Y), {"loss": "binary-cross-entropy"}, r"from 0 to 1, but .*\(item 2\) has 2"),
    "frames below": (
        lambda: (X, X - 5), {"loss": "frame-negative-log-likelihood"}, "from 0 to 1, but the train part",
    ),
    "cross-entropy of numbers": (lambda: (X, NUMBERS), {"loss": "cross-entropy"}, r"labels \(int64\)"),
    "accuracy of numbers": (lambda: (X, NUMBERS), {"metric": "accuracy"}, "compares logits with whole-number labels"),
    "squares of classes": (
        lambda: (X, Y), {"classes": 3, "loss": "mean-squared-error"}, "compares numbers, but the output",
    ),
    "squares as a metric of classes": (lambda: (X, Y), {"metric": "mean-squared-error"}, "compares numbers"),
    "an unknown loss": (lambda: (X, Y), {"loss": "cross_entropy"}, "did you mean 'cross-entropy'"),
    "an unknown metric": (lambda: (X, Y), {"metric": "accuracies"}, "did you mean 'accuracy'"),
    "a loss that is a number": (lambda: (X, Y), {"loss": 3}, "loss must be a name or a function"),
    "a metric that is a number": (lambda: (X, Y), {"metric": 3}, "metric must be a name"),
    "a metric without direction": (lambda: (X, Y), {"metric": max}, "give direction='maximise' or 'minimise'"),
    "an unknown direction": (lambda: (X, Y), {"metric": max, "direction": "maximize"}, "did you mean 'maximise'"),
    "a metric's other direction": (lambda: (X, Y), {"metric": "accuracy", "direction": "minimise"}, "says maximise"),
    "classes and output": (lambda: (X, Y), {"classes": 3, "output": Classes(3)}, "not both"),
    "half a class": (lambda: (X, Y), {"classes": 2.5}, "classes must be a whole number"),
    "no classes": (lambda: (X, Y), {"classes": 0}, "classes must be a whole number of at least 1"),
    "an output of nothing": (lambda: (X, Y), {"output": Values(0)}, "an output needs a whole number of at least 1"),
    "an output that is a text": (lambda: (X, Y), {"output": Classes("3")}, "an output needs a whole number"),
    "another output": (lambda: (X, Y), {"output": 3}, "output must be Classes, Map, Values or Tokens"),
    "another input": (lambda: (X, Y), {"input": "image"}, "input must be a shape"),
    "a negative input": (lambda: (X, Y), {"input": (3, -6, 8)}, "input must be a shape"),
    "a wrong seed": (lambda: (X, Y), {"split_seed": -1}, "seed is a whole number"),
    "a seed that is a text": (lambda: (X, Y), {"split_seed": "a"}, "seed is a whole number"),
    "a flag that is a number": (lambda: (X, Y), {"stratify": 1}, "stratify is true or false"),
    "another flag": (lambda: (X, Y), {"allow_missing_classes": None}, "allow_missing_classes is true or false"),
    "another augmentation": (lambda: (X, Y), {"augmentable": "flip"}, "augmentable is 'image' or None"),
    "rows that are flipped": (lambda: (FLAT, Y), {"augmentable": "image"}, r"\(channels, height, width\)"),
    "normalise: a typo": (lambda: (X, Y), {"normalise": "trains"}, "did you mean 'train'"),
    "normalise: a number": (lambda: (X, Y), {"normalise": 0.5}, "per channel, 'train' or None"),
    "normalise: channels": (lambda: (X, Y), {"normalise": ((0, 0), (1, 1))}, "3 means and 3 positive"),
    "normalise: zero": (lambda: (X, Y), {"normalise": (0, 0)}, "3 positive standard deviations"),
    "normalise: NaN": (lambda: (X, Y), {"normalise": (float("nan"), 1)}, "finite numbers"),
    "normalise: texts": (lambda: (X, Y), {"normalise": ("a", "b")}, "normalise needs numbers"),
    "normalise: None": (lambda: (X, Y), {"normalise": (None, None)}, "normalise needs numbers"),
    "normalise: words": (lambda: (WORDS, Y), {"normalise": "train"}, "token inputs are not normalised"),
    "nothing": (lambda: None, {}, "must be a pair .* not NoneType"),
    "a text": (lambda: "data.csv", {}, "must be a pair .* not str"),
    "a mapping": (lambda: {"x": X, "y": Y}, {}, "must be a pair .* not dict"),
    "inputs alone": (lambda: X, {}, "must be a pair .* not ndarray"),
    "three arrays": (lambda: (X, Y, Y), {}, r"pair \(input, target\), not ndarray"),
    "three tensors": (lambda: TensorDataset(*map(torch.as_tensor, (X, Y, Y))), {}, r"pair \(input, target\)"),
    "items that are mappings": (lambda: Items(lambda _: {"x": 1}), {"classes": 3}, r"pair \(input, target\), not dict"),
    "items that are pictures": (lambda: Items(lambda _: (object(), 1)), {"classes": 3}, "tensor or an array, not obj"),
    "labels that are names": (lambda: Items(lambda _: (torch.zeros(3), "cat")), {"classes": 3}, "array, not str"),
    "items that fail": (lambda: Items({}), {"classes": 3}, r"first item of the train part cannot be read \(KeyError"),
    "items with NaN": (lambda: Items(lambda _: (torch.full((3,), torch.nan), 1)), {"classes": 3}, "hold NaN"),
    "items of another rank": (lambda: Items(lambda _: (torch.zeros(3), 1)), {"classes": 3, "input": (1, 3)}, "shape"),
    "items of unknown classes": (lambda: Items(lambda _: (torch.zeros(3), 1)), {}, "give classes=10"),
    "items of unknown words": (lambda: Items(lambda _: (torch.zeros(3).long(), 1)), {}, r"input=Tokens\(length"),
    "items that count wrong": (lambda: Items(lambda _: (torch.zeros(3), 7)), {"classes": 3}, "label 7"),
    "items measured": (lambda: Items(lambda _: (torch.zeros(3), 1)), {"classes": 3, "normalise": "train"}, "as arrays"),
    "no items in a dataset": (lambda: Items({}, 0), {"classes": 3}, "the train part is empty"),
    "an endless dataset": (Endless, {"classes": 3}, "wrap it in a DataLoader"),
    "a loader to be split": (lambda: loader(batch_size=4), {}, "a loader cannot be split"),
    "a loader without length": (lambda: DataLoader(Endless(), batch_size=2), {"classes": 3}, "does not say how many"),
    "a loader without batches": (lambda: loader(batch_size=20, drop_last=True), {}, "gives no batch"),
    "a loader of items": (lambda: loader(batch_size=None), {"classes": 3}, "give it a batch_size"),
    "a loader of empty batches": (lambda: DataLoader(Batches(), batch_size=None), {"classes": 3}, "batch is empty"),
    "a loader of other batches": (
        lambda: loader(batch_size=4, collate_fn=lambda items: {"x": 1}), {"classes": 3}, r"pair .* not dict",
    ),
    "a loader of uneven batches": (
        lambda: loader(batch_size=4, collate_fn=lambda items: (torch.zeros(4, 3), torch.zeros(3).long())),
        {"classes": 3}, "4 inputs but 3 targets",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_refused_in_one_line(case):
    make, options, message = CASES[case]
    with pytest.raises(RequestError, match=message) as raised:
        Task(make(), **{"valid_fraction": 0.25, **options})
    text = str(raised.value)
    assert "\n" not in text and len(text) < 300


def test_an_unknown_option_of_a_task_names_itself():
    with pytest.raises(TypeError, match="normalize"):  # Python's own message, which is clear
        Task((X, Y), normalize="train")


@pytest.mark.parametrize("part", ["tset", "validation", 5, None])
def test_parts_that_are_not_there(part):
    task = Task((X, Y), (X, Y))
    with pytest.raises(RequestError, match="a task has the parts train, valid, test, search"):
        task.part(part)
    with pytest.raises(RequestError, match="no test part; give it with test="):
        task.part("test")


def test_what_may_be_missing_when_it_is_said():
    task = Task((X, Y % 2), classes=3, allow_missing_classes=True)
    assert task.output == Classes(3)
    assert Task((X, Y * 0), classes=1).output == Classes(1)


@pytest.mark.parametrize("size", [0, -1, 2.5, "all", True])
def test_batches_of_no_size(size):
    with pytest.raises(RequestError, match="size is a number of items"):
        next(Task((X, Y), (X, Y)).part("train").batches(size))


def test_loaders_cannot_be_joined():
    task = Task(loader(batch_size=4), loader(batch_size=4))
    with pytest.raises(RequestError, match="two loaders cannot be joined"):
        task.part("search")


def test_metrics_that_are_none():
    with pytest.raises(RequestError, match="needs a function"):
        Metric("m", "maximise", None)
    with pytest.raises(RequestError, match="did you mean 'minimise'"):
        Metric("m", "minimize", max)
    task = Task((X, Y), (X, Y), metric=lambda outputs, targets: "good", direction="maximise")
    with pytest.raises(RequestError, match="one number, or one an item, not str"):
        task.metric.measure(torch.zeros(3, 3), torch.zeros(3))


def test_losses_that_are_no_tensor():
    task = Task((X, Y), (X, Y), loss=lambda outputs, targets: 3.0)
    with pytest.raises(RequestError, match="returned float; it must return a tensor"):
        task.loss(torch.zeros(3, 3), torch.zeros(3))


@pytest.mark.parametrize(
    ("loss", "outputs", "targets"),
    [
        ("mean-squared-error", (5, 1), (5, 5)),
        ("mean-squared-error", (5, 3), (5,)),
        ("mean-squared-error", (5, 3), (3,)),
        ("mean-squared-error", (5, 3), (5, 1)),
        ("mean-squared-error", (5, 1, 4, 4), (5, 4, 1)),
        ("mean-absolute-error", (5, 1), (1, 5)),
        ("huber", (5, 2), (2, 5)),
        ("relative-l2", (5, 4), (1, 4)),
        ("binary-cross-entropy", (5, 4), (5, 1)),
        ("frame-negative-log-likelihood", (5, 4, 3), (5, 1, 3)),
        ("cross-entropy", (5, 3), (5, 1)),
        ("cross-entropy", (5, 3), (4,)),
        ("cross-entropy", (5, 3, 4), (5,)),
    ],
)
def test_shapes_that_would_meet_by_broadcasting_are_refused(loss, outputs, targets):
    from eclose.tasks import LOSSES, METRICS

    metric = {"cross-entropy": "accuracy", "binary-cross-entropy": "binary-accuracy"}.get(loss, loss)
    wanted = torch.zeros(targets, dtype=torch.long if loss == "cross-entropy" else torch.float32)
    functions = [LOSSES.get(loss)]
    if metric in METRICS:
        functions.append(METRICS.get(metric).measure)
    for function in functions:
        with pytest.raises(EcloseError, match="shape"):
            function(torch.zeros(outputs), wanted)
