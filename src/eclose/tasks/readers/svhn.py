"""Street View House Numbers, cropped digits (Netzer et al., 2011): MATLAB files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError
from eclose.tasks.places import Layout
from eclose.tasks.readers.matlab import read_mat
from eclose.tasks.readers.pairs import Images, images_and_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _cropped(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """X is (32, 32, 3, N); in y the digit 0 is written 10."""
    import numpy as np

    content = read_mat(path)
    if "X" not in content or "y" not in content or content["X"].ndim != 4:
        raise RequestError(f"{path} has no images X and labels y; fetch it again")
    if content["X"].shape[:3] != (32, 32, 3):
        raise RequestError(f"{path} holds images of shape {content['X'].shape[:3]}, not (32, 32, 3); fetch it again")
    if content["y"].size and not 0 <= content["y"].min() <= content["y"].max() <= 10:
        raise RequestError(f"{path} holds labels other than 1 to 10; fetch it again")
    pixels = np.ascontiguousarray(content["X"].transpose(3, 2, 0, 1))
    labels = content["y"].reshape(-1).astype(np.int64) % 10
    return images_and_labels(pixels, labels, tuple(pixels.shape[1:]), path)


SVHN = (
    Layout(
        ("svhn", "SVHN"),
        ("train_32x32.mat", "test_32x32.mat"),
        lambda folder: Images(_cropped(folder / "train_32x32.mat"), _cropped(folder / "test_32x32.mat")),
        "cropped digits",
    ),
)

__all__ = ["SVHN"]
