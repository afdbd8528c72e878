"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): the python pickles, the binary version, and a compact `.npz` form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError
from eclose.tasks.checks import one_line
from eclose.tasks.places import Layout
from eclose.tasks.readers.archives import read_npz
from eclose.tasks.readers.pairs import Images, images_and_labels, stacked
from eclose.tasks.readers.pickles import read_pickle

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHAPE = (3, 32, 32)


def _pickled(path: Path, labels: str = "labels") -> tuple[NDArray[Any], NDArray[Any]]:
    content = read_pickle(path)
    for key in ("data", labels):
        if key not in content:
            raise RequestError(f"{path} has no {key!r} entry; fetch it again")
    return images_and_labels(content["data"], content[labels], SHAPE, path)


def _binary(path: Path, label_bytes: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of label bytes followed by 3,072 pixels; the last label byte is the fine one."""
    import numpy as np

    try:
        content = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({one_line(error)})") from None
    row = label_bytes + 3072
    if content.size == 0 or content.size % row:
        raise RequestError(f"{path} has {content.size} bytes, not a multiple of {row}; fetch it again")
    rows = content.reshape(-1, row)
    return images_and_labels(np.ascontiguousarray(rows[:, label_bytes:]), rows[:, label_bytes - 1], SHAPE, path)


def _compact(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Colour planes as differences to green, and every plane as differences along rows and columns, modulo 256."""
    import numpy as np

    content = read_npz(path, ("residual", "labels"))
    planes = np.array(content["residual"])
    if planes.dtype != np.uint8 or planes.ndim != 4 or planes.shape[0] != 3:
        raise RequestError(f"{path} holds residuals of shape {planes.shape}, not (3, N, 32, 32) uint8")
    for column in range(1, planes.shape[3]):
        planes[..., column] += planes[..., column - 1]
    for row in range(1, planes.shape[2]):
        planes[..., row, :] += planes[..., row - 1, :]
    planes[0] += planes[1]
    planes[2] += planes[1]
    return images_and_labels(np.ascontiguousarray(planes.transpose(1, 0, 2, 3)), content["labels"], SHAPE, path)


def _batches(folder: Path, names: Sequence[str], read: Callable[[Path], Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read the five batches of the training part, which are equally long."""
    parts = [read(folder / name) for name in names]
    usual = max(len(labels) for _, labels in parts)
    for name, (_, labels) in zip(names, parts, strict=True):
        if len(labels) != usual:
            raise RequestError(f"{folder / name} holds {len(labels)} images, other batches {usual}; fetch it again")
    return stacked(parts)


BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))

CIFAR10 = (
    Layout(
        ("cifar-10-batches-py", "cifar10/cifar-10-batches-py"),
        (*BATCHES, "test_batch"),
        lambda folder: Images(_batches(folder, BATCHES, _pickled), _pickled(folder / "test_batch")),
        "python version",
    ),
    Layout(
        ("cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"),
        (*(f"{name}.bin" for name in BATCHES), "test_batch.bin"),
        lambda folder: Images(
            _batches(folder, [f"{name}.bin" for name in BATCHES], _binary), _binary(folder / "test_batch.bin")
        ),
        "binary version",
    ),
    Layout(
        ("cifar10",),
        (*(f"train_{number}.npz" for number in range(5)), "test.npz"),
        lambda folder: Images(
            _batches(folder, [f"train_{number}.npz" for number in range(5)], _compact), _compact(folder / "test.npz")
        ),
        "compact form",
    ),
)

CIFAR100 = (
    Layout(
        ("cifar-100-python", "cifar100/cifar-100-python"),
        ("train", "test"),
        lambda folder: Images(_pickled(folder / "train", "fine_labels"), _pickled(folder / "test", "fine_labels")),
        "python version",
    ),
    Layout(
        ("cifar-100-binary", "cifar100/cifar-100-binary"),
        ("train.bin", "test.bin"),
        lambda folder: Images(_binary(folder / "train.bin", 2), _binary(folder / "test.bin", 2)),
        "binary version",
    ),
)

__all__ = ["CIFAR10", "CIFAR100"]
