"""Data sets as their home pages publish them: read whole, and refused in one line when damaged or hostile."""

from __future__ import annotations

import os
import pickle
import struct

import numpy as np
import pytest
import torch

import eclose
from eclose.algebra.errors import RequestError
from eclose.tasks.readers.idx import read_idx
from eclose.tasks.readers.matlab import read_mat
from eclose.tasks.readers.pickles import read_pickle
from support import data_sets

HALF = "half-of-test"
FORMS = {
    **{f"cifar10 {form}": ("cifar10", lambda root, form=form: data_sets.write_cifar10(root, form), 0.5)
       for form in ("python 2", "protocol 2", "protocol 3", "protocol 4", "protocol 5", "binary", "compact")},
    **{f"cifar100 {form}": ("cifar100", lambda root, form=form: data_sets.write_cifar100(root, form), 0.5)
       for form in ("python 2", "protocol 4", "binary")},
    "svhn compressed": ("svhn", data_sets.write_svhn, 0.5),
    "svhn plain": ("svhn", lambda root: data_sets.write_svhn(root, False), 0.5),
    "svhn big-endian": ("svhn", lambda root: data_sets.write_svhn(root, True, ">"), 0.5),
    "imagenet16 python 2": ("imagenet16-120", lambda root: data_sets.write_imagenet16(root, "python 2"), HALF),
    "imagenet16 protocol 4": ("imagenet16-120", data_sets.write_imagenet16, HALF),
    "mnist idx": ("mnist", lambda root: data_sets.write_idx(root, "MNIST/raw", False), 20),
    "mnist idx.gz": ("mnist", lambda root: data_sets.write_idx(root, "mnist", True), 20),
    "mnist compact": ("mnist", data_sets.write_compact_mnist, 20),
    "fashion-mnist idx": ("fashion-mnist", lambda root: data_sets.write_idx(root, "FashionMNIST/raw", False), 20),
    "fashion-mnist idx.gz": ("fashion-mnist", lambda root: data_sets.write_idx(root, "fashion-mnist", True), 20),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_images_that_were_written(form, tmp_path):
    name, write, valid = FORMS[form]
    (images, labels), (test_images, test_labels) = write(tmp_path)
    task = eclose.task(name, data=str(tmp_path), valid=valid)
    assert task.input == images.shape[1:]
    assert task.output == eclose.Classes(len(np.unique(labels)))
    if valid == "half-of-test":
        train, both = task.part("train").resident(), rows(task, "valid", "test")
        assert both == sorted(zip(map(bytes, test_images), test_labels.tolist(), strict=True))
    else:
        train = task.part("search").resident()
        np.testing.assert_array_equal(task.part("test").resident()[0], test_images)
        np.testing.assert_array_equal(task.part("test").resident()[1], test_labels)
    assert train[0].dtype == torch.uint8 and train[1].dtype == torch.int64
    np.testing.assert_array_equal(train[0], images)
    np.testing.assert_array_equal(train[1], labels)


def rows(task: eclose.Task, *parts: str) -> list[tuple[bytes, int]]:
    pairs = [task.part(part).resident() for part in parts]
    return sorted(
        (bytes(image.numpy()), int(label))
        for inputs, labels in pairs
        for image, label in zip(inputs, labels, strict=True)
    )


def test_the_files_may_lie_in_the_folder_given_itself(tmp_path):
    data_sets.write_cifar10(tmp_path)
    task = eclose.task("cifar10", data=str(tmp_path / "cifar-10-batches-py"))
    assert len(task.part("train")) == len(task.part("valid")) == 50


DAMAGED = {
    "cifar10": (data_sets.write_cifar10, "cifar-10-batches-py/data_batch_3"),
    "cifar10 binary": (lambda root: data_sets.write_cifar10(root, "binary"), "cifar-10-batches-bin/data_batch_3.bin"),
    "cifar10 compact": (lambda root: data_sets.write_cifar10(root, "compact"), "cifar10/train_3.npz"),
    "cifar100": (data_sets.write_cifar100, "cifar-100-python/train"),
    "cifar100 binary": (lambda root: data_sets.write_cifar100(root, "binary"), "cifar-100-binary/test.bin"),
    "svhn": (data_sets.write_svhn, "svhn/test_32x32.mat"),
    "svhn plain": (lambda root: data_sets.write_svhn(root, False), "svhn/test_32x32.mat"),
    "imagenet16-120": (data_sets.write_imagenet16, "ImageNet16/val_data"),
    "mnist": (lambda root: data_sets.write_idx(root, "mnist", False), "mnist/train-images-idx3-ubyte"),
    "mnist gz": (lambda root: data_sets.write_idx(root, "mnist", True), "mnist/t10k-labels-idx1-ubyte.gz"),
    "mnist compact": (data_sets.write_compact_mnist, "mnist/mnist.npz"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_file_cut_off_anywhere_is_one_line_that_names_it(case, tmp_path):
    write, name = DAMAGED[case]
    write(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    for kept in (0, 1, 3, 40, len(content) // 2 + 1, len(content) - 1):
        path.write_bytes(content[:kept])
        with pytest.raises(RequestError, match=str(path).replace("\\", ".")) as raised:
            eclose.task(case.split()[0], data=str(tmp_path), valid=0.5)
        assert "\n" not in str(raised.value)
    path.unlink()
    path.mkdir()
    with pytest.raises(RequestError, match=path.name):
        eclose.task(case.split()[0], data=str(tmp_path))


@pytest.mark.parametrize("case", DAMAGED)
def test_noise_instead_of_a_file_is_refused(case, tmp_path):
    write, name = DAMAGED[case]
    write(tmp_path)
    path = tmp_path / name
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    for _ in range(20):
        damaged = bytearray(content)
        for at in rng.integers(0, min(len(content), 400), 8):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged)
        try:  # pixels may change unnoticed; anything else is refused in one line
            eclose.task(case.split()[0], data=str(tmp_path), valid=0.5)
        except RequestError as error:
            assert "\n" not in str(error)
    path.write_bytes(rng.bytes(5_000))
    with pytest.raises(RequestError, match=path.name):
        eclose.task(case.split()[0], data=str(tmp_path))


class Hostile:
    """Calls a function when it is unpickled in the usual way."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("where", ["whole", "entry", "inside"])
def test_a_pickle_that_calls_something_is_refused_and_not_executed(protocol, where, tmp_path):
    marker = tmp_path / "executed"
    call = Hostile(os.system, f"touch {marker}")
    content = {
        "whole": call,
        "entry": {"data": np.zeros((1, 3072), np.uint8), "labels": call},
        "inside": {"data": [call]},
    }
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps(content[where], protocol=protocol))
    with pytest.raises(RequestError, match="system") as raised:
        read_pickle(path)
    assert str(path) in str(raised.value) and not marker.exists()
    pickle.loads(path.read_bytes())  # the pickle does what it says to whoever unpickles freely
    assert marker.exists()


@pytest.mark.parametrize("function", [eval, exec, getattr, __import__, print, open, pickle.loads, np.load, torch.load])
def test_no_function_can_be_reached_from_a_pickle(function, tmp_path):
    path = tmp_path / "train"
    path.write_bytes(pickle.dumps({"data": Hostile(function, "1")}))
    with pytest.raises(RequestError, match="global"):
        read_pickle(path)


@pytest.mark.parametrize(
    "stream",
    [
        b"cos\nsystem\n(S'true'\ntR.",  # the oldest form
        b"(S'true'\nios\nsystem\n.",
        b"(cos\nsystem\nS'true'\no.",
        b"\x80\x04\x8c\x05numpy\x8c\x12dtype.__init__.real\x93.",  # a path of attributes
        b"\x80\x04\x8c\x05numpy\x8c\x0fcore.os.systemx\x93.",
        b"\x80\x02\x82\x01.",  # an extension code
        b"\x80\x02U\x01xQ.",  # a reference outside the file
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n}U\x08__code__U\x01xs\x86b.",
        b"\x80\x02]q\x00h\x00a0.",
        b"\x80\x02}(U\x04dataK\x01u",
    ],
)
def test_other_ways_of_naming_things_are_refused(stream, tmp_path):
    path = tmp_path / "train"
    path.write_bytes(stream)
    with pytest.raises(RequestError, match="train"):
        read_pickle(path)


def test_arrays_of_objects_and_texts_are_refused(tmp_path):
    path = tmp_path / "train"
    for array in (np.array([{}, None], object), np.array(["a"]), np.zeros(2, "M8[s]"), np.zeros(2, [("a", "i4")])):
        path.write_bytes(pickle.dumps({"data": array}, protocol=4))
        with pytest.raises(RequestError):
            read_pickle(path)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_plain_values_survive_a_pickle(protocol, tmp_path):
    arrays = {
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(4, dtype=">i4"),
        "empty": np.zeros((0, 3), np.uint8),
        "flags": np.array([True, False]),
    }
    path = tmp_path / "train"
    plain = {"number": 3, "list": [1, (2.5, "x")], "scalar": np.float32(0.5), b"bytes": "text"}
    path.write_bytes(pickle.dumps({**arrays, **plain}, protocol=protocol))
    read = read_pickle(path)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    assert {key: read[key] for key in ("number", "list", "scalar", "bytes")} == {
        "number": 3, "list": [1, [2.5, "x"]], "scalar": 0.5, "bytes": "text",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("no labels", {"labels": None}, "no 'labels' entry"),
        ("too few labels", {"labels": [0] * 19}, "19 labels"),
        ("float pixels", {"data": np.zeros((20, 3072))}, "float64, not uint8"),
        ("float labels", {"labels": [0.5] * 20}, "no plain list of labels"),
        ("label out of range", {"labels": [10] * 20}, "label 10 in the train part of 'cifar10' is out of range"),
        ("negative label", {"labels": [-1] * 20}, "label -1"),
        ("ragged", {"data": [[1, 2], [3]]}, "data_batch_2"),
        ("narrow", {"data": np.zeros((20, 3071), np.uint8)}, "pixel values"),
        ("a class too few", {"labels": [0] * 20}, "class"),
    ],
)
def test_pickles_of_other_content_are_refused(name, change, message, tmp_path):
    (_, labels), _ = data_sets.write_cifar10(tmp_path)
    content = {"labels": labels[20:40].tolist(), "data": np.zeros((20, 3072), np.uint8)} | change
    content = {key: value for key, value in content.items() if value is not None}
    batches = ("data_batch_2",) if name != "a class too few" else [f"data_batch_{n}" for n in range(1, 6)]
    for batch in batches:
        (tmp_path / "cifar-10-batches-py" / batch).write_bytes(pickle.dumps(content))
    with pytest.raises(RequestError, match=message):
        eclose.task("cifar10", data=str(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\x08",
        b"\0\0\x08\x01\0\0",
        b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0",  # floats
        b"\0\0\x08\x01\0\0\0\x02a",
        b"\0\0\x08\x01\0\0\0\x01ab",
        b"\0\0\x08\x03" + struct.pack(">3I", 2**22, 2**21, 2**21),  # 2**64 bytes, which is 0 in 64 bits
        b"\x1f\x8b\x08\0",
    ],
)
def test_idx_heads_that_lie_are_refused(content, tmp_path):
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(content)
    with pytest.raises(RequestError, match="fetch it again"):
        read_idx(path)


def test_idx_and_matlab_arrays_of_any_shape(tmp_path):
    path = tmp_path / "x"
    for shape in ((5,), (2, 3), (0, 4), (2, 3, 4, 1)):
        array = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
        path.write_bytes(data_sets.idx(array))
        np.testing.assert_array_equal(read_idx(path), array)
    for shape in ((5, 1), (2, 3), (2, 3, 4), (1, 1)):
        array = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
        path.write_bytes(data_sets.matlab({"a": array, "longer_name": array + 1.0}))
        found = read_mat(path)
        np.testing.assert_array_equal(found["a"], array)
        np.testing.assert_array_equal(found["longer_name"], array + 1)


@pytest.mark.parametrize("arrays", [{"X": np.zeros((32, 32, 3, 2), np.uint8)}, {"y": np.ones((2, 1))},
                                    {"X": np.zeros((32, 32, 2), np.uint8), "y": np.ones((2, 1))},
                                    {"X": np.zeros((32, 32, 1, 2), np.uint8), "y": np.ones((2, 1))},
                                    {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.full((2, 1), 11.0)},
                                    {"X": np.zeros((32, 32, 3, 2)), "y": np.ones((2, 1))},
                                    {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.ones((3, 1))}])  # fmt: skip
def test_matlab_files_that_are_not_svhn_are_refused(arrays, tmp_path):
    data_sets.write_svhn(tmp_path)
    (tmp_path / "svhn" / "train_32x32.mat").write_bytes(data_sets.matlab(arrays))
    with pytest.raises(RequestError, match="train_32x32"):
        eclose.task("svhn", data=str(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        {"labels": np.zeros(3)},
        {"residual": np.zeros((3, 2, 32, 32)), "labels": np.zeros(2)},
        {"residual": np.zeros((3, 2, 32, 32), np.uint8), "labels": np.array([{}, {}])},
    ],
)
def test_archives_of_other_content_are_refused(content, tmp_path):
    data_sets.write_cifar10(tmp_path, "compact")
    np.savez(tmp_path / "cifar10" / "train_1.npz", **content)
    with pytest.raises(RequestError, match=r"train_1\.npz"):
        eclose.task("cifar10", data=str(tmp_path))


def test_a_single_array_is_no_archive(tmp_path):
    data_sets.write_compact_mnist(tmp_path)
    with (tmp_path / "mnist" / "mnist.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(RequestError, match=r"mnist\.npz"):
        eclose.task("mnist", data=str(tmp_path))
