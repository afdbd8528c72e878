"""What is checked: the parts of a real search on a supernet of reduced size, in float64, on one fixed batch a level.

The supernet, the mixture and the step are made by `GradientSearch`, as they are for a search; only the size, the data
and the values of the alphas are the bench's own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from eclose.algebra.errors import EcloseError, RequestError
from eclose.algebra.shapes import Classes, Map, Tokens
from eclose.operations.mixture import MixtureWeights
from eclose.spaces import Space
from eclose.strategies.gradient.mixtures import MixtureRule
from eclose.strategies.gradient.objective import Mixed
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.search import GradientSearch, Made
from eclose.strategies.gradient.steps import ALPHAS, Moved, Unrolled
from eclose.strategies.gradient.supernet import Site, Weighted
from eclose.tasks import Task
from eclose.train.data import Batch
from eclose.train.loop import Loop
from eclose.train.steps import TaskObjective

BATCH = 4
SIDE = 8  # of images
CHANNELS = (4, 8, 12, 16, 24, 36)
CELLS = (1, 3, 0)
SPREAD = 0.5  # of the alphas: far enough from equal for every term of a formula to show


@dataclass
class Fixed:
    """A feed that gives one batch again and again."""

    given: Batch
    steps: int = 1
    exact: bool = True

    def batch(self, epoch: int, step: int) -> Batch:
        """Return the batch."""
        return self.given


@dataclass
class Bench:
    """A strategy's parts, ready to be evaluated.

    Attributes:
        recipe: with the size that was reduced.
        made: supernet and mixture.
        loop: the training loop, which takes no steps here.
        part: the step of the alphas, or None.
        seed: of every evaluation.
        entries: alphas that are checked.
        samples: draws of which a mean is taken.
        notes: what people should know about the result.
    """

    recipe: Recipe
    made: Made
    loop: Loop
    part: Moved | Unrolled | None
    seed: int
    entries: int
    samples: int
    notes: list[str] = field(default_factory=list)

    @property
    def net(self) -> Any:
        """The network."""
        return self.made.supernet.net

    @property
    def rule(self) -> MixtureRule:
        """The mixture."""
        return self.made.rule

    @property
    def alphas(self) -> dict[str, torch.nn.Parameter]:
        """The alphas by name."""
        return self.made.supernet.alphas

    @property
    def sites(self) -> dict[str, Site]:
        """The decisions by name."""
        return self.made.supernet.sites

    @property
    def size(self) -> str:
        """The supernet's size, for people."""
        count = sum(parameter.numel() for parameter in self.net.parameters())
        inputs = "x".join(map(str, self.net.program.input_shape))
        cells = f", cells={self.recipe.cells}" if self.recipe.cells else ""
        channels = f", channels={self.recipe.channels}" if self.recipe.channels else ""
        return f"{count:,} parameters{channels}{cells}, batch {BATCH} of {inputs}, float64"

    @property
    def objective(self) -> Mixed:
        """The loss that moves the alphas."""
        assert self.part is not None
        found: Any = self.part.upper if isinstance(self.part, Unrolled) else self.part.objective
        return found  # type: ignore[no-any-return]

    @property
    def batch(self) -> Batch:
        """The batch that the alphas see."""
        assert self.part is not None
        return self.loop.feeds[self.part.feeds[0]].batch(0, 0)

    def seeded(self) -> Any:
        """Return a context in which draws begin with the seed; what others draw is not changed."""
        return seeded(self.seed)

    def loss(self) -> float:
        """Return the loss that moves the alphas, at their present values and with the seed's noise."""
        with self.seeded(), torch.no_grad():
            return float(self.objective(self.net, self.batch).loss)

    def gradient(self, seed: int | None = None) -> dict[str, Tensor]:
        """Return the gradient that a step would hand to the optimiser of the alphas.

        Args:
            seed: of its draws; the bench's without.
        """
        with seeded(self.seed if seed is None else seed):
            self.loop.backward(self.objective, self.batch, (ALPHAS,))
        return {
            name: torch.zeros_like(alpha) if alpha.grad is None else alpha.grad.clone()
            for name, alpha in self.alphas.items()
        }

    @cached_property
    def chosen(self) -> tuple[tuple[str, int], ...]:
        """The alphas that are checked: `(name, alternative)`, drawn over all decisions."""
        every = [(name, index) for name in self.rule.names for index in self.rule.allowed[name]]
        drawn = random.Random(self.seed).sample(every, min(self.entries, len(every)))
        return tuple(sorted(drawn, key=every.index))

    def label(self, name: str, index: int) -> str:
        """Return an alternative as a text."""
        return self.sites[name].labels[index]

    def by_hand(self, thetas: Mapping[str, Tensor]) -> tuple[float, dict[str, Tensor], dict[str, Tensor]]:
        """Evaluate every alternative under given weights.

        Returns:
            The loss without a regulariser; its derivative by each weight, which is <dL/dout, o_k(x)> summed over all
            places of the choice; and the sum of dL/dout.
        """
        leaves = {name: theta.detach().clone().requires_grad_() for name, theta in thetas.items()}
        shifts = {name: torch.zeros((), dtype=theta.dtype, requires_grad=True) for name, theta in thetas.items()}
        weights = {
            name: MixtureWeights(leaves[name], None, shifts[name]) if name in leaves else MixtureWeights(None)
            for name in self.rule.present()
        }
        view: Any = Weighted(self.net, weights)
        loss = self.objective.plain(view, self.batch).loss
        wanted = [*leaves.values(), *shifts.values()]
        found = torch.autograd.grad(loss, wanted, allow_unused=True)
        filled = [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(wanted, found, strict=True)]
        return (
            float(loss.detach()),
            dict(zip(leaves, filled[: len(leaves)], strict=True)),
            dict(zip(leaves, filled[len(leaves) :], strict=True)),
        )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let draws begin with a seed; what others draw is not changed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def bench(space: Space, recipe: Recipe, *, seed: int = 0, entries: int = 12, samples: int = 1000) -> Bench:
    """Return the bench of a recipe on a space.

    Args:
        space: whose supernet it is.
        recipe: what is checked; its sizes are replaced by the smallest that the space accepts.
        seed: of weights, alphas, data and draws.
        entries: alphas that are checked.
        samples: draws of which a mean is taken.
    """
    search, made = _smallest(space, recipe, seed)
    search.plain = TaskObjective(smooth_loss)
    net = made.supernet.net
    net.double().train()
    net.drop_path_rate = recipe.drop_path
    generator = torch.Generator().manual_seed(seed)
    made.rule.initialise(made.supernet.alphas, generator)
    _spread(search.recipe, made, generator)
    loop = search.loop(made, 0)
    loop.feeds = {name: Fixed(_double(loop.feeds[name].batch(0, 0))) for name in ("train", "valid")}
    part = next((part for part in loop.step.parts if _moves_alphas(part)), None)
    return Bench(search.recipe, made, loop, part, seed, entries, samples)  # type: ignore[arg-type]


