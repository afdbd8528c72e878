"""ImageNet from class folders, with a stand-in for Pillow, which is not a dependency."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest

import eclose
from eclose.algebra.errors import MissingExtra, RequestError
from support import data_sets


class Picture:
    """As much of Pillow's image as class folders need, with plain nearest sampling."""

    Resampling = types.SimpleNamespace(BILINEAR=2)

    def __init__(self, pixels: np.ndarray):
        self.pixels = pixels
        self.size = (pixels.shape[1], pixels.shape[0])

    @classmethod
    def open(cls, path: Path) -> Picture:
        head, _, raw = path.read_bytes().partition(b"\n")
        if not head.startswith(b"P6"):
            raise OSError("cannot identify image file")
        width, height = (int(word) for word in head.split()[1:3])
        if len(raw) != 3 * width * height:
            raise SyntaxError("broken file")
        return cls(np.frombuffer(raw, np.uint8).reshape(height, width, 3))

    def __enter__(self) -> Picture:
        return self

    def __exit__(self, *_) -> None: ...

    def convert(self, mode: str) -> Picture:
        assert mode == "RGB"
        return self

    def resize(self, size: tuple[int, int], _: int) -> Picture:
        rows = np.arange(size[1]) * self.pixels.shape[0] // size[1]
        columns = np.arange(size[0]) * self.pixels.shape[1] // size[0]
        return Picture(self.pixels[rows][:, columns])

    def crop(self, box: tuple[int, int, int, int]) -> Picture:
        return Picture(self.pixels[box[1] : box[3], box[0] : box[2]])

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self.pixels, dtype=dtype)


@pytest.fixture
def pillow(monkeypatch):
    module = types.ModuleType("PIL")
    module.Image = Picture
    monkeypatch.setitem(sys.modules, "PIL", module)


def test_class_folders_are_read_item_by_item(pillow, tmp_path):
    written = data_sets.write_class_folders(tmp_path, {"n02": 12, "n01": 20, "n10": 12}, shape=(20, 16))
    task = eclose.task("imagenet", data=str(tmp_path), size=14, valid=0.25)
    assert task.input == (3, 14, 14) and task.output == eclose.Classes(3) and task.part("train").resident() is None
    seen = []
    for part in ("train", "valid"):
        labels = [int(label) for _, label in task.part(part).dataset()]
        assert np.bincount(labels).tolist() == {"train": [15, 9, 9], "valid": [5, 3, 3]}[part]
        seen += [(bytes(image.numpy()), int(label)) for image, label in task.part(part).dataset()]
    expected = []
    for path, pixels in written.items():
        if "/train/" in path:  # the shorter side is scaled to 14 * 256 / 224 = 16: as it is
            label = sorted({"n01", "n02", "n10"}).index(Path(path).parent.name)
            expected.append((pixels[3:17, 1:15].transpose(2, 0, 1).tobytes(), label))
    assert sorted(seen) == sorted(expected)
    assert [int(label) for _, label in task.part("test").dataset()] == [0] * 10 + [1] * 6 + [2] * 6


def test_class_folders_with_options(pillow, tmp_path):
    data_sets.write_class_folders(tmp_path, {"a": 20, "b": 20})
    plain = eclose.task("imagenet", data=str(tmp_path), size=8)
    permuted = eclose.task("imagenet", data=str(tmp_path), size=8, permuted="pixels", valid="half-of-test", subset=0.5)
    assert len(permuted.part("train")) == 20 and len(permuted.part("valid")) == len(permuted.part("test")) == 10
    whole = eclose.task("imagenet", data=str(tmp_path), size=8, permuted="pixels")
    for before, after in zip(plain.part("test").dataset(), whole.part("test").dataset(), strict=True):
        np.testing.assert_array_equal(np.sort(before[0].reshape(3, -1)), np.sort(after[0].reshape(3, -1)))


def test_class_folders_that_are_wrong_are_refused(pillow, tmp_path):
    data_sets.write_class_folders(tmp_path, {"a": 20, "b": 20})
    root = tmp_path / "imagenet"
    (root / "val" / "c").mkdir()
    with pytest.raises(RequestError, match="class folder 'c'"):
        eclose.task("imagenet", data=str(tmp_path), size=8)
    (root / "val" / "c").rmdir()
    first = sorted((root / "train" / "a").iterdir())[0]
    content = first.read_bytes()
    for damage in (content[:-1], b"x"):
        for path in (root / "train" / "a").iterdir():
            path.write_bytes(damage)
        with pytest.raises(RequestError, match="cannot be read as an image"):
            eclose.task("imagenet", data=str(tmp_path), size=8)
    for size in (0, -3, 2.5, "8", True):
        with pytest.raises(RequestError, match="size"):
            eclose.task("imagenet", data=str(tmp_path), size=size)
    (root / "other").mkdir()
    for part in ("train", "val"):
        (root / "other" / part).write_text("")
    with pytest.raises(RequestError, match="class folders"):
        eclose.task("imagenet", data=str(root / "other"), size=8)


def test_without_pillow_the_extra_is_named(monkeypatch, tmp_path):
    data_sets.write_class_folders(tmp_path, {"a": 5, "b": 5})
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match="pip install pillow"):
        eclose.task("imagenet", data=str(tmp_path), size=8)
