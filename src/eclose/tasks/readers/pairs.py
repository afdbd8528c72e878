"""What a reader of images returns, and the checks every reader shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Images:
    """A data set of images as published: uint8 (N, C, H, W) with one label each, in a train and a test part."""

    train: tuple[NDArray[Any], NDArray[Any]]
    test: tuple[NDArray[Any], NDArray[Any]]


def images_and_labels(
    pixels: Any, labels: Any, shape: tuple[int, ...], path: Path
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return checked uint8 images (N, *shape) and int64 labels (N,)."""
    import numpy as np

    try:
        pixels, labels = np.asarray(pixels), np.asarray(labels)
    except ValueError:
        raise RequestError(f"{path} holds lists of unequal length; fetch it again") from None
    if pixels.dtype != np.uint8:
        raise RequestError(f"{path} holds pixels of {pixels.dtype}, not uint8; fetch it again")
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise RequestError(f"{path} holds no plain list of labels; fetch it again")
    if pixels.size != len(labels) * int(np.prod(shape)):
        raise RequestError(f"{path} holds {len(labels)} labels but {pixels.size} pixel values; fetch it again")
    return pixels.reshape(len(labels), *shape), labels.astype(np.int64)


def stacked(parts: list[tuple[NDArray[Any], NDArray[Any]]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the parts one after another."""
    import numpy as np

    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])


__all__ = ["Images", "images_and_labels", "stacked"]