def _moves_alphas(part: Any) -> bool:
    return isinstance(part, Unrolled) or (isinstance(part, Moved) and ALPHAS in part.groups)


def _spread(recipe: Recipe, made: Made, generator: torch.Generator) -> None:
    """Move the alphas away from their nearly equal initial values, within their domain."""
    with torch.no_grad():
        for alpha in made.supernet.alphas.values():
            noise = SPREAD * torch.randn(alpha.shape, generator=generator, dtype=alpha.dtype)
            if recipe.mixture == "simplex":
                alpha.copy_(torch.softmax(noise, -1))
            elif recipe.mixture == "proximal":
                alpha.copy_(torch.sigmoid(noise))
            else:
                alpha.copy_(noise)


def _smallest(space: Space, recipe: Recipe, seed: int) -> tuple[GradientSearch, Made]:
    """Return a search with the smallest supernet in which every decision of the space stands."""
    known = {**space.options, **space.supernet_options}
    first: EcloseError | None = None
    best: tuple[GradientSearch, Made] | None = None
    for small in (True, False):
        task = synthetic(space, seed, small)
        for channels in CHANNELS if "channels" in known else (0,):
            for cells in CELLS if "cells" in known else (0,):
                changed = replace(
                    recipe, channels=channels, cells=cells, batch_size=BATCH, split=0.0, flip=False, crop=0, cutout=0,
                    guard="none", hessian_every=0, precision="float32", channels_last=False, capture="off",
                )  # fmt: skip
                search = GradientSearch(space, task, changed, seed=seed, device="cpu")
                try:
                    made = search.made(0)
                except EcloseError as error:
                    first = first or error
                    continue
                if all(site.present for site in made.supernet.sites.values()):
                    return search, made
                best = best or (search, made)
    if best is not None:
        return best
    raise RequestError(f"no supernet of {space.name} could be made to check gradients on: {first}")


def synthetic(space: Space, seed: int, small: bool = True) -> Task:
    """Return random data of the shape that a space is made for.

    Args:
        space: whose input and output they have.
        seed: of the data.
        small: whether images are made smaller than the space's own.
    """
    given, output = space.input, space.output
    generator = torch.Generator().manual_seed(seed)
    count = 2 * BATCH
    if isinstance(given, Tokens):
        inputs = torch.randint(given.vocab, (count, given.length), generator=generator)
    else:
        given = (given[0], *(min(SIDE, side) for side in given[1:])) if small else given
        inputs = torch.randn(count, *given, generator=generator)
    positions = (given.length,) if isinstance(given, Tokens) else given[1:]
    if isinstance(output, Classes):
        targets = torch.randint(output.count, (count,), generator=generator)
    elif isinstance(output, Tokens):
        targets = torch.randint(output.vocab, (count, *positions), generator=generator)
    elif isinstance(output, Map):
        targets = torch.randn(count, output.channels, *positions, generator=generator)
    else:
        targets = torch.randn(count, output.count, generator=generator)
    halves = (inputs[:BATCH], targets[:BATCH]), (inputs[BATCH:], targets[BATCH:])
    return Task(*halves, input=given, output=output, name="random data", allow_missing_classes=True)


def smooth_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of labels, else the mean squared error; tasks' own losses compute in float32."""
    if targets.is_floating_point():
        return functional.mse_loss(outputs, targets)
    return functional.cross_entropy(outputs, targets)


def _double(batch: Batch) -> Batch:
    return Batch(*(part.double() if part.is_floating_point() else part for part in batch))


__all__ = ["Bench", "Fixed", "bench", "seeded", "synthetic"]
