"""The digits that ship, and the options of every image task."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eclose
from eclose.algebra.errors import RequestError
from support import data_sets

UCI_COUNTS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # optdigits.names, test part


def images(task: eclose.Task, part: str) -> tuple[np.ndarray, np.ndarray]:
    inputs, labels = task.part(part).resident()
    return inputs.numpy(), labels.numpy()


def test_the_digits_are_those_of_uci():
    task = eclose.task("digits")
    parts = [images(task, part) for part in ("train", "valid", "test")]
    pixels, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    assert pixels.shape == (1797, 1, 8, 8) and pixels.dtype == np.uint8 and (pixels.min(), pixels.max()) == (0, 255)
    assert np.bincount(labels).tolist() == UCI_COUNTS
    first = [0, 0, 5, 13, 9, 1, 0, 0]  # the first row of the first line of optdigits.tes, a zero
    assert any((np.round(image[0, 0] / 255 * 16) == first).all() for image in pixels[labels == 0])
    assert task.input == (1, 8, 8) and task.output == eclose.Classes(10) and task.augmentable is None


def test_the_digits_keep_their_attribution():
    folder = Path(eclose.__file__).parent / "tasks" / "data"
    about = (folder / "README.md").read_text()
    for text in ("10.24432/C50P49", "CC BY 4.0", "Alpaydin", "Kaynak", "creativecommons.org/licenses/by/4.0"):
        assert text in about


def test_the_digits_need_no_network_and_no_files(tmp_path):
    program = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise OSError(event)

sys.addaudithook(refuse)
import eclose
print(eclose.task("digits").fingerprint())
"""
    environment = {"HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == eclose.task("digits").fingerprint(), done.stderr


def test_the_parts_of_the_digits():
    task, again, other = eclose.task("digits"), eclose.task("digits"), eclose.task("digits", split_seed=1)
    sizes = {part: len(task.part(part)) for part in ("train", "valid", "test", "search")}
    assert sizes == {"train": 1150, "valid": 288, "test": 359, "search": 1438}
    for part in sizes:
        np.testing.assert_array_equal(images(task, part)[0], images(again, part)[0])
    np.testing.assert_array_equal(images(task, "test")[0], images(other, "test")[0])
    assert not np.array_equal(images(task, "valid")[0], images(other, "valid")[0])
    for part in ("train", "valid", "test"):
        share = np.bincount(images(task, part)[1]) / np.array(UCI_COUNTS)
        assert np.ptp(share) < 0.02


def permutation(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return for each position of the images after where its pixels were before, found by the pixels' history."""
    before, after = (values.reshape(len(values), -1).T for values in (before, after))
    found = {column.tobytes(): place for place, column in enumerate(np.ascontiguousarray(before))}
    assert len(found) == len(before), "some positions never differ"
    return np.array([found[column.tobytes()] for column in np.ascontiguousarray(after)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    root = tmp_path_factory.mktemp("data")
    data_sets.write_cifar10(root)
    data_sets.write_idx(root, "mnist", True)
    return str(root)


@pytest.mark.parametrize("kind", ["rows-columns", "pixels"])
@pytest.mark.parametrize(("name", "size", "channels"), [("cifar10", 32, 3), ("mnist", 28, 1)])
def test_one_permutation_for_all_images_channels_and_parts(kind, name, size, channels, folder):
    options = {"data": folder, "valid": 20}
    plain, moved = eclose.task(name, **options), eclose.task(name, permuted=kind, permutation_seed=3, **options)
    before, after = images(plain, "train")[0], images(moved, "train")[0]
    order = permutation(before[:, 0], after[:, 0])
    assert sorted(order) == list(range(size * size))  # a bijection
    for part in ("train", "valid", "test"):
        before, after = (images(task, part) for task in (plain, moved))
        flat = before[0].reshape(len(before[0]), channels, -1)
        np.testing.assert_array_equal(after[0].reshape(flat.shape), flat[:, :, order])
        np.testing.assert_array_equal(after[1], before[1])
        inverse = np.argsort(order)
        np.testing.assert_array_equal(after[0].reshape(flat.shape)[:, :, inverse], flat)
    rows, columns = order.reshape(size, size) // size, order.reshape(size, size) % size
    whole_lines = bool((rows == rows[:, :1]).all() and (columns == columns[:1]).all())
    assert whole_lines == (kind == "rows-columns")
    if whole_lines:
        assert rows[:, 0].tolist() != columns[0].tolist()
    other = eclose.task(name, permuted=kind, permutation_seed=4, **options)
    assert not np.array_equal(images(other, "train")[0], images(moved, "train")[0])
    assert moved.augmentable is None and moved.fingerprint() != plain.fingerprint()


def test_noise_has_the_deviation_asked_for_and_is_the_same_every_time(folder):
    plain, noisy = (eclose.task("cifar10", data=folder, noise=noise) for noise in (0.0, 0.05))
    before, after = (images(task, "train")[0].astype(float) for task in (plain, noisy))
    inside = (before > 60) & (before < 195)  # where nothing is cut off at black or white
    difference = (after - before)[inside]
    assert abs(difference.mean()) < 0.2 and abs(difference.std() - 0.05 * 255) < 0.2
    grain = (after - before)[:2].reshape(2, -1)
    assert abs(np.corrcoef(grain)[0, 1]) < 0.1
    np.testing.assert_array_equal(after, images(eclose.task("cifar10", data=folder, noise=0.05), "train")[0])
    other = eclose.task("cifar10", data=folder, noise=0.05, noise_seed=1)
    assert not np.array_equal(after, images(other, "train")[0])
    assert not np.array_equal(images(noisy, "test")[0], images(plain, "test")[0])


def test_noise_does_not_depend_on_the_subset(folder):
    whole, few = (eclose.task("cifar10", data=folder, noise=0.1, subset=subset) for subset in (None, 40))
    known = {image.tobytes() for image in images(whole, "search")[0]}
    assert all(image.tobytes() in known for image in images(few, "search")[0])


@pytest.mark.parametrize("amount", [500, 0.25, 1.0, 1438])
def test_a_subset_is_stratified_and_the_same_every_time(amount):
    task, again = eclose.task("digits", subset=amount), eclose.task("digits", subset=amount)
    count = amount if isinstance(amount, int) else round(amount * 1438)
    labels = images(task, "search")[1]
    assert len(labels) == count and len(task.part("test")) == 359
    whole = np.bincount(images(eclose.task("digits"), "search")[1])
    assert np.abs(np.bincount(labels) - whole * count / 1438).max() < 1
    np.testing.assert_array_equal(images(task, "train")[0], images(again, "train")[0])
    if count < 1438:
        assert (
            images(eclose.task("digits", subset=amount, split_seed=5), "search")[0].tobytes()
            != images(task, "search")[0].tobytes()
        )


def test_half_of_the_test_part_as_valid(folder):
    task, plain = eclose.task("cifar10", data=folder, valid="half-of-test"), eclose.task("cifar10", data=folder)
    assert [len(task.part(part)) for part in ("train", "valid", "test")] == [100, 10, 10]
    halves = [image.tobytes() for part in ("valid", "test") for image in images(task, part)[0]]
    assert sorted(halves) == sorted(image.tobytes() for image in images(plain, "test")[0])


def test_options_may_be_written_behind_the_name():
    written = eclose.task("digits:permuted=pixels,noise=0.1,subset=500,valid=100")
    called = eclose.task("digits", permuted="pixels", noise=0.1, subset=500, valid=100)
    assert written.fingerprint() == called.fingerprint()
    assert len(eclose.task("digits:valid=100", valid=200).part("valid")) == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"permutated": "pixels"}, "no option 'permutated'; did you mean 'permuted'"),
        ({"nosie": 0.1}, "did you mean 'noise'"),
        ({"split": 1}, "did you mean 'split_seed'"),
        ({"zzz": 1}, "options: valid, split_seed, subset, permuted"),
        ({"augmentable": True}, "no option 'augmentable'"),
        ({"data": "."}, "no option 'data'"),
        ({"permuted": "pixel"}, "did you mean 'pixels'"),
        ({"permuted": 3}, "permuted is"),
        ({"permuted": True}, "permuted is"),
        ({"permutation_seed": "a"}, "permutation_seed is a whole number"),
        ({"permuted": "pixels", "permutation_seed": -1}, "permutation_seed is a whole number"),
        ({"permuted": "pixels", "permutation_seed": 1.5}, "permutation_seed is a whole number"),
        ({"noise": -0.1}, "noise is a standard deviation"),
        ({"noise": "a"}, "noise is a standard deviation"),
        ({"noise": True}, "noise is a standard deviation"),
        ({"noise": float("nan")}, "noise is a standard deviation"),
        ({"noise_seed": None}, "noise_seed is a whole number"),
        ({"subset": 0}, "subset cannot have 0 of 1438"),
        ({"subset": 1439}, "subset cannot have 1439 of 1438"),
        ({"subset": -5}, "subset cannot have -5"),
        ({"subset": 1.5}, "subset cannot have 1.5"),
        ({"subset": float("inf")}, "subset cannot have inf"),
        ({"subset": "half"}, "subset is a number of items or a share"),
        ({"subset": True}, "subset is a number of items or a share"),
        ({"subset": 5}, "4 items for 10 classes"),
        ({"valid": 0}, "held-out part cannot have 0"),
        ({"valid": 1438}, "held-out part cannot have 1438"),
        ({"valid": 0.0001}, "held-out part cannot have"),
        ({"valid": float("nan")}, "held-out part cannot have nan"),
        ({"valid": "half"}, "valid is a share, a number of images"),
        ({"valid": None}, "held-out part is a number of items"),
        ({"split_seed": -1}, "seed is a whole number"),
        ({"split_seed": "x"}, "seed is a whole number"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(RequestError, match=message) as raised:
        eclose.task("digits", **options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("digit", "did you mean 'digits'"),
        ("digits:pixels", "options are written key=value"),
        ("digits:noise=1,noise=2", "twice"),
        ("digits:=3", "no option ''"),
        ("", "unknown task"),
        (5, "name is a text"),
        (None, "name is a text"),
    ],
)
def test_names_that_mean_nothing_are_refused(name, message):
    with pytest.raises(RequestError, match=message):
        eclose.task(name)


def test_flags_must_be_flags(folder):
    with pytest.raises(RequestError, match="augmentable is true or false"):
        eclose.task("cifar10", data=folder, augmentable="no")
    assert eclose.task("cifar10", data=folder, augmentable=False).augmentable is None
    assert eclose.task("cifar10", data=folder).augmentable == "image"
