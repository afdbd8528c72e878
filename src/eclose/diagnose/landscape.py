"""A loss in the surroundings of a point: its values on a grid along two random directions (Li et al., 2018).

What is evaluated is the caller's: with fixed weights and fixed batches the grid shows how sharp the point lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from eclose.algebra.errors import RequestError

Point: TypeAlias = Mapping[str, Tensor]


@dataclass(frozen=True)
class Landscape:
    """Values on a square grid.

    Attributes:
        axis: the coordinates along either direction, ascending; the middle one is 0.
        values: name -> rows; `values["loss"][i][j]` belongs to `centre + axis[i] d1 + axis[j] d2`.
        scale: the length of both directions.
    """

    axis: list[float]
    values: dict[str, list[list[float]]]
    scale: float


def landscape(
    value: Callable[[Point], Mapping[str, float]],
    centre: Point,
    *,
    radius: float = 1.0,
    points: int = 11,
    seed: int = 0,
    project: Callable[[dict[str, Tensor]], Point] | None = None,
) -> Landscape:
    """Evaluate a function on a grid around a point.

    Args:
        value: the figures at a point, such as loss and score, with the same names everywhere.
        centre: the point in the middle, which is evaluated as it is.
        radius: the largest coordinate, in lengths of the centre.
        points: coordinates along a direction, an odd number.
        seed: of the directions.
        project: returns the nearest point that is allowed, where not all are; not applied to the centre.
    """
    if points < 1 or points % 2 == 0:
        raise RequestError(f"a grid with a point in its middle has an odd number of points, not {points}")
    if not radius > 0:
        raise RequestError(f"a landscape reaches a radius above 0, not {radius!r}")
    first, second, scale = directions(centre, seed)
    middle = points // 2
    axis = [radius * (index - middle) / max(middle, 1) for index in range(points)]
    values: dict[str, list[list[float]]] = {}
    for row, x in enumerate(axis):
        for y in axis:
            if x == y == 0:
                found = value(centre)
            else:
                moved = {name: entry + x * first[name] + y * second[name] for name, entry in centre.items()}
                found = value(moved if project is None else project(moved))
            for name, figure in found.items():
                rows = values.setdefault(name, [[] for _ in axis])
                rows[row].append(float(figure))
    for name, rows in values.items():
        if any(len(row) != points for row in rows):
            raise RequestError(f"the figure {name!r} was given at some points of the landscape only")
    return Landscape(axis, values, scale)


def directions(centre: Point, seed: int) -> tuple[dict[str, Tensor], dict[str, Tensor], float]:
    """Return two orthogonal random directions of a point's length, and this length.

    Normally distributed, orthogonalised over all entries together; of length 1 where the point is zero. They are drawn
    in float64 on the host, so that a seed means the same directions everywhere.

    Args:
        centre: the point whose entries the directions have.
        seed: of the directions.
    """
    size = sum(entry.numel() for entry in centre.values())
    if size < 2:
        raise RequestError(f"two orthogonal directions need at least two entries, not {size}")
    drawn = torch.randn(2, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    first = drawn[0] / drawn[0].norm()
    second = drawn[1]
    for _ in range(2):  # again for the rounding of the first time: of two entries, little may be left
        second = second - (second @ first) * first
        second = second / second.norm()
    length = math.sqrt(math.fsum(float((entry.detach().cpu().double() ** 2).sum()) for entry in centre.values()))
    scale = length if length > 0 else 1.0
    return _named(first * scale, centre), _named(second * scale, centre), scale


def _named(vector: Tensor, centre: Point) -> dict[str, Tensor]:
    parts = torch.split(vector, [entry.numel() for entry in centre.values()])
    return {
        name: part.reshape(entry.shape).to(entry) for (name, entry), part in zip(centre.items(), parts, strict=True)
    }


__all__ = ["Landscape", "Point", "directions", "landscape"]
