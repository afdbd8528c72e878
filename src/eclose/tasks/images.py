"""The image tasks by name: published images, distorted as asked, cut into parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eclose.algebra.errors import RequestError
from eclose.algebra.shapes import Classes
from eclose.tasks.checks import check_flag
from eclose.tasks.definition import Task
from eclose.tasks.distortions import Distorted, Distortion
from eclose.tasks.places import Layout, locate
from eclose.tasks.readers.archives import read_npz
from eclose.tasks.readers.pairs import Images, images_and_labels
from eclose.tasks.splits import as_count, split

if TYPE_CHECKING:
    from numpy.typing import NDArray

HALF_OF_TEST = "half-of-test"


def image_task(
    name: str,
    images: Images,
    classes: int,
    *,
    valid: float | int | str,
    split_seed: int = 0,
    subset: float | int | None = None,
    permuted: str | None = None,
    permutation_seed: int = 0,
    noise: float = 0.0,
    noise_seed: int = 0,
    augmentable: bool = True,
) -> Task:
    """Return the task of a data set of resident images.

    Args:
        name: of the data set.
        images: as published.
        classes: how many there are.
        valid: the share (or number) of training images held out, stratified; `"half-of-test"` takes half of the test
            part instead and trains on all training images, as NAS-Bench-201 does on CIFAR-100 and ImageNet16-120.
        split_seed: another seed holds out other images.
        subset: keep this share (or number) of the training images, stratified; the test part stays whole.
        permuted: see `Distortion`; a permuted task is not augmentable.
        permutation_seed: see `Distortion`.
        noise: see `Distortion`.
        noise_seed: see `Distortion`.
        augmentable: whether flips and crops keep the meaning.
    """
    check_flag(augmentable, "augmentable")
    distortion = Distortion(permuted, permutation_seed, noise, noise_seed)
    (inputs, labels), (test_inputs, test_labels) = images.train, images.test
    for part, found in (("train", labels), ("test", test_labels)):
        wrong = found[(found < 0) | (found >= classes)]
        if len(wrong):
            raise RequestError(f"label {wrong[0]} in the {part} part of {name!r} is out of range 0 to {classes - 1}")
    chosen = _subset(labels, subset, split_seed)
    if distortion:
        inputs, test_inputs = distortion.apply(inputs, "train"), distortion.apply(test_inputs, "test")
    if chosen is not None:
        inputs, labels = inputs[chosen], labels[chosen]
    parts: dict[str, Any] = {"train": (inputs, labels), "test": (test_inputs, test_labels)}
    if valid == HALF_OF_TEST:
        kept, held = split(len(test_labels), 0.5, split_seed, test_labels)
        parts["test"] = test_inputs[kept], test_labels[kept]
        parts["valid"] = test_inputs[held], test_labels[held]
    return Task(
        **parts,
        output=Classes(classes),
        input=tuple(inputs.shape[1:]),
        name=name,
        valid_fraction=_fraction(valid),
        split_seed=split_seed,
        normalise="train",
        augmentable="image" if augmentable and permuted is None else None,
    )


def _fraction(valid: float | int | str) -> float | int:
    if valid == HALF_OF_TEST:
        return 0.5  # not used: the valid part is given
    if isinstance(valid, str):
        raise RequestError(f"valid is a share, a number of images or {HALF_OF_TEST!r}, not {valid!r}")
    return valid


def _subset(labels: NDArray[Any], subset: float | int | None, seed: int) -> NDArray[Any] | None:
    import numpy as np

    if subset is None or (isinstance(subset, float) and subset == 1.0) or subset == len(labels):
        return None
    if len(labels) < 2:
        raise RequestError("a subset needs at least two training images")
    as_count(subset, len(labels), "the subset")
    kept: NDArray[Any] = np.sort(split(len(labels), subset, seed, labels)[1])
    return kept


@lru_cache(maxsize=1)
def _read(name: str, layout: Layout, folder: Path, stamps: tuple[tuple[int, int], ...]) -> Any:
    """Read a data set; the last one stays in memory for the next task over it, while its files stay as they are."""
    return layout.read(folder)


def read_images(name: str, layouts: Sequence[Layout], data: str | None) -> Any:
    """Return what the files of a data set hold."""
    layout, folder = locate(name, layouts, data)
    return _read(name, layout, folder.resolve(), layout.stamps(folder))


Build = TypeVar("Build", bound=Callable[..., Task])


def _signed(*fixed: str) -> Callable[[Build], Build]:
    """Show in a task's signature the options that it hands on, but for those it fixes, so that typos find them."""

    def sign(build: Build) -> Build:
        own = inspect.signature(build).parameters
        common = inspect.signature(image_task).parameters
        named = [parameter for parameter in own.values() if parameter.kind is parameter.KEYWORD_ONLY]
        handed = [
            parameter
            for name, parameter in common.items()
            if parameter.kind is parameter.KEYWORD_ONLY and name not in own and name not in fixed
        ]
        build.__signature__ = inspect.Signature([*named, *handed])  # type: ignore[attr-defined]
        return build

    return sign


