"""A user's own data: every way to give them, and what is read off them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import eclose
from eclose import Classes, Map, Task, Tokens, Values
from eclose.tasks.metrics import Metric

RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 3
IMAGES = RNG.normal(size=(60, 2, 6, 8)).astype(np.float32)


class Pairs(Dataset):
    """A map-style dataset that lists nothing about its labels."""

    def __init__(self, inputs, targets):
        self.inputs, self.outcomes = torch.as_tensor(inputs), torch.as_tensor(targets)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.outcomes[index]


class Listed(Pairs):
    """A map-style dataset with its labels in `targets`, as torchvision's have them."""

    @property
    def targets(self):
        return self.outcomes.tolist()


FORMS = {
    "arrays": lambda x, y: (x, y),
    "list of arrays": lambda x, y: [x, y],
    "tensors": lambda x, y: (torch.as_tensor(x), torch.as_tensor(y)),
    "nested lists": lambda x, y: (x.tolist(), y.tolist()),
    "TensorDataset": lambda x, y: TensorDataset(torch.as_tensor(x), torch.as_tensor(y)),
    "Dataset": Listed,
    "list of items": lambda x, y: [(torch.as_tensor(a), int(b)) for a, b in zip(x, y, strict=True)],
    "DataLoader": lambda x, y: DataLoader(Listed(x, y), batch_size=7),
}


def gathered(part) -> tuple[np.ndarray, np.ndarray]:
    batches = list(part.batches(11))
    return tuple(np.concatenate([np.asarray(batch[n]) for batch in batches]) for n in (0, 1))  # type: ignore[return-value]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_classification_data(form):
    make = FORMS[form]
    task = Task(make(IMAGES, LABELS), make(IMAGES[:15], LABELS[:15]), make(IMAGES[:6], LABELS[:6]), classes=3)
    assert (task.input, task.output) == ((2, 6, 8), Classes(3))
    assert (task.loss.name, task.metric.name, task.metric.direction) == ("cross-entropy", "accuracy", "maximise")
    assert [len(task.part(part)) for part in ("train", "valid", "test")] == [60, 15, 6]
    inputs, labels = gathered(task.part("train"))
    np.testing.assert_array_equal(inputs, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("DataLoader",)])
def test_a_valid_part_is_held_out(form):
    task = Task(FORMS[form](IMAGES, LABELS), classes=3, valid_fraction=0.25)
    assert [len(task.part(part)) for part in ("train", "valid", "search")] == [45, 15, 60]
    pieces = [gathered(task.part(part)) for part in ("train", "valid")]
    together = sorted(image.tobytes() for inputs, _ in pieces for image in inputs)
    assert together == sorted(image.tobytes() for image in IMAGES)
    if form not in ("list of items",):  # which lists no labels
        assert np.bincount(pieces[1][1]).tolist() == [5, 5, 5]
    again = gathered(Task(FORMS[form](IMAGES, LABELS), classes=3, valid_fraction=0.25).part("valid"))
    other = gathered(Task(FORMS[form](IMAGES, LABELS), classes=3, valid_fraction=15, split_seed=7).part("valid"))
    np.testing.assert_array_equal(pieces[1][0], again[0])
    assert not np.array_equal(other[0], again[0])
    assert not task.has("test") and task.has("valid") and task.has("search")


def test_the_split_does_not_depend_on_how_data_are_given():
    tasks = [Task(FORMS[form](IMAGES, LABELS), classes=3) for form in ("arrays", "TensorDataset", "Dataset")]
    for task in tasks[1:]:
        np.testing.assert_array_equal(gathered(task.part("valid"))[0], gathered(tasks[0].part("valid"))[0])


