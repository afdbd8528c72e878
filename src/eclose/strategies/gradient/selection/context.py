"""What a selection is given and what it gives, and the measurements that selections share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from eclose.algebra.terms import Term
from eclose.diagnose.normalisation import preserved
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.decisions import Decisions
from eclose.strategies.gradient.mixtures.rule import MixtureRule
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.supernet import Supernet, Weighted
from eclose.tasks import Task
from eclose.train.data import Feed
from eclose.train.meters import Meter
from eclose.train.steps import TaskObjective


@dataclass
class Context:
    """A trained supernet and what it was trained with.

    Attributes:
        supernet: with its weights and alphas.
        rule: alphas to weights.
        recipe: of the search.
        task: what is learned.
        feeds: `train`, `valid` (as in the search) and `held`, the data of the alphas without augmentation.
        plain: the task's loss.
        device: where the supernet is.
        seed: of whatever is random in a selection.
        watch: told what happens.
        state: a file for the state of a long selection, or None.
        settings: of the selection itself, where they differ from its defaults.
    """

    supernet: Supernet
    rule: MixtureRule
    recipe: Recipe
    task: Task
    feeds: Mapping[str, Feed]
    plain: TaskObjective
    device: torch.device
    seed: int = 0
    watch: Callable[[str, Any], None] | None = None
    state: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def thetas(self) -> dict[str, torch.Tensor]:
        """Return the weights of the mixture without their noise."""
        with torch.no_grad():
            return self.rule.expected({name: alpha.detach() for name, alpha in self.supernet.alphas.items()})

    def score(self, weights: Mapping[str, MixtureWeights], batches: int | None = None) -> dict[str, float]:
        """Return loss and score of the supernet under some weights on the held data, with batch statistics.

        Running statistics belong to the mixture of the training; under other weights a network that used them would
        score near chance.

        Args:
            weights: of every decision.
            batches: how many batches; all without.
        """
        net, feed = self.supernet.net, self.feeds["held"]
        meter = Meter(self.device, self.task.metric.measure)
        training = net.training
        net.train()
        rate, net.drop_path_rate = net.drop_path_rate, 0.0
        try:
            with torch.no_grad(), preserved(net):
                view: Any = Weighted(net, weights)
                for step in range(feed.steps if batches is None else min(batches, feed.steps)):
                    batch = feed.batch(0, step)
                    outcome = self.plain(view, batch)
                    meter.add(outcome.loss, outcome.outputs, batch.targets)
        finally:
            net.train(training)
            net.drop_path_rate = rate
        return meter.means()

    def discrete(self, decisions: Mapping[str, tuple[int, ...]], batches: int | None = None) -> dict[str, float]:
        """Return loss and score of the selected architecture with the supernet's weights."""
        return self.score(self.supernet.hard(decisions), batches)


@dataclass(frozen=True)
class Selection:
    """What a selection gives.

    Attributes:
        term: the architecture.
        decisions: what each decision keeps.
        score: of the architecture with the supernet's weights on the held data.
        steps: what was decided when and why, as plain data.
    """

    term: Term
    decisions: Decisions
    score: float
    steps: tuple[dict[str, Any], ...] = ()


__all__ = ["Context", "Selection"]
