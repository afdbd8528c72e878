"""Selection by discretising and fine-tuning: what the selection by perturbation approximates, for small studies.

Each alternative of a choice is fixed in turn, the supernet is fine-tuned and measured, and the best is kept. The
supernet is what it was before each of these measurements, bit by bit, and afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.selection.context import Context, Selection
from eclose.strategies.gradient.selection.measuring import CRITERIA, Measurement, candidates, concluded, seeded
from eclose.strategies.gradient.selection.memory import Memory, fingerprint
from eclose.strategies.gradient.selection.schedule import schedule
from eclose.strategies.gradient.selection.settings import refuse_below, refuse_unknown, with_settings
from eclose.strategies.gradient.selection.tuning import PartlyDecided, tuning
from eclose.strategies.gradient.supernet import Site
from eclose.train.randomness import key_of

LIMIT = 200  # epochs in all


@dataclass(frozen=True)
class Settings:
    """How it is done.

    Attributes:
        epochs: of each fine-tuning.
        tuning_rate: the weights' learning rate at its start; 0 for a tenth of the search's.
        criterion: `"score"` or `"loss"`: what is measured.
        batches: of the held data that one measurement takes; 0 for all.
        train_alphas: whether the weights of undecided edges are tuned too, as they were trained in the search.
        limit: epochs that all fine-tunings may take together.
    """

    epochs: int = 1
    tuning_rate: float = 0.0
    criterion: str = "score"
    batches: int = 0
    train_alphas: bool = True
    limit: int = LIMIT

    def __post_init__(self) -> None:
        refuse_unknown(self.criterion, CRITERIA, "criterion")
        refuse_below(self.epochs, 1, "epochs")
        refuse_below(self.tuning_rate, 0, "tuning_rate")
        refuse_below(self.batches, 0, "batches")


def finetune(context: Context) -> Selection:
    """Return the alternatives after whose fine-tuning the supernet is best."""
    settings = with_settings(Settings(), context.settings, "finetune")
    plan = schedule(context.supernet.sites, seed=context.seed)
    names = [name for projection in plan.projections for name in projection.names]
    count = sum(_fits(context, context.supernet.sites[name]) for name in names)
    if count * settings.epochs > settings.limit:
        raise RequestError(
            f"{count} alternatives fine-tuned for {settings.epochs} each are {count * settings.epochs} epochs, more "
            f"than limit={settings.limit}; the selection perturbation approximates this at a fraction of the cost, or "
            f"set limit={count * settings.epochs}"
        )
    net = context.supernet
    memory = Memory(context.state, {
        "by": "finetune", "seed": context.seed, "settings": dict(vars(settings)), "most_skips":
        context.recipe.most_skips, "least_features": context.recipe.least_features, "supernet": fingerprint(net.net),
    })  # fmt: skip
    result = memory.finished()
    if result is None:
        study = FineTuning(context, settings, memory, count)
        for name in names:
            study.decide(net.sites[name])
        decisions = concluded(context, study.rule.decided, study.importance)
        with seeded(context):
            score = context.discrete(decisions)["score"]
        kept = {name: list(indices) for name, indices in decisions.items()}
        result = {"decisions": kept, "score": score, "steps": study.steps}
        memory.finish(result)
    decisions = {name: tuple(indices) for name, indices in result["decisions"].items()}
    return Selection(net.term(decisions), decisions, result["score"], tuple(result["steps"]))


def _fits(context: Context, site: Site) -> int:
    """Return how many fine-tunings a decision takes."""
    if site.kind == "choice":
        offered = len(candidates(context, site))
        return offered if offered > 1 else 0
    return sum(range(site.keep + 1, site.count + 1))


class FineTuning:
    """Fixes, fine-tunes and measures one alternative after the other.

    What was measured is kept in the memory, so that a study that was killed does not measure it again.
    """

    def __init__(self, context: Context, settings: Settings, memory: Memory, count: int):
        self.context, self.settings, self.memory, self.count = context, settings, memory, count
        self.measure = Measurement(context, settings.criterion, settings.batches)
        self.rule = PartlyDecided(context.rule)
        self.start: dict[str, Tensor] = {
            name: tensor.detach().clone() for name, tensor in context.supernet.net.state_dict().items()
        }
        self.known: dict[str, float] = dict(memory.read() or {})
        self.done = 0
        self.steps: list[dict[str, Any]] = []
        self.importance: dict[str, list[float]] = {}

    def decide(self, site: Site) -> None:
        """Make one decision."""
        if site.kind == "choice":
            self._operation(site)
        else:
            self._edges(site)

    def _operation(self, site: Site) -> None:
        offered = candidates(self.context, site)
        scores: list[float | None] = [None] * site.count
        if len(offered) > 1:
            for index in offered:
                scores[index] = self._tuned(site, (index,))
        value = {index: self.measure.value(scores[index] or 0.0) for index in offered}
        best = max(offered, key=lambda index: (value[index], -index))
        worst = min(value.values())
        worth = {index: found - worst for index, found in value.items()}
        self.importance[site.name] = [worth.get(index, -1.0) for index in range(site.count)]
        self.rule.decided[site.name] = (best,)
        self._told(site, scores, site.labels[best])

    def _edges(self, site: Site) -> None:
        remaining = tuple(range(site.count))
        while len(remaining) > site.keep:
            scores: list[float | None] = [None] * site.count
            for index in remaining:
                scores[index] = self._tuned(site, tuple(edge for edge in remaining if edge != index))
            gone = max(remaining, key=lambda index: (self.measure.value(scores[index] or 0.0), -index))
            remaining = tuple(edge for edge in remaining if edge != gone)
            self._told(site, scores, f"edges {', '.join(map(str, remaining))}")
        self.rule.decided[site.name] = remaining

    def _tuned(self, site: Site, kept: tuple[int, ...]) -> float:
        """Return what is measured after fine-tuning with some alternatives fixed, and put the supernet back."""
        key = f"{site.name} {kept}"
        if key not in self.known:
            net = self.context.supernet.net
            rule = PartlyDecided(self.context.rule)
            rule.decided = {**self.rule.decided, site.name: kept}
            try:
                tuning(
                    self.context, rule, epochs=self.settings.epochs, rate=self.settings.tuning_rate,
                    train_alphas=self.settings.train_alphas, seed=key_of(self.context.seed, "finetune") % 2**63,
                ).run()  # fmt: skip
                self.known[key] = self.measure(rule.weights(self.context.supernet.alphas))
            finally:
                net.load_state_dict(self.start)
            self.memory.write(self.known)
        self.done += 1
        if self.context.watch is not None:
            self.context.watch("selection", (self.done, self.count, f"{site.name}: {self.known[key]:.4g}"))
        return self.known[key]

    def _told(self, site: Site, scores: list[float | None], kept: str) -> None:
        plain: Mapping[str, Any] = {
            "choice": site.name,
            "scores": [None if score is None or score != score else score for score in scores],
            "kept": kept,
            "epoch": self.settings.epochs,
        }
        self.steps.append(dict(plain))


__all__ = ["LIMIT", "FineTuning", "Settings", "finetune"]