def test_the_search_part_keeps_the_order_of_the_data():
    inputs, labels = Task((IMAGES, LABELS)).part("search").resident()
    np.testing.assert_array_equal(inputs, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize("sizes", [(40, 40, 40), (100, 10, 10), (97, 2, 21), (2, 2, 116)])
@pytest.mark.parametrize("held", [0.2, 0.5, 24, 3])
def test_splits_are_stratified_as_evenly_as_can_be(sizes, held):
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(3), sizes))
    task = Task((np.zeros((120, 4), np.float32), labels), valid_fraction=held)
    counts = np.bincount(task.part("valid").resident()[1], minlength=3)
    wanted = held if isinstance(held, int) else round(120 * held)
    assert counts.sum() == wanted
    exact = np.array(sizes) * wanted / 120
    assert (counts >= 1).all() and (counts < sizes).all()  # every class on both sides
    assert (np.abs(counts - exact) <= 1 + (exact < 1).sum()).all()


def test_without_stratification_the_split_ignores_labels():
    task = Task((IMAGES, LABELS), stratify=False)
    other = Task((IMAGES, np.roll(LABELS, 1)), stratify=False)
    np.testing.assert_array_equal(task.part("valid").resident()[0], other.part("valid").resident()[0])


X = {
    "image": np.zeros((12, 3, 6, 8), np.float32),
    "signal": np.zeros((12, 5, 9), np.float32),
    "row": np.zeros((12, 7), np.float32),
    "tokens": np.arange(96).reshape(12, 8) % 11,
    "picture": np.zeros((12, 3, 6, 8), np.uint8),
}
ZEROS, ONES = np.zeros, lambda *shape: (np.arange(np.prod(shape)) % 4).reshape(shape)
INFERRED = [
    # inputs, targets, options: input, output, loss, metric
    ("image", ONES(12), {}, (3, 6, 8), Classes(4), "cross-entropy", "accuracy"),
    ("picture", ONES(12).astype(np.uint8), {}, (3, 6, 8), Classes(4), "cross-entropy", "accuracy"),
    ("row", ONES(12), {"classes": 6, "allow_missing_classes": True}, (7,), Classes(6), "cross-entropy", "accuracy"),
    ("row", ZEROS(12), {}, (7,), Values(1), "mean-squared-error", "mean-squared-error"),
    ("row", np.arange(12) % 2 == 1, {}, (7,), Classes(2), "cross-entropy", "accuracy"),
    ("row", ONES(12), {"loss": "mean-squared-error"}, (7,), Values(1), "mean-squared-error", "mean-squared-error"),
    ("signal", ZEROS((12, 3)), {}, (5, 9), Values(3), "mean-squared-error", "mean-squared-error"),
    ("signal", ZEROS((12, 3)), {"loss": "huber"}, (5, 9), Values(3), "huber", "mean-absolute-error"),
    ("signal", ZEROS((12, 9)), {}, (5, 9), Map(1), "mean-squared-error", "mean-squared-error"),
    ("signal", ZEROS((12, 9)), {"output": Values(9)}, (5, 9), Values(9), "mean-squared-error", "mean-squared-error"),
    ("image", ZEROS((12, 6, 8)), {}, (3, 6, 8), Map(1), "mean-squared-error", "mean-squared-error"),
    ("image", ZEROS((12, 2, 6, 8)), {}, (3, 6, 8), Map(2), "mean-squared-error", "mean-squared-error"),
    ("image", ZEROS((12, 2, 6, 8)), {"loss": "relative-l2"}, (3, 6, 8), Map(2), "relative-l2", "relative-l2"),
    ("image", ONES(12, 6, 8), {}, (3, 6, 8), Map(4), "cross-entropy", "accuracy"),
    ("image", ONES(12, 6, 8), {"loss": len}, (3, 6, 8), Map(4), "len", "accuracy"),
    ("image", ONES(12, 6, 8) > 1, {"loss": "binary-cross-entropy"}, (3, 6, 8), Map(1), "binary-cross-entropy",
     "binary-accuracy"),
    ("row", ONES(12, 5) > 2, {"loss": "binary-cross-entropy"}, (7,), Values(5), "binary-cross-entropy",
     "binary-accuracy"),
    ("row", ONES(12) % 2, {"loss": "binary-cross-entropy"}, (7,), Values(1), "binary-cross-entropy", "binary-accuracy"),
    ("signal", ONES(12, 5, 9) > 2, {"loss": "frame-negative-log-likelihood"}, (5, 9), Map(5),
     "frame-negative-log-likelihood", "frame-negative-log-likelihood"),
    ("tokens", ONES(12), {}, Tokens(8, 11), Classes(4), "cross-entropy", "accuracy"),
    ("tokens", X["tokens"], {}, Tokens(8, 11), Tokens(vocab=11), "cross-entropy", "accuracy"),
    ("tokens", X["tokens"], {"metric": "negative-log-likelihood"}, Tokens(8, 11), Tokens(vocab=11), "cross-entropy",
     "negative-log-likelihood"),
    ("tokens", ZEROS(12), {"input": Tokens(8, 50)}, Tokens(8, 50), Values(1), "mean-squared-error",
     "mean-squared-error"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "targets", "options", "input", "output", "loss", "metric"), INFERRED)
