"""ImageNet: 16x16 batches (Chrabaszcz et al., 2017; the first 120 classes are ImageNet16-120) and class folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import MissingExtra, RequestError
from eclose.tasks.checks import one_line
from eclose.tasks.places import Layout
from eclose.tasks.readers.pairs import Images, images_and_labels, stacked
from eclose.tasks.readers.pickles import read_pickle

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSES_16 = 120
ENDINGS = frozenset({".jpeg", ".jpg", ".png", ".bmp", ".webp"})


def _sixteen(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels count from 1; only the first 120 classes stay."""
    import numpy as np

    content = read_pickle(path)
    for key in ("data", "labels"):
        if key not in content:
            raise RequestError(f"{path} has no {key!r} entry; fetch it again")
    images, labels = images_and_labels(content["data"], content["labels"], (3, 16, 16), path)
    chosen = np.flatnonzero(labels <= CLASSES_16)
    return images[chosen], labels[chosen] - 1


BATCHES = tuple(f"train_data_batch_{number}" for number in range(1, 11))

IMAGENET16_120 = (
    Layout(
        ("ImageNet16", "imagenet16-120", "imagenet16"),
        (*BATCHES, "val_data"),
        lambda folder: Images(stacked([_sixteen(folder / name) for name in BATCHES]), _sixteen(folder / "val_data")),
        "python pickles",
    ),
)

IMAGENET = (
    Layout(
        ("imagenet", "ILSVRC2012"),
        ("train", "val"),
        lambda folder: folder,
        "a folder for each class",
    ),
)


class ImageFolder:
    """Images in one folder a class, decoded when asked for: uint8 (3, size, size).

    Args:
        folder: holds one folder a class, in each the images.
        size: the shorter side is scaled to `size * 256 / 224` and the middle square of `size` is kept.
        classes: the class folders in order; those of `folder` by default.
    """

    def __init__(self, folder: Path, size: int, classes: list[str] | None = None):
        if not folder.is_dir():
            raise RequestError(f"{folder} is no folder of class folders with images in them")
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
        self.classes = names if classes is None else classes
        unknown = sorted(set(names) - set(self.classes))
        if unknown:
            raise RequestError(f"{folder} has the class folder {unknown[0]!r}, which the train folder has not")
        self.size = size
        self.paths: list[Path] = []
        self.targets: list[int] = []
        for label, name in enumerate(self.classes):
            found = sorted(path for path in (folder / name).glob("*") if path.suffix.lower() in ENDINGS)
            self.paths.extend(found)
            self.targets.extend([label] * len(found))
        if not self.paths:
            raise RequestError(f"{folder} has no class folders with images in them")

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import torch

        return torch.from_numpy(self.pixels(index)), self.targets[index]

    def pixels(self, index: int) -> NDArray[Any]:
        """Return one image, (3, size, size) uint8."""
        import numpy as np

        try:
            from PIL import Image
        except ImportError:
            raise MissingExtra("install Pillow (pip install pillow) to read images from class folders") from None
        path = self.paths[index]
        try:
            with Image.open(path) as file:
                image = file.convert("RGB")
        except Exception as error:  # a damaged image raises almost anything
            raise RequestError(f"{path} cannot be read as an image ({one_line(error)})") from None
        scale = self.size * 256 / 224 / min(image.size)
        width, height = (max(self.size, round(side * scale)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - self.size) // 2, (height - self.size) // 2
        image = image.crop((left, top, left + self.size, top + self.size))
        return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


__all__ = ["IMAGENET", "IMAGENET16_120", "ImageFolder"]
