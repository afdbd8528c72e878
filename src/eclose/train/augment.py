"""Augmentation of batches where they lie: on the GPU for data that live there.

An augmentation is a function of a batch and of random bits, `draws` columns an image, which a feed derives from
(seed, epoch, item). It keeps no state and reads no generator.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Protocol

import torch
from torch import Tensor

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.train import images as ops
from eclose.train.randomness import below, uniform


class Augmentation(Protocol):
    """What changes a batch of images.

    Attributes:
        draws: how many 64-bit draws it needs an image.
        normalised: whether it works on normalised float images (after everything else) or on raw ones.
    """

    @property
    def draws(self) -> int:
        """How many draws an image needs."""
        ...

    @property
    def normalised(self) -> bool:
        """Whether it works on normalised images."""
        ...

    def __call__(self, images: Tensor, bits: Tensor) -> Tensor:
        """Return the changed batch."""
        ...


@dataclass(frozen=True)
class Flip:
    """Mirror left and right with probability 1/2."""

    draws: int = 1
    normalised: bool = False

    def __call__(self, images: Tensor, bits: Tensor) -> Tensor:
        """Return the batch, each image flipped or not."""
        chosen = (bits[:, 0] < 0).view(-1, 1, 1, 1)
        return torch.where(chosen, images.flip(3), images)


@dataclass(frozen=True)
class Crop:
    """Pad each side with zeros and cut a window of the original size at a random place."""

    padding: int
    draws: int = 2
    normalised: bool = False

    def __call__(self, images: Tensor, bits: Tensor) -> Tensor:
        """Return the batch, each image shifted by up to `padding` pixels either way."""
        count, channels, height, width = images.shape
        shift = below(bits, 2 * self.padding + 1) - self.padding  # shape: (N, 2)
        row = torch.arange(height, device=images.device) + shift[:, :1]
        column = torch.arange(width, device=images.device) + shift[:, 1:]
        inside = ((row >= 0) & (row < height))[:, :, None] & ((column >= 0) & (column < width))[:, None]
        source = row.clamp(0, height - 1)[:, :, None] * width + column.clamp(0, width - 1)[:, None]
        flat = source.view(count, 1, -1).expand(-1, channels, -1)
        cut = images.reshape(count, channels, -1).gather(2, flat).view(count, channels, height, width)
        return cut * inside[:, None]


@dataclass
class Cutout:
    """Zero a square whose centre is anywhere in the image; what sticks out is cut off (DeVries and Taylor 2017).

    Args:
        length: the square's side.
        share: the share of images that are cut, as a scalar tensor that may change between epochs; None for all.
    """

    length: int
    share: Tensor | None = None
    draws: int = 3
    normalised: bool = True

    def __call__(self, images: Tensor, bits: Tensor) -> Tensor:
        """Return the batch with a hole in each image."""
        height, width = images.shape[2:]
        top = below(bits[:, :1], height) - self.length // 2
        left = below(bits[:, 1:2], width) - self.length // 2
        row = torch.arange(height, device=images.device)
        column = torch.arange(width, device=images.device)
        down = (row >= top) & (row < top + self.length)
        across = (column >= left) & (column < left + self.length)
        hole = down[:, :, None] & across[:, None]
        if self.share is not None:
            if self.share.device != images.device:
                self.share = self.share.to(images.device)
            hole = hole & (uniform(bits[:, 2:3]) < self.share)[:, :, None]
        return images.masked_fill(hole[:, None], 0)


# What a level in [0, 1] means for each operation of a policy, after Fast AutoAugment (Lim et al. 2019).
RANGES: dict[str, tuple[float, float]] = {
    "ShearX": (-0.3, 0.3),
    "ShearY": (-0.3, 0.3),
    "TranslateX": (-0.45, 0.45),
    "TranslateY": (-0.45, 0.45),
    "Rotate": (-30.0, 30.0),
    "AutoContrast": (0.0, 1.0),
    "Invert": (0.0, 1.0),
    "Equalize": (0.0, 1.0),
    "Solarize": (0.0, 256.0),
    "Posterize": (4.0, 8.0),
    "Contrast": (0.1, 1.9),
    "Color": (0.1, 1.9),
    "Brightness": (0.1, 1.9),
    "Sharpness": (0.1, 1.9),
    "Cutout": (0.0, 0.2),
}
KINDS = tuple(RANGES)
HOLE = (125, 123, 114)
SubPolicy = tuple[tuple[str, float, float], ...]


class PolicyList:
    """One sub-policy an image, drawn evenly; its operations one after another, each with its own probability.

    An operation is `(name, probability, level)` with a level in [0, 1] of the operation's range; geometric operations
    change their sign half of the time. All operations are computed for the whole batch and the drawn one is kept, so
    shapes are static.

    Args:
        policies: the sub-policies.
        shape: channels, height and width of the images.
    """

    normalised = False

    def __init__(self, policies: list[SubPolicy], shape: tuple[int, ...]):
        if len(shape) != 3 or shape[0] not in (1, 3):
            raise RequestError(f"augmentation policies need grey or colour images, not inputs of shape {shape}")
        if not policies:
            raise RequestError("an augmentation policy needs at least one sub-policy")
        self.length = max(len(policy) for policy in policies)
        self.draws = 1 + 4 * self.length
        kinds, chances, values, maps = [], [], [], []
        for policy in policies:
            for name, chance, level in (*policy, *[("Invert", -1.0, 0.0)] * (self.length - len(policy))):
                if name not in RANGES:
                    raise RequestError(f"unknown augmentation {name!r}{did_you_mean(name, RANGES)}")
                low, high = RANGES[name]
                value = level * (high - low) + low
                kinds.append(KINDS.index(name))
                chances.append(chance)
                values.append(value)
                maps.append([ops.fixed_point(_map(name, sign * value, shape)) for sign in (1, -1)])
        size = (len(policies), self.length)
        self._kinds = torch.tensor(kinds).view(size)
        self._chances = torch.tensor(chances).view(size)
        self._values = torch.tensor(values, dtype=torch.float64).view(size)
        self._maps = torch.tensor(maps).view(*size, 2, 6)

    def to(self, device: torch.device) -> PolicyList:
        """Put the tables on a device."""
        for name in ("_kinds", "_chances", "_values", "_maps"):
            setattr(self, name, getattr(self, name).to(device))
        return self

    def __call__(self, images: Tensor, bits: Tensor) -> Tensor:
        """Return the batch, each image under its sub-policy."""
        if images.dtype != torch.uint8:
            raise RequestError(f"augmentation policies work on 8-bit images, not on {images.dtype}")
        drawn = below(bits[:, 0], len(self._kinds))
        for place in range(self.length):
            own = bits[:, 1 + 4 * place : 5 + 4 * place]
            applied = uniform(own[:, 0]) <= self._chances[drawn, place]
            kinds = torch.where(applied, self._kinds[drawn, place], -1)
            mirrored = (own[:, 1] < 0).long()
            maps = self._maps[drawn, place, mirrored]
            images = _operation(images, kinds, self._values[drawn, place], maps, uniform(own[:, 2:]))
        return images


def _operation(images: Tensor, kinds: Tensor, values: Tensor, maps: Tensor, places: Tensor) -> Tensor:
    """Apply to each image the operation of its kind; -1 leaves it."""

    def chosen(*names: str) -> Tensor:
        mask = torch.zeros_like(kinds, dtype=torch.bool)
        for name in names:
            mask = mask | (kinds == KINDS.index(name))
        return mask.view(-1, 1, 1, 1)

    moved = torch.where(chosen(*KINDS[:5]), ops.affine(images, maps), images)
    result = ops.apply_tables(moved, _tables(images, kinds, values))
    factor = values.view(-1, 1, 1, 1)
    result = torch.where(chosen("Color"), ops.blended(ops.grey(images), images, factor), result)
    result = torch.where(chosen("Sharpness"), ops.blended(ops.smoothed(images), images, factor), result)
    size = values.float() * images.shape[3]
    left, top = ((places[:, i] * images.shape[3 - i] - size / 2).clamp(min=0).long() for i in (0, 1))
    hole = ops.boxed(images, left, top, left + size.long(), top + size.long(), HOLE)
    return torch.where(chosen("Cutout") & (size > 0).view(-1, 1, 1, 1), hole, result)


def _tables(images: Tensor, kinds: Tensor, values: Tensor) -> Tensor:  # shape: (N, C, 256)
    """Return the table of each image's operation; the identity for those that are no table."""
    counts = ops.histogram(images)
    levels = torch.arange(ops.LEVELS, dtype=torch.uint8, device=images.device)
    tables = levels.expand_as(counts)
    candidates = {
        "AutoContrast": ops.auto_contrast_tables(counts),
        "Equalize": ops.equalize_tables(counts),
        "Invert": 255 - levels,
        "Solarize": ops.solarize_tables(values)[:, None],
        "Posterize": ops.posterize_tables(values.long().clamp(0, 8))[:, None],
        "Contrast": ops.blend_tables(ops.mean_grey(images), values)[:, None],
        "Brightness": ops.blend_tables(torch.zeros_like(values), values)[:, None],
    }
    for name, candidate in candidates.items():
        tables = torch.where((kinds == KINDS.index(name)).view(-1, 1, 1), candidate, tables)
    return tables


def _map(name: str, value: float, shape: tuple[int, ...]) -> tuple[float, ...]:
    _, height, width = shape
    maps = {
        "ShearX": ops.shear(value, 0.0),
        "ShearY": ops.shear(0.0, value),
        "TranslateX": ops.translation(value * width, 0.0),
        "TranslateY": ops.translation(0.0, value * height),
        "Rotate": ops.rotation(value, width, height),
    }
    return maps.get(name, ops.translation(0.0, 0.0))


POLICIES = {"fast-autoaugment-cifar10": "fast_autoaugment_cifar10.json"}


def policy(name: str) -> list[SubPolicy]:
    """Return a published policy by name."""
    if name not in POLICIES:
        raise RequestError(f"unknown augmentation policy {name!r}{did_you_mean(name, POLICIES)}")
    text = (files("eclose.train") / "policies" / POLICIES[name]).read_text()
    found = json.loads(text)["policies"]
    return [tuple((operation, chance, level) for operation, chance, level in entry) for entry in found]


__all__ = ["KINDS", "POLICIES", "RANGES", "Augmentation", "Crop", "Cutout", "Flip", "PolicyList", "SubPolicy", "policy"]
