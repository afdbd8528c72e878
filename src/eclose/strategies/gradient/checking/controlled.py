"""The controller of ENAS: the mean of its score-function gradient against the sum over all paths.

Its baseline takes in a path's own reward before it is subtracted, as in the reference, so the estimate is unbiased for
0.99 times the gradient of the expected reward, and that is what it is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from eclose.strategies.gradient.checking.bench import Bench, smooth_loss
from eclose.strategies.gradient.checking.entries import Entry, mean
from eclose.strategies.gradient.mixtures.controller import (
    BASELINE_DECAY,
    ENTROPY,
    TANH,
    TEMPERATURE,
    Controlled,
    Controller,
    ControllerTraining,
)

KIND = "score function of a recurrent policy (ENAS)"
METHOD = (
    "a policy of two decisions, the others fixed: the mean over drawn paths of the gradient of its last biases against "
    "the exact sum over all paths of (reward + 1e-4 entropy) grad p(path), times 0.99 because the baseline takes in a "
    "path's own reward (within 4 standard errors). The reward is the negative loss here: an untrained network's "
    "accuracy is flat"
)
OPEN = 2
MOST_ANSWERS = 8  # of an open decision


class Rewards(ControllerTraining):
    """The training of a controller whose rewards are kept: a path's reward on one batch is a number of its own."""

    def __init__(self, rule: Controlled):
        super().__init__(rule)
        self.known: dict[tuple[int, ...], float] = {}
        self._optimiser: Any = Recorder(rule.controller)

    @property
    def recorded(self) -> list[list[Tensor]]:
        """The gradients of all steps."""
        found: list[list[Tensor]] = self._optimiser.gradients
        return found

    def reward(self, loop: Any, answers: Sequence[int]) -> float:
        """Return the reward of a path."""
        key = tuple(answers)
        if key not in self.known:
            batch = loop.feeds["valid"].batch(0, 0)
            self.known[key] = super()._reward(loop, loop.meters["train"].measure, answers, batch)
        return self.known[key]

    def _reward(self, loop: Any, measure: Any, answers: Sequence[int], batch: Any) -> float:
        return self.reward(loop, answers)


class Recorder:
    """Stands where the optimiser does, and writes gradients down instead of taking steps."""

    def __init__(self, controller: Controller):
        self.controller = controller
        self.heads: list[Any] = list(controller.heads)
        self.gradients: list[list[Tensor]] = []

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self.controller.zero_grad(set_to_none=set_to_none)

    def step(self) -> None:
        """Write the gradients of the biases down."""
        self.gradients.append([
            torch.zeros_like(head.bias) if head.bias.grad is None else head.bias.grad.clone()
            for head in self.heads
        ])  # fmt: skip


class FewDecisions(Controlled):
    """A controller of some decisions, the others fixed at their last answer."""

    def __init__(self, bench: Bench, opened: Sequence[str]):
        super().__init__(bench.sites, bench.recipe)
        self.fixed = {name: found[-1] for name, found in self.answers.items() if name not in opened}
        self.answers = {name: self.answers[name][:MOST_ANSWERS] for name in opened}
        with bench.seeded():
            self.controller = Controller([len(found) for found in self.answers.values()])
            with torch.no_grad():  # away from an even policy
                for head in self.heads:
                    head.bias.normal_(0.0, TEMPERATURE / 2)

    @property
    def heads(self) -> list[Any]:
        """The last layer of each decision."""
        return list(self.controller.heads)

    def kept(self, answers: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Return what answers keep, with what is fixed."""
        return {**self.fixed, **super().kept(answers)}


def controlled(bench: Bench) -> list[Entry]:
    """Compare the mean of the policy's gradient with the sum over all paths."""
    opened = [
        name
        for name, site in bench.sites.items()
        if site.present and site.kind == "choice" and len(site.selectable) > 1
    ][:OPEN]
    rule = FewDecisions(bench, opened)
    rule.recipe = replace(bench.recipe, controller_steps=bench.samples, controller_samples=1)
    training = Rewards(rule)
    loop: Any = bench.loop
    loop.meters["train"].measure = _negative_loss
    exact = _summed(training, rule, loop)
    training.baseline = sum(training.known.values()) / len(training.known)
    training.after_epoch(loop, {})
    rows = []
    for number, name in enumerate(opened):
        for answer, kept in enumerate(rule.answers[name]):
            draws = [-float(gradients[number][answer]) for gradients in training.recorded]
            reference = BASELINE_DECAY * float(exact[number][answer])
            rows.append(mean("0.99 dE[reward]/dbias", name, bench.label(name, kept[0]), draws, reference))
    return rows


def _negative_loss(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return -smooth_loss(outputs, targets), torch.ones(())


def _summed(training: Rewards, rule: FewDecisions, loop: Any) -> list[Tensor]:
    """Return the exact gradient of the expected reward by the biases of the decisions."""
    total = torch.zeros(())
    for answers in product(*(range(size) for size in rule.controller.sizes)):
        log, entropy = unrolled_policy(rule.controller, answers)
        reward = training.reward(loop, answers) + ENTROPY * float(entropy.detach())
        total = total + log.exp() * reward
    return list(torch.autograd.grad(total, [head.bias for head in rule.heads]))


def unrolled_policy(controller: Any, answers: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the log-probability of given answers and the entropy of the decisions on their way."""
    given, state = controller.first[None], None
    log, entropy = torch.zeros(()), torch.zeros(())
    for embedding, head, answer in zip(controller.embeddings, controller.heads, answers, strict=True):
        seen, state = controller.cell(given, state)
        chances = torch.softmax(TANH * torch.tanh(head(seen[0, 0]) / TEMPERATURE), 0)
        log = log + chances[answer].log()
        entropy = entropy - torch.special.xlogy(chances, chances).sum()
        given = embedding.weight[answer][None, None]
    return log, entropy


__all__ = ["KIND", "METHOD", "controlled", "unrolled_policy"]
