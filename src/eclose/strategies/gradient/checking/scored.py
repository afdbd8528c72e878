"""The score-function gradient with a local reward (DSNAS): its mean over draws against the sum over all paths.

It is no estimate of the derivative of the expected loss: the reward of a choice is its own <dL/dout, o_z(x)>. What it
estimates is E_z[R_e(z) grad log p(z_e)], and that is what is summed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from eclose.strategies.gradient.checking.bench import Bench
from eclose.strategies.gradient.checking.entries import Entry, close, mean
from eclose.strategies.gradient.mixtures.rule import Level

KIND = "score function with a local reward"
METHOD = (
    "a path's gradient against <dL/dout, o_z(x)> grad log p(z), and the mean over draws against the exact sum over all "
    "paths, with two choices open and the others fixed (within 4 standard errors); the reward is taken with every "
    "alternative evaluated"
)
OPEN = 2
ONE_BY_ONE = 2  # paths whose own gradients are compared
SAME = 1e-9  # of the largest entry: the same numbers in another order


class Noted:
    """A mixture whose draws are noted; a path's gradient is computed once.

    The gradient is a function of the path alone, so draws of a path that was seen before cost nothing.
    """

    def __init__(self, bench: Bench):
        self.bench, self.rule = bench, bench.rule
        self.choices = [name for name in self.rule.names if bench.sites[name].kind == "choice"]
        self.known: dict[tuple[int, ...], dict[str, Tensor]] = {}

    def gradient(self) -> dict[str, Tensor]:
        """Draw a path and return the gradient of a step that takes it."""
        state = torch.get_rng_state()
        level: Level = "architecture"
        drawn = self.rule(self.bench.alphas, level)
        path = tuple(index for name in self.choices for index in drawn[name].selected or ())
        if path not in self.known:
            after = torch.get_rng_state()
            torch.set_rng_state(state)
            objective = self.bench.objective
            loss = objective(self.bench.net, self.bench.batch).loss
            alphas = self.bench.alphas
            found = torch.autograd.grad(loss, list(alphas.values()), allow_unused=True)
            self.known[path] = {
                name: torch.zeros_like(alphas[name]) if g is None else g for name, g in zip(alphas, found, strict=True)
            }
            torch.set_rng_state(after)
        return self.known[path]


def scored(bench: Bench) -> list[Entry]:
    """Compare the mean of the estimator with the sum over all paths."""
    names = [name for name in bench.rule.names if bench.sites[name].kind == "choice"]
    opened = list(dict.fromkeys([*(name for name, _ in bench.chosen if name in names), *names]))[:OPEN]
    for name in names:
        if name not in opened:
            bench.rule.allowed[name] = (_likeliest(bench, name),)
    paths = _paths(bench, names, opened)
    noted = Noted(bench)
    with bench.seeded():
        draws = [noted.gradient() for _ in range(bench.samples)]
    rows = []
    for name in opened:
        for index in bench.rule.allowed[name]:
            label = bench.label(name, index)
            for taken, found in list(noted.known.items())[:ONE_BY_ONE]:
                expected = next(path for path in paths if path.taken == taken)
                reference = expected.gradients[name]
                scale = float(reference.abs().max())
                rows.append(close("R grad log p, one path", name, label, float(found[name][index]),
                                  float(reference[index]), SAME, scale))  # fmt: skip
            exact = sum(path.chance * float(path.gradients[name][index]) for path in paths)
            rows.append(mean("E[R grad log p]", name, label, [float(found[name][index]) for found in draws], exact))
    return rows


def _likeliest(bench: Bench, name: str) -> int:
    """Return the alternative at which a choice is fixed: the likeliest that gives something."""
    site = bench.sites[name]
    some = [index for index in range(site.count) if index not in site.zeros] or list(range(site.count))
    return max(some, key=lambda index: float(bench.alphas[name].detach()[index]))


@dataclass(frozen=True)
class Path:
    """A path with its probability and what the estimator should give on it."""

    taken: tuple[int, ...]
    chance: float
    gradients: dict[str, Tensor]


def _paths(bench: Bench, names: list[str], opened: list[str]) -> list[Path]:
    """Return every path of the open choices."""
    chances = {name: torch.softmax(bench.alphas[name].detach(), -1) for name in bench.rule.names}
    found = []
    for answers in product(*(range(bench.sites[name].count) for name in opened)):
        taken = {name: bench.rule.allowed[name][0] for name in names} | dict(zip(opened, answers, strict=True))
        thetas = dict(chances)  # edges that have weights of their own stay mixed
        for name in names:
            thetas[name] = torch.zeros_like(chances[name])
            thetas[name][taken[name]] = 1.0
        rewards = bench.by_hand(thetas)[1]
        gradients = {}
        for name in opened:
            score = -chances[name].clone()  # grad log p(z) = [i = z] - p_i
            score[taken[name]] += 1.0
            gradients[name] = float(rewards[name][taken[name]]) * score
        chance = math.prod(float(chances[name][taken[name]]) for name in opened)
        found.append(Path(tuple(taken[name] for name in names), chance, gradients))
    return found


__all__ = ["KIND", "METHOD", "scored"]