@_signed("augmentable")
def digits(*, valid: float | int = 0.2, split_seed: int = 0, **options: Any) -> Task:
    """The 8x8 digits that ship with the package: 1,797 images, a fifth of which, always the same, is the test part."""
    path = Path(__file__).parent / "data" / "digits.npz"
    content = read_npz(path, ("images", "labels"))
    pixels = (content["images"].astype("uint16") * 255 + 8) // 16  # published as 0 to 16
    images, labels = images_and_labels(pixels.astype("uint8"), content["labels"], (1, 8, 8), path)
    kept, held = split(len(labels), 0.2, 0, labels)
    both = Images((images[kept], labels[kept]), (images[held], labels[held]))
    return image_task("digits", both, 10, valid=valid, split_seed=split_seed, augmentable=False, **options)


@_signed()
def cifar10(*, data: str | None = None, valid: float | int | str = 0.5, **options: Any) -> Task:
    """CIFAR-10; half of the training images is the valid part, as in most architecture searches."""
    from eclose.tasks.readers.cifar import CIFAR10

    return image_task("cifar10", read_images("cifar10", CIFAR10, data), 10, valid=valid, **options)


@_signed()
def cifar100(*, data: str | None = None, valid: float | int | str = 0.5, **options: Any) -> Task:
    """CIFAR-100 with its 100 fine labels."""
    from eclose.tasks.readers.cifar import CIFAR100

    return image_task("cifar100", read_images("cifar100", CIFAR100, data), 100, valid=valid, **options)


@_signed("augmentable")
def svhn(*, data: str | None = None, valid: float | int | str = 0.5, **options: Any) -> Task:
    """Street View House Numbers, cropped digits; house numbers are not mirrored, so nothing is augmented."""
    from eclose.tasks.readers.svhn import SVHN

    images = read_images("svhn", SVHN, data)
    return image_task("svhn", images, 10, valid=valid, augmentable=False, **options)


@_signed()
def imagenet16_120(*, data: str | None = None, valid: float | int | str = HALF_OF_TEST, **options: Any) -> Task:
    """ImageNet16-120; the published validation images are cut into a valid and a test half."""
    from eclose.tasks.readers.imagenet import CLASSES_16, IMAGENET16_120

    images = read_images("imagenet16-120", IMAGENET16_120, data)
    return image_task("imagenet16-120", images, CLASSES_16, valid=valid, **options)


@_signed("augmentable")
def mnist(*, data: str | None = None, valid: float | int | str = 10_000, **options: Any) -> Task:
    """MNIST."""
    from eclose.tasks.readers.idx import MNIST

    return image_task("mnist", read_images("mnist", MNIST, data), 10, valid=valid, augmentable=False, **options)


@_signed()
def fashion_mnist(*, data: str | None = None, valid: float | int | str = 10_000, **options: Any) -> Task:
    """Fashion-MNIST (Xiao et al., 2017)."""
    from eclose.tasks.readers.idx import FASHION_MNIST

    images = read_images("fashion-mnist", FASHION_MNIST, data)
    return image_task("fashion-mnist", images, 10, valid=valid, **options)


def imagenet(
    *,
    data: str | None = None,
    size: int = 224,
    valid: float | int | str = 0.04,
    split_seed: int = 0,
    subset: float | int | None = None,
    permuted: str | None = None,
    permutation_seed: int = 0,
    noise: float = 0.0,
    noise_seed: int = 0,
) -> Task:
    """ImageNet from the class folders `train` and `val`, the latter being the test part; images are read one by one."""
    from torch.utils.data import Subset

    from eclose.tasks.readers.imagenet import IMAGENET, ImageFolder

    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise RequestError(f"size is a number of pixels, not {size!r}")
    _, root = locate("imagenet", IMAGENET, data)
    distortion = Distortion(permuted, permutation_seed, noise, noise_seed)
    train = ImageFolder(root / "train", size)
    folders: dict[str, Any] = {"train": train, "test": ImageFolder(root / "val", size, train.classes)}
    if distortion:
        folders = {part: Distorted(folder, distortion, part) for part, folder in folders.items()}
    parts = dict(folders)
    import numpy as np

    if (chosen := _subset(np.asarray(train.targets), subset, split_seed)) is not None:
        parts["train"] = Subset(folders["train"], chosen.tolist())
    if valid == HALF_OF_TEST:
        labels = np.asarray(folders["test"].targets)
        kept, held = split(len(labels), 0.5, split_seed, labels)
        parts["test"], parts["valid"] = Subset(folders["test"], kept.tolist()), Subset(folders["test"], held.tolist())
    return Task(
        **parts,
        input=(3, size, size),
        output=Classes(len(train.classes)),
        name="imagenet",
        valid_fraction=_fraction(valid),
        split_seed=split_seed,
        normalise=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        augmentable="image" if permuted is None else None,
    )


__all__ = ["HALF_OF_TEST", "image_task", "read_images"]
