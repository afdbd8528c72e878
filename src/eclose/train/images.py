"""Operations on batches of 8-bit images, with the arithmetic that published augmentation policies were found with.

Every function takes `(N, C, H, W)` uint8 tensors with one parameter an image and has static shapes, so it runs on any
device and inside a captured graph. Geometry is in 16.16 fixed point, blends are truncated float32, means and filters
are whole-number arithmetic: the same bits on a CPU and on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

LEVELS = 256
FIXED = 1 << 16
GREY = (19595, 38470, 7471)  # ITU-R 601 luma in 1/65536


def shear(x: float, y: float) -> tuple[float, ...]:
    """Return the affine map (output to input) of a shear."""
    return (1.0, x, 0.0, y, 1.0, 0.0)


def translation(x: float, y: float) -> tuple[float, ...]:
    """Return the affine map (output to input) of a shift in pixels."""
    return (1.0, 0.0, x, 0.0, 1.0, y)


def rotation(degrees: float, width: int, height: int) -> tuple[float, ...]:
    """Return the affine map (output to input) of a counter-clockwise rotation about the image's centre."""
    angle = -math.radians(degrees)
    a, b = math.cos(angle), math.sin(angle)
    x, y = width / 2.0, height / 2.0
    return (a, b, x - a * x - b * y, -b, a, y + b * x - a * y)


def fixed_point(matrix: Sequence[float]) -> tuple[int, ...]:
    """Return an affine map in 16.16 fixed point, its shift taken to the centre of the first pixel."""
    a, b, c, d, e, f = matrix
    values = (a, b, c + (a + b) / 2, d, e, f + (d + e) / 2)
    return tuple(math.floor(value * FIXED + 0.5) for value in values)


def affine(images: Tensor, maps: Tensor) -> Tensor:
    """Move pixels by one affine map an image, `maps` `(N, 6)` in fixed point; nearest pixel, black outside."""
    count, channels, height, width = images.shape
    a, b, c, d, e, f = maps[:, :, None, None].unbind(1)  # shape of each: (N, 1, 1)
    column = torch.arange(width, device=images.device)
    row = torch.arange(height, device=images.device)[:, None]
    source_x = (c + b * row + a * column) >> 16
    source_y = (f + e * row + d * column) >> 16
    inside = (source_x >= 0) & (source_x < width) & (source_y >= 0) & (source_y < height)
    source = (source_y * width + source_x).masked_fill(~inside, 0)
    flat = source.view(count, 1, -1).expand(-1, channels, -1)
    moved = images.reshape(count, channels, -1).gather(2, flat).view_as(images)
    return moved * inside[:, None]


def histogram(images: Tensor) -> Tensor:  # shape: (N, C, 256)
    """Count the pixels of each level in each channel of each image."""
    count, channels = images.shape[:2]
    levels = images.reshape(count, channels, -1).long()
    zeros = torch.zeros(count, channels, LEVELS, dtype=torch.long, device=images.device)
    return zeros.scatter_add_(2, levels, torch.ones((), dtype=torch.long, device=levels.device).expand_as(levels))


def apply_tables(images: Tensor, tables: Tensor) -> Tensor:
    """Replace each level by its entry in `tables` `(N, C, 256)` uint8."""
    count, channels = images.shape[:2]
    return tables.gather(2, images.reshape(count, channels, -1).long()).view_as(images)


def auto_contrast_tables(counts: Tensor) -> Tensor:
    """Stretch each channel to the whole range."""
    present = counts > 0
    low = present.int().argmax(2, keepdim=True)
    high = LEVELS - 1 - present.flip(2).int().argmax(2, keepdim=True)
    levels = torch.arange(LEVELS, device=counts.device)
    scale = 255.0 / (high - low).clamp(min=1).double()
    stretched = (levels * scale - low * scale).trunc().clamp(0, 255)
    return torch.where(high > low, stretched, levels.double()).to(torch.uint8)


