"""Paths drawn by a recurrent controller that is rewarded for accurate ones (Pham et al. 2018, ENAS).

A two-layer LSTM decides about one choice after the other, its input being what it decided last. After every epoch it is
trained on the accuracy of its paths with the shared weights: a score-function estimate with a moving-average baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from eclose.algebra.errors import RequestError
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.mixtures.paths import OnePath
from eclose.strategies.gradient.mixtures.rule import Level
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.supernet import Site, Weighted
from eclose.train.callbacks import Callback
from eclose.train.randomness import key_of

if TYPE_CHECKING:
    from eclose.train.loop import Loop

HIDDEN, LAYERS = 32, 2
TEMPERATURE, TANH = 5.0, 2.5
EPSILON, CLIP = 1e-3, 5.0
ENTROPY, BASELINE_DECAY = 1e-4, 0.99
MOST_SUBSETS = 1_000
FREQUENCY_SAMPLES = 64


class Controller(nn.Module):
    """The policy.

    Args:
        sizes: the number of answers of each decision, in the order in which they are made.
    """

    def __init__(self, sizes: Sequence[int]):
        super().__init__()
        self.sizes = tuple(sizes)
        self.first = nn.Parameter(torch.randn(1, HIDDEN) * 0.1)
        self.embeddings = nn.ModuleList(nn.Embedding(size, HIDDEN) for size in self.sizes)
        self.cell = nn.LSTM(HIDDEN, HIDDEN, LAYERS)
        self.heads = nn.ModuleList(nn.Linear(HIDDEN, size) for size in self.sizes)

    def forward(self, generator: torch.Generator | None = None) -> tuple[list[int], Tensor, Tensor]:
        """Draw a path and return its answers, their log-probability and the entropy of the decisions."""
        given, state = self.first[None], None
        answers, logs, entropies = [], [], []
        for embedding, head in zip(self.embeddings, self.heads, strict=True):
            seen, state = self.cell(given, state)
            logits = TANH * torch.tanh(head(seen[0, 0]) / TEMPERATURE)
            log = torch.log_softmax(logits, 0)
            answer = torch.multinomial(log.detach().exp(), 1, generator=generator)
            answers.append(int(answer))
            logs.append(log[answer[0]])
            entropies.append(-(log * log.exp()).sum())
            given = embedding(answer)[None]
        return answers, torch.stack(logs).sum(), torch.stack(entropies).sum()


class Controlled(OnePath):
    """Paths, edges included, drawn by the controller; alphas say nothing."""

    samples_edges = True
    trained = False

    def __init__(self, sites: Mapping[str, Site], recipe: Recipe):
        super().__init__(sites, recipe)
        self.answers: dict[str, list[tuple[int, ...]]] = {}
        for name, site in self.sites.items():
            if comb(site.count, site.keep) > MOST_SUBSETS:
                raise RequestError(f"a controller cannot decide between the {comb(site.count, site.keep):,} ways to "
                                   f"keep {site.keep} of {site.count} edges at {name!r}")  # fmt: skip
            self.answers[name] = list(combinations(site.selectable, site.keep))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.controller = Controller([len(found) for found in self.answers.values()])
        self._training = ControllerTraining(self)

    def initialise(self, alphas: Mapping[str, nn.Parameter], generator: torch.Generator) -> None:
        """Give the controller its first values; alphas stay at zero."""
        super().initialise(alphas, generator)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
            self.controller.load_state_dict(Controller(self.controller.sizes).state_dict())

    def __call__(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, MixtureWeights]:
        """Draw a path."""
        with torch.no_grad():
            return {name: MixtureWeights(None, kept) for name, kept in self.path().items() if self.sites[name].present}

    def path(self) -> dict[str, tuple[int, ...]]:
        """Return a path drawn from torch's generator."""
        with torch.no_grad():
            return self.kept(self.controller()[0])

    def kept(self, answers: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Return what answers keep."""
        return {name: found[answer] for (name, found), answer in zip(self.answers.items(), answers, strict=True)}

    def expected(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return how often the controller takes each alternative, over paths drawn with a seed of their own."""
        generator = torch.Generator().manual_seed(0)
        counts = {name: torch.zeros(self.sites[name].count) for name in self.names}
        with torch.no_grad():
            for _ in range(FREQUENCY_SAMPLES):
                for name, kept in self.kept(self.controller(generator)[0]).items():
                    if name in counts:
                        counts[name][list(kept)] += 1.0 / (FREQUENCY_SAMPLES * len(kept))
        return {name: counts[name].to(alphas[name].device, alphas[name].dtype) for name in self.names}

    def callbacks(self) -> Sequence[Callback]:
        """The training of the controller."""
        return (self._training,)

    def state_dict(self) -> dict[str, Any]:
        """Return the controller with the rest."""
        return {**super().state_dict(), "controller": self.controller.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        super().load_state_dict(state)
        self.controller.load_state_dict(state["controller"])


class ControllerTraining(Callback):
    """Trains the controller after every epoch of the shared weights.

    The reward of a path is its accuracy on one batch plus a little of its entropy; gradients are averaged over paths.
    """

    def __init__(self, rule: Controlled):
        self.rule = rule
        self.baseline: float | None = None
        recipe = rule.recipe
        betas = (recipe.architecture_beta1, recipe.architecture_beta2)
        self._optimiser = torch.optim.Adam(
            rule.controller.parameters(), lr=recipe.architecture_rate, betas=betas, eps=EPSILON
        )

    def after_epoch(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Take the controller's steps."""
        recipe, feed = self.rule.recipe, loop.feeds["valid"]
        measure = loop.meters["train"].measure
        generator = torch.Generator().manual_seed(key_of(loop.seed, "controller", loop.position.epoch))
        number = 0
        for _ in range(recipe.controller_steps):
            self._optimiser.zero_grad(set_to_none=True)
            for _ in range(recipe.controller_samples):
                answers, log, entropy = self.rule.controller(generator)
                batch = feed.batch(*divmod(number, feed.steps))
                number += 1
                reward = self._reward(loop, measure, answers, batch) + ENTROPY * float(entropy.detach())
                self.baseline = reward if self.baseline is None else (
                    BASELINE_DECAY * self.baseline + (1 - BASELINE_DECAY) * reward
                )  # fmt: skip
                loss = -log * (reward - self.baseline) / recipe.controller_samples
                loss.backward()
            nn.utils.clip_grad_norm_(self.rule.controller.parameters(), CLIP)
            self._optimiser.step()

    def _reward(self, loop: Loop, measure: Any, answers: Sequence[int], batch: Any) -> float:
        kept = self.rule.kept(answers)
        weights = {name: MixtureWeights(None, kept[name]) for name in self.rule.present()}
        with torch.no_grad(), loop.precision():  # batch statistics: running ones belong to no path
            outputs = Weighted(loop.model, weights)(batch.inputs)
            total, count = measure(outputs, batch.targets)
        return float(total) / float(count)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimiser; the controller is the mixture's."""
        return {"optimiser": self._optimiser.state_dict()["state"], "baseline": self.baseline}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": state["optimiser"], "param_groups": groups})
        self.baseline = state["baseline"]


__all__ = ["Controlled", "Controller", "ControllerTraining"]