@pytest.mark.parametrize("form", ["arrays", "Dataset"])
def test_what_is_read_off_the_data(kind, targets, options, input, output, loss, metric, form):
    if form == "Dataset":
        options = {"output": output, "input": input, **options}
        options.pop("classes", None)
    make, valid = FORMS[form], {"valid": FORMS[form](X[kind], targets)}
    task = Task(make(X[kind], targets), **valid, **options)
    assert (task.input, task.output, task.loss.name, task.metric.name) == (input, output, loss, metric)
    inputs, wanted = next(iter(task.part("train").batches(12)))
    labels = loss in ("cross-entropy", "len")
    if form == "arrays":
        assert wanted.dtype == (torch.int64 if labels else torch.float32)
        assert inputs.dtype == {"picture": torch.uint8, "tokens": torch.int64}.get(kind, torch.float32)
    channels = (
        output.vocab if isinstance(output, Tokens) else output.count if not isinstance(output, Map) else output.channels
    )
    spatial = (8,) if isinstance(output, Tokens) else input[1:] if isinstance(output, Map) else ()
    outputs = torch.randn(12, channels, *spatial, requires_grad=True)
    if loss != "len":
        value = task.loss(outputs, wanted)
        value.backward()
        total, count = task.metric.measure(outputs.detach(), wanted)
        assert value.dim() == 0 and outputs.grad.abs().sum() > 0 and np.isfinite(float(total / count))


def test_own_functions_for_loss_and_metric():
    def quartic(outputs, targets):
        return (outputs - targets) ** 4  # one value an item and output: the mean is taken

    def worst(outputs, targets):
        return float((outputs - targets).abs().max())

    task = Task((X["row"], ZEROS((12, 2))), loss=quartic, metric=worst, direction="minimise")
    assert (task.loss.name, task.metric.name, task.metric.direction) == ("quartic", "worst", "minimise")
    outputs, targets = torch.full((3, 2), 2.0), torch.zeros(3, 2)
    assert float(task.loss(outputs, targets)) == 16.0
    total, count = task.metric.measure(outputs, targets)
    assert float(total / count) == 2.0 and task.metric.better(1.0, 2.0)

    class Doubled(torch.nn.Module):
        def forward(self, outputs, targets):
            return 2 * torch.nn.functional.mse_loss(outputs, targets)

    task = Task((X["row"], ZEROS((12, 2))), loss=Doubled(), metric=Metric("m", "maximise", lambda o, t: (o.sum(), t)))
    assert task.loss.name == "Doubled" and float(task.loss(outputs, targets)) == 8.0
    assert task.metric.name == "m" and task.metric.better(2.0, 1.0)


def test_label_smoothing_reaches_the_loss():
    outputs, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    task = Task((IMAGES, LABELS))
    expected = torch.nn.CrossEntropyLoss(label_smoothing=0.2)(outputs, targets)
    assert torch.allclose(task.loss(outputs, targets, label_smoothing=0.2), expected)


def test_labels_that_do_not_count_are_left_out_everywhere():
    labels = np.where(np.arange(60) < 6, -100, LABELS)
    task = Task((IMAGES, labels))
    assert task.output == Classes(3)
    assert sum(int((task.part(part).resident()[1] == -100).sum()) for part in ("train", "valid")) == 6
    outputs = torch.eye(3)[[0, 1, 2]] * 9
    total, count = task.metric.measure(outputs, torch.tensor([0, -100, 1]))
    assert float(total / count) == 50.0


