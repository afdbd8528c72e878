"""Options of every image task: a fixed permutation of the pixels, and noise.

Both are functions of a seed and of the image's number in its part, never of the order in which images are read, so
resident data and data read item by item give the same images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.tasks.checks import check_seed
from eclose.tasks.splits import shuffled

if TYPE_CHECKING:
    from numpy.typing import NDArray

PERMUTATIONS = ("rows-columns", "pixels")
PART_NUMBERS = {"train": 0, "test": 1}


@dataclass(frozen=True)
class Distortion:
    """What is done to every image.

    Attributes:
        permuted: `"rows-columns"` (one permutation of the rows, one of the columns, as in Roberts et al., 2021),
            `"pixels"` (one of all positions), or None. All channels and all images are permuted alike.
        permutation_seed: another seed is another permutation.
        noise: standard deviation of Gaussian noise added to every image, 1 being the range from black to white.
        noise_seed: another seed is another noise.
    """

    permuted: str | None = None
    permutation_seed: int = 0
    noise: float = 0.0
    noise_seed: int = 0

    def __post_init__(self) -> None:
        if self.permuted is not None and self.permuted not in PERMUTATIONS:
            hint = did_you_mean(str(self.permuted), PERMUTATIONS)
            raise RequestError(f"permuted is 'rows-columns', 'pixels' or None, not {self.permuted!r}{hint}")
        if isinstance(self.noise, bool) or not isinstance(self.noise, int | float) or not 0 <= self.noise < 100:
            raise RequestError(
                f"noise is a standard deviation of 0 or more (1: from black to white), not {self.noise!r}"
            )

        check_seed(self.permutation_seed, "permutation_seed")
        check_seed(self.noise_seed, "noise_seed")

    def __bool__(self) -> bool:
        return self.permuted is not None or self.noise > 0

    def positions(self, height: int, width: int) -> NDArray[Any]:
        """Return for each position, counted row by row, the position its pixel is taken from."""
        import numpy as np

        if self.permuted == "pixels":
            return shuffled(height * width, self.permutation_seed)
        if self.permuted == "rows-columns":
            rows, columns = shuffled(height, self.permutation_seed, 1), shuffled(width, self.permutation_seed, 2)
            return (rows[:, None] * width + columns[None, :]).reshape(-1)
        return np.arange(height * width)

    def apply(self, images: NDArray[Any], part: str, first: int = 0) -> NDArray[Any]:
        """Return uint8 images (N, C, H, W) as they become.

        Args:
            images: some images of a part.
            part: `"train"` (of which the valid part is cut) or `"test"`.
            first: the number of `images[0]` in its part.
        """
        import numpy as np

        count, channels, height, width = images.shape
        if self.permuted is not None:
            flat = images.reshape(count, channels, height * width)
            images = flat[:, :, self.positions(height, width)].reshape(images.shape)
        if self.noise > 0:
            noisy = np.empty_like(images)
            for index in range(count):
                seeds = np.random.SeedSequence([self.noise_seed, PART_NUMBERS[part], first + index])
                grain = np.random.Generator(np.random.PCG64(seeds)).standard_normal(images.shape[1:], np.float32)
                noisy[index] = np.clip(np.rint(images[index] + 255.0 * self.noise * grain), 0, 255)
            images = noisy
        return images


class Distorted:
    """A dataset of images read item by item, each distorted after reading."""

    def __init__(self, folder: Any, distortion: Distortion, part: str):
        self.folder, self.distortion, self.part = folder, distortion, part
        self.targets = folder.targets

    def __len__(self) -> int:
        return len(self.folder)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import torch

        pixels = self.folder.pixels(index)[None]
        return torch.from_numpy(self.distortion.apply(pixels, self.part, index)[0]), self.folder.targets[index]


__all__ = ["PERMUTATIONS", "Distorted", "Distortion"]
