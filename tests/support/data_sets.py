"""Small data sets in the layouts of their home pages, written byte by byte and without the readers' code."""

from __future__ import annotations

import gzip
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np


def pictures(count: int, shape: tuple[int, ...], classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return random uint8 images (count, *shape) and labels in which every class comes equally often."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, *shape), dtype=np.uint8), rng.permutation(np.arange(count) % classes)


def python_2_pickle(content: dict[str, Any]) -> bytes:
    """Return what Python 2 and numpy 1 wrote: protocol 2, byte strings, arrays by `numpy.core.multiarray`."""
    body = b"".join(_text(key) + _value(value) for key, value in content.items())
    return b"\x80\x02}(" + body + b"u."


def _text(text: str) -> bytes:
    return b"U" + bytes([len(text)]) + text.encode("latin-1")


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return b"](" + b"".join(_value(item) for item in value) + b"e"
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    raw = value.tobytes()
    shape = b"(" + b"".join(b"J" + struct.pack("<i", size) for size in value.shape) + b"t"
    dtype = b"cnumpy\ndtype\n(" + _text(value.dtype.str[1:]) + b"K\x00K\x01tR"
    dtype += b"(K\x03" + _text(value.dtype.str[0]) + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + _text("b") + b"tR"
    return array + b"(K\x01" + shape + dtype + b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"


def modern_pickle(content: dict[str, Any], protocol: int) -> bytes:
    """Return what this Python and numpy write."""
    return pickle.dumps(content, protocol=protocol)


def idx(values: np.ndarray) -> bytes:
    """Return an idx file of bytes."""
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def matlab(arrays: dict[str, np.ndarray], compressed: bool = True, order: str = "<") -> bytes:
    """Return a MATLAB 5 file; whole numbers of class double are stored as bytes, as MATLAB does."""
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(f"{order}H", 0x0100)
    content = head + (b"IM" if order == "<" else b"MI")
    for name, array in arrays.items():
        kind = 9 if array.dtype == np.uint8 else 6
        parts = _element(6, struct.pack(f"{order}2I", kind, 0), order)
        parts += _element(5, struct.pack(f"{order}{array.ndim}i", *array.shape), order)
        parts += _element(1, name.encode(), order)
        parts += _element(2, array.astype(np.uint8).tobytes(order="F"), order)
        element = struct.pack(f"{order}2I", 14, len(parts)) + parts
        if compressed:
            packed = zlib.compress(element)
            element = struct.pack(f"{order}2I", 15, len(packed)) + packed
        content += element
    return content


def _element(kind: int, body: bytes, order: str) -> bytes:
    if len(body) <= 4:
        return struct.pack(f"{order}I", len(body) << 16 | kind) + body.ljust(4, b"\0")
    return struct.pack(f"{order}2I", kind, len(body)) + body + b"\0" * (-len(body) % 8)


def differences(images: np.ndarray) -> np.ndarray:
    """Return the residuals (3, N, H, W) of the compact CIFAR form."""
    planes = images.transpose(1, 0, 2, 3).astype(int)
    planes = np.stack([planes[0] - planes[1], planes[1], planes[2] - planes[1]])
    planes = np.diff(planes, axis=2, prepend=0)
    return (np.diff(planes, axis=3, prepend=0) % 256).astype(np.uint8)


Written = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def write_cifar10(root: Path, form: str = "python 2") -> Written:
    """Write CIFAR-10 with 100 + 20 images as `"python 2"`, `"protocol 4"`, `"binary"` or `"compact"`."""
    images, labels = pictures(100, (3, 32, 32), 10)
    test = pictures(20, (3, 32, 32), 10, 1)
    parts = [(images[n : n + 20], labels[n : n + 20]) for n in range(0, 100, 20)] + [test]
    folder = {"binary": "cifar-10-batches-bin", "compact": "cifar10"}.get(form, "cifar-10-batches-py")
    (root / folder).mkdir(parents=True)
    for number, (pixels, numbers) in enumerate(parts, 1):
        name = f"data_batch_{number}" if number < 6 else "test_batch"
        if form == "binary":
            rows = np.concatenate([numbers[:, None].astype(np.uint8), pixels.reshape(20, -1)], axis=1)
            (root / folder / f"{name}.bin").write_bytes(rows.tobytes())
        elif form == "compact":
            name = f"train_{number - 1}" if number < 6 else "test"
            np.savez_compressed(root / folder / f"{name}.npz", residual=differences(pixels), labels=numbers)
        else:
            content = {"batch_label": name, "labels": numbers.tolist(), "data": pixels.reshape(20, -1)}
            (root / folder / name).write_bytes(_pickled(content, form))
    return (images, labels), test


def write_cifar100(root: Path, form: str = "python 2") -> Written:
    """Write CIFAR-100 with 200 + 100 images; the coarse labels are all 7."""
    parts = pictures(200, (3, 32, 32), 100), pictures(100, (3, 32, 32), 100, 1)
    folder = root / ("cifar-100-binary" if form == "binary" else "cifar-100-python")
    folder.mkdir(parents=True)
    for name, (pixels, labels) in zip(("train", "test"), parts, strict=True):
        flat = pixels.reshape(len(pixels), -1)
        if form == "binary":
            rows = np.column_stack([np.full(len(flat), 7), labels, flat]).astype(np.uint8)
            (folder / f"{name}.bin").write_bytes(rows.tobytes())
        else:
            content = {"fine_labels": labels.tolist(), "coarse_labels": [7] * len(flat), "data": flat}
            (folder / name).write_bytes(_pickled(content, form))
    return parts


def _pickled(content: dict[str, Any], form: str) -> bytes:
    return python_2_pickle(content) if form == "python 2" else modern_pickle(content, int(form.split()[1]))


def write_svhn(root: Path, compressed: bool = True, order: str = "<") -> Written:
    """Write SVHN with 60 + 20 images; the digit 0 is labelled 10."""
    parts = pictures(60, (3, 32, 32), 10), pictures(20, (3, 32, 32), 10, 1)
    (root / "svhn").mkdir(parents=True)
    for name, (pixels, labels) in zip(("train", "test"), parts, strict=True):
        arrays = {"X": pixels.transpose(2, 3, 1, 0), "y": np.where(labels == 0, 10, labels).astype(float)[:, None]}
        (root / "svhn" / f"{name}_32x32.mat").write_bytes(matlab(arrays, compressed, order))
    return parts


def write_imagenet16(root: Path, form: str = "protocol 4") -> Written:
    """Write 16x16 ImageNet with labels from 1 to 130, two images a class in train, two in val."""
    train, test = pictures(260, (3, 16, 16), 130), pictures(260, (3, 16, 16), 130, 1)
    (root / "ImageNet16").mkdir(parents=True)
    bounds = range(0, 260, 26)
    pieces = [(f"train_data_batch_{n}", train[0][b : b + 26], train[1][b : b + 26]) for n, b in enumerate(bounds, 1)]
    for name, pixels, labels in [*pieces, ("val_data", *test)]:
        content = {"data": pixels.reshape(len(pixels), -1), "labels": (labels + 1).tolist()}
        (root / "ImageNet16" / name).write_bytes(_pickled(content, form))
    kept = [(images[labels < 120], labels[labels < 120]) for images, labels in (train, test)]
    return kept[0], kept[1]


def write_idx(root: Path, folder: str, zipped: bool) -> Written:
    """Write four idx files with 60 + 20 images of 28x28."""
    parts = pictures(60, (1, 28, 28), 10), pictures(20, (1, 28, 28), 10, 1)
    (root / folder).mkdir(parents=True)
    for name, (pixels, labels) in zip(("train", "t10k"), parts, strict=True):
        for kind, values in (("images-idx3", pixels[:, 0]), ("labels-idx1", labels.astype(np.uint8))):
            path = root / folder / f"{name}-{kind}-ubyte{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(idx(values)) if zipped else idx(values))
    return parts


def write_compact_mnist(root: Path) -> Written:
    """Write MNIST with 60 + 20 images as one `.npz`."""
    train, test = pictures(60, (1, 28, 28), 10), pictures(20, (1, 28, 28), 10, 1)
    (root / "mnist").mkdir(parents=True)
    arrays = {"train_images": train[0][:, 0], "train_labels": train[1].astype(np.uint8)}
    arrays |= {"test_images": test[0][:, 0], "test_labels": test[1].astype(np.uint8)}
    np.savez_compressed(root / "mnist" / "mnist.npz", **arrays)
    return train, test


def write_class_folders(root: Path, sizes: dict[str, int], shape: tuple[int, int] = (20, 12)) -> dict[str, np.ndarray]:
    """Write `train` and `val` with a folder a class of binary PPM pictures; return the pixels (H, W, 3) by path."""
    rng = np.random.default_rng(0)
    written = {}
    for part, scale in (("train", 1.0), ("val", 0.5)):
        for name, count in sizes.items():
            folder = root / "imagenet" / part / name
            folder.mkdir(parents=True)
            for number in range(max(1, int(count * scale))):
                pixels = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
                path = folder / f"{name}_{number:03}.JPEG"
                path.write_bytes(f"P6 {shape[1]} {shape[0]} 255\n".encode() + pixels.tobytes())
                written[str(path)] = pixels
    return written