@pytest.mark.parametrize("kind", ["float", "uint8", "row"])
def test_normalisation_against_numpy(kind):
    inputs = {"float": IMAGES * 3 + 5, "row": RNG.normal(size=(60, 4)) - 9}.get(kind)
    if kind == "uint8":
        inputs = RNG.integers(0, 256, (60, 3, 5, 5), dtype=np.uint8)
    task = Task((inputs, LABELS), normalise="train")
    train = task.part("train").resident()[0].numpy().astype(np.float64) / (255 if kind == "uint8" else 1)
    axes = tuple(axis for axis in range(train.ndim) if axis != 1)
    np.testing.assert_allclose(task.normalise[0], train.mean(axes), rtol=1e-6)
    np.testing.assert_allclose(task.normalise[1], train.std(axes), rtol=1e-6)
    prepared = task.prepare(task.part("train").resident()[0]).numpy()
    np.testing.assert_allclose(prepared.mean(axes), 0, atol=1e-4)
    np.testing.assert_allclose(prepared.std(axes), 1, atol=1e-4)
    shape = (1, -1) + (1,) * (train.ndim - 2)
    valid = task.part("valid").resident()[0]
    scaled = valid.numpy() / (255 if kind == "uint8" else 1)
    expected = (scaled - train.mean(axes).reshape(shape)) / train.std(axes).reshape(shape)
    np.testing.assert_allclose(task.prepare(valid).numpy(), expected, atol=1e-4)


def test_a_given_normalisation():
    for given in ((0.5, 2), ([0.5, 0.5], [2.0, 2.0]), (np.float32(0.5), np.array([2, 2]))):
        assert Task((IMAGES, LABELS), normalise=given).normalise == ((0.5, 0.5), (2.0, 2.0))
    flat = np.concatenate([IMAGES[:, :1], np.full_like(IMAGES[:, :1], 7)], axis=1)
    task = Task((flat, LABELS), normalise="train")  # a constant channel becomes 0, not NaN
    assert torch.equal(task.prepare(task.part("train").resident()[0])[:, 1], torch.zeros(48, 6, 8))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype(np.float64), lambda x: x.astype(">f4"), lambda x: x[::-1][::-1], np.asfortranarray,
        lambda x: torch.as_tensor(x).double(), lambda x: torch.as_tensor(x).requires_grad_(),
    ],
)  # fmt: skip
def test_how_numbers_are_stored_does_not_matter(change):
    task = Task((change(IMAGES), LABELS))
    assert task.part("train").resident()[0].dtype == torch.float32
    assert task.fingerprint() == Task((IMAGES, LABELS)).fingerprint()


def test_memory_maps_are_not_copied(tmp_path, recwarn):
    np.save(tmp_path / "x.npy", IMAGES)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    task = Task((mapped, LABELS), (IMAGES, LABELS))
    assert task.part("train").resident()[0].data_ptr() == mapped.ctypes.data
    assert not recwarn.list


def test_reading_an_example_moves_no_generator():
    generator = torch.Generator().manual_seed(3)
    loader = DataLoader(Listed(IMAGES, LABELS), batch_size=4, shuffle=True, generator=generator)
    before, own = torch.get_rng_state(), generator.get_state()
    task = Task(loader, DataLoader(Listed(IMAGES, LABELS), batch_size=4, shuffle=True))
    assert torch.equal(torch.get_rng_state(), before) and torch.equal(generator.get_state(), own)
    assert task.part("train").loader() is loader and len(task.part("train")) == 60


def test_a_dataset_that_changes_its_targets_is_not_checked_by_what_it_lists():
    data = Listed(IMAGES, LABELS + 5)
    data.target_transform = lambda label: label - 5
    task = Task(data, data, classes=3 + 5)
    assert task.output == Classes(8)


def test_the_public_names():
    for name in ("Task", "task", "Tokens", "Values", "Map", "Classes"):
        assert hasattr(eclose, name)
