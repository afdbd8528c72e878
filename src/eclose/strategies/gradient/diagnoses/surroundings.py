"""The landscape of validation loss and score around the alphas (Zela et al. 2020; Chen and Hsieh 2020)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.diagnose.landscape import Landscape, landscape
from eclose.strategies.gradient.perturbations import on_simplex
from eclose.strategies.gradient.selection.context import Context

SPACES = ("alpha", "theta")


def surroundings(
    context: Context,
    *,
    space: str = "alpha",
    points: int = 11,
    radius: float = 1.0,
    batches: int | None = 5,
    seed: int = 0,
    watch: Callable[[int, int], None] | None = None,
) -> Landscape:
    """Return loss and score of the supernet on a grid around its alphas, with fixed weights and on fixed batches.

    Args:
        context: a supernet.
        space: `"alpha"` moves the alphas; `"theta"` moves the weights of the mixture, back onto the simplex of each
            decision (clipped and divided by their sum).
        points: coordinates along a direction, an odd number.
        radius: the largest coordinate, in lengths of the centre.
        batches: batches of held data; None for all.
        seed: of the two directions.
        watch: told how many points are done and how many there are.
    """
    if space not in SPACES:
        hint = did_you_mean(space, SPACES)
        raise RequestError(f"a landscape lies in the space alpha or theta, not {space!r}{hint}")
    rule = context.rule
    alphas = {name: alpha.detach().clone() for name, alpha in context.supernet.alphas.items()}
    centre: dict[str, Tensor] = dict(context.thetas()) if space == "theta" else alphas
    done = 0

    def value(point: Mapping[str, Tensor]) -> dict[str, float]:
        nonlocal done
        thetas = point if space == "theta" else rule.expected(point)
        found = context.score(rule.mixed(thetas), batches)
        done += 1
        if watch is not None:
            watch(done, points * points)
        return found

    def allowed(point: dict[str, Tensor]) -> Mapping[str, Tensor]:
        if space == "theta" or context.recipe.mixture == "simplex":
            return {name: on_simplex(_kept(context, name, moved), centre[name]) for name, moved in point.items()}
        rule.updated(point)  # type: ignore[arg-type]  # brings tensors back into the domain of alphas
        return point

    return landscape(value, centre, radius=radius, points=points, seed=seed, project=allowed)


def _kept(context: Context, name: str, values: Tensor) -> Tensor:
    """Return weights without those of alternatives that a progressive search has dropped."""
    kept = context.rule.allowed[name]
    mask = values.new_zeros(values.shape)
    mask[list(kept)] = 1.0
    return values * mask


__all__ = ["SPACES", "surroundings"]
