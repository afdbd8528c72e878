"""Where data sets are looked for, and what is said when they are not there."""

from __future__ import annotations

import os
import time

import pytest

import eclose
from eclose.algebra.errors import RequestError
from support import data_sets

WANTED = {
    "cifar10": ["cifar-10-batches-py/", "data_batch_1", "test_batch", "cifar-10-batches-bin/", "data_batch_1.bin",
                "train_0.npz"],
    "cifar100": ["cifar-100-python/", "train, test", "cifar-100-binary/", "train.bin, test.bin"],
    "svhn": ["svhn/", "train_32x32.mat", "test_32x32.mat"],
    "imagenet16-120": ["ImageNet16/", "train_data_batch_1", "val_data"],
    "imagenet": ["imagenet/", "train, val", "a folder for each class"],
    "mnist": ["MNIST/raw/", "train-images-idx3-ubyte", "t10k-labels-idx1-ubyte", "mnist.npz"],
    "fashion-mnist": ["FashionMNIST/raw/", "train-images-idx3-ubyte", ".gz or not"],
}  # fmt: skip


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ECLOSE_DATA", raising=False)
    return tmp_path / "home"


@pytest.mark.parametrize("name", WANTED)
def test_a_missing_data_set_says_which_files_go_where(name, home, monkeypatch, tmp_path):
    monkeypatch.setenv("ECLOSE_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(RequestError) as raised:
        eclose.task(name)
    message = str(raised.value)
    for text in [*WANTED[name], repr(name), str(tmp_path / "elsewhere"), str(home / ".cache/eclose"), "--data",
                 "ECLOSE_DATA"]:  # fmt: skip
        assert text in message
    assert "\n" not in message


def test_every_task_that_needs_files_is_listed_here():
    from eclose.tasks import TASKS

    assert {entry.name for entry in TASKS} - {"digits", "tabular"} == set(WANTED)


def test_data_comes_before_the_variable_and_that_before_the_cache(home, monkeypatch, tmp_path):
    places = {place: tmp_path / place for place in ("option", "variable")} | {"cache": home / ".cache" / "eclose"}
    kinds = {"option": "compact", "variable": "binary", "cache": "python 2"}
    for place, root in places.items():
        root.mkdir(parents=True)
        data_sets.write_cifar10(root, kinds[place])
    monkeypatch.setenv("ECLOSE_DATA", str(places["variable"]))
    opened = _opened(monkeypatch)
    eclose.task("cifar10", data=str(places["option"]))
    eclose.task("cifar10")
    monkeypatch.delenv("ECLOSE_DATA")
    eclose.task("cifar10")
    assert opened == [(places[place] / folder).resolve() for place, folder in (
        ("option", "cifar10"), ("variable", "cifar-10-batches-bin"), ("cache", "cifar-10-batches-py"))]  # fmt: skip


def _opened(monkeypatch):
    from eclose.tasks import images

    opened, read = [], images._read
    monkeypatch.setattr(images, "_read", lambda *facts: opened.append(facts[2]) or read(*facts))
    return opened


def test_the_cache_is_used_where_the_variable_leads_nowhere_or_to_other_data(home, monkeypatch, tmp_path):
    data_sets.write_idx(home / ".cache" / "eclose", "mnist", True)
    monkeypatch.setenv("ECLOSE_DATA", str(tmp_path / "nothing"))
    assert len(eclose.task("mnist", valid=20).part("test")) == 20
    (tmp_path / "nothing").mkdir()
    assert len(eclose.task("mnist", valid=20).part("test")) == 20


def test_only_the_folder_given_is_looked_in(home, tmp_path):
    data_sets.write_idx(home / ".cache" / "eclose", "mnist", False)
    with pytest.raises(RequestError, match="not found under"):
        eclose.task("mnist", data=str(tmp_path))
    with pytest.raises(RequestError, match=r"nowhere' does not exist"):
        eclose.task("mnist", data=str(tmp_path / "nowhere"))
    for wrong in (5, ["x"], True):
        with pytest.raises(RequestError, match="folder where the files are"):
            eclose.task("mnist", data=wrong)


def test_paths_with_a_tilde_and_path_objects(home):
    data_sets.write_idx(home / "my data", "mnist", False)
    assert len(eclose.task("mnist", data="~/my data", valid=20).part("test")) == 20
    assert len(eclose.task("mnist", data=home / "my data", valid=20).part("test")) == 20


def test_files_that_are_partly_there_are_named(home, tmp_path):
    data_sets.write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "data_batch_4").unlink()
    with pytest.raises(RequestError, match=r"cifar-10-batches-py lacks data_batch_4\)"):
        eclose.task("cifar10", data=str(tmp_path))


def test_a_file_fetched_again_is_read_again(home, tmp_path):
    data_sets.write_idx(tmp_path, "mnist", False)
    before = eclose.task("mnist", data=str(tmp_path), valid=20).fingerprint()
    path = tmp_path / "mnist" / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    os.utime(path, (time.time() + 10, time.time() + 10))
    assert eclose.task("mnist", data=str(tmp_path), valid=20).fingerprint() != before