def equalize_tables(counts: Tensor) -> Tensor:
    """Spread each channel's levels evenly over the pixels."""
    levels = torch.arange(LEVELS, device=counts.device)
    last = LEVELS - 1 - (counts > 0).flip(2).int().argmax(2, keepdim=True)
    pace = (counts.sum(2, keepdim=True) - counts.gather(2, last)) // 255
    before = counts.cumsum(2) - counts
    spread = ((before + pace // 2) // pace.clamp(min=1)).clamp(max=255)
    return torch.where(pace > 0, spread, levels).to(torch.uint8)


def solarize_tables(threshold: Tensor) -> Tensor:  # threshold: (N,); shape: (N, 256)
    """Invert levels from a threshold on."""
    levels = torch.arange(LEVELS, device=threshold.device)
    return torch.where(levels < threshold[:, None], levels, 255 - levels).to(torch.uint8)


def posterize_tables(bits: Tensor) -> Tensor:  # bits: (N,) whole numbers; shape: (N, 256)
    """Keep only the upper bits of each level."""
    levels = torch.arange(LEVELS, device=bits.device)
    below = 8 - bits[:, None]
    return ((levels >> below) << below).to(torch.uint8)


def blend_tables(level: Tensor, factor: Tensor) -> Tensor:  # both: (N,); shape: (N, 256)
    """Blend every level with one level an image: towards black is brightness, towards the mean grey is contrast."""
    levels = torch.arange(LEVELS, device=factor.device).float()
    return blended(level.float()[:, None], levels[None], factor[:, None])


def blended(from_: Tensor, to: Tensor, factor: Tensor) -> Tensor:
    """Return `from_ + factor * (to - from_)` cut off to 8 bits; factors above 1 extrapolate."""
    origin = from_.float()
    change = factor.float() * (to.float() - origin)
    return (origin + change).clamp(0, 255).to(torch.uint8)


def grey(images: Tensor) -> Tensor:  # shape: (N, 1, H, W)
    """Return the luma of colour images; images of one channel are grey already."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.long().unbind(1)
    luma = (red * GREY[0] + green * GREY[1] + blue * GREY[2] + FIXED // 2) >> 16
    return luma[:, None].to(torch.uint8)


def mean_grey(images: Tensor) -> Tensor:  # shape: (N,)
    """Return the rounded mean of each image's luma."""
    luma = grey(images)
    pixels = luma[0].numel()
    return (2 * luma.long().sum((1, 2, 3)) + pixels) // (2 * pixels)


def smoothed(images: Tensor) -> Tensor:
    """Return the images after the 3x3 filter (1 1 1; 1 5 1; 1 1 1) / 13; the border stays as it is."""
    values = images.int()
    rows = values[:, :, :-2] + values[:, :, 1:-1] + values[:, :, 2:]
    total = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:] + 4 * values[:, :, 1:-1, 1:-1]
    inner = ((2 * total + 13) // 26).to(torch.uint8)
    return torch.where(_border(images), images, functional.pad(inner, (1, 1, 1, 1)))


def boxed(images: Tensor, left: Tensor, top: Tensor, right: Tensor, bottom: Tensor, colour: Sequence[int]) -> Tensor:
    """Fill one box an image, its edges included, with a colour."""
    height, width = images.shape[2:]
    column = torch.arange(width, device=images.device)
    row = torch.arange(height, device=images.device)[:, None]
    across = (column >= left[:, None, None]) & (column <= right[:, None, None])
    down = (row >= top[:, None, None]) & (row <= bottom[:, None, None])
    filled = torch.zeros_like(images[0])
    for channel in range(images.shape[1]):
        filled[channel].fill_(colour[channel])
    return torch.where((across & down)[:, None], filled, images)


def _border(images: Tensor) -> Tensor:
    height, width = images.shape[2:]
    column = torch.arange(width, device=images.device)
    row = torch.arange(height, device=images.device)[:, None]
    return (column == 0) | (column == width - 1) | (row == 0) | (row == height - 1)
