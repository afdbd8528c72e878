"""MNIST and Fashion-MNIST: idx files, compressed or not, and a compact `.npz` form."""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError
from eclose.tasks.checks import one_line
from eclose.tasks.places import Layout, actual
from eclose.tasks.readers.archives import read_npz
from eclose.tasks.readers.pairs import Images, images_and_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> NDArray[Any]:
    """Return the array of an idx file: two zero bytes, type, number of axes, big-endian sizes, then the bytes."""
    import zlib

    import numpy as np

    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(f"{path} is damaged ({one_line(error)}); fetch it again") from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTE:
        raise RequestError(f"{path} is no idx file of bytes; fetch it again")
    axes = content[3]
    if len(content) < 4 + 4 * axes:
        raise RequestError(f"{path} is cut off; fetch it again")
    shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
    values = np.frombuffer(content[4 + 4 * axes :], dtype=np.uint8)
    count = math.prod(shape)
    if values.size != count:
        raise RequestError(f"{path} has {values.size} bytes of data where its head promises {count}; fetch it again")
    return values.reshape(shape)


def _read_idx_files(folder: Path) -> Images:
    return Images(_pair(folder, "train"), _pair(folder, "t10k"))


def _pair(folder: Path, part: str) -> tuple[NDArray[Any], NDArray[Any]]:
    images, labels = (actual(folder, f"{part}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
    assert images is not None and labels is not None  # the layout is complete
    pixels = read_idx(images)
    if pixels.ndim != 3:
        raise RequestError(f"{images} holds {pixels.ndim} axes, not images; fetch it again")
    return images_and_labels(pixels, read_idx(labels), (1, *pixels.shape[1:]), images)


def _read_compact(folder: Path) -> Images:
    path = folder / "mnist.npz"
    content = read_npz(path, ("train_images", "train_labels", "test_images", "test_labels"))
    shape = (1, *content["train_images"].shape[1:])
    return Images(
        images_and_labels(content["train_images"], content["train_labels"], shape, path),
        images_and_labels(content["test_images"], content["test_labels"], shape, path),
    )


FILES = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))

MNIST = (
    Layout(("MNIST/raw", "mnist", "MNIST"), FILES, _read_idx_files, "idx files, .gz or not", zipped=True),
    Layout(("mnist",), ("mnist.npz",), _read_compact, "compact form"),
)

FASHION_MNIST = (
    Layout(
        ("FashionMNIST/raw", "fashion-mnist", "FashionMNIST"),
        FILES,
        _read_idx_files,
        "idx files, .gz or not",
        zipped=True,
    ),
)

__all__ = ["FASHION_MNIST", "MNIST", "read_idx"]
