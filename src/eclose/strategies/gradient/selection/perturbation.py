"""Selection by perturbation (Wang et al. 2021): an operation is worth what the supernet loses without it.

Weights of a trained mixture do not say how good the operation would be alone. So one edge after the other is decided by
measurement: each of its operations is taken out in turn, with the other weights left as they are, and the one that the
supernet misses most is kept; between two decisions the supernet is tuned. Nodes choose their edges last, in the same
way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from eclose.algebra.errors import RequestError
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.decisions import as_scores, edge_strengths, strongest
from eclose.strategies.gradient.selection.context import Context, Selection
from eclose.strategies.gradient.selection.measuring import CRITERIA, Measurement, candidates, concluded, seeded
from eclose.strategies.gradient.selection.memory import Memory, fingerprint
from eclose.strategies.gradient.selection.schedule import Projection, Schedule, schedule
from eclose.strategies.gradient.selection.settings import refuse_below, refuse_unknown, with_settings
from eclose.strategies.gradient.selection.tuning import PartlyDecided, tuning
from eclose.strategies.gradient.supernet import Site
from eclose.train.callbacks import Callback
from eclose.train.loop import Loop
from eclose.train.randomness import key_of
from eclose.train.schedules import Position

CHOOSE = ("perturbation", "magnitude")


@dataclass(frozen=True)
class Settings:
    """How it is done.

    Attributes:
        interval: epochs of tuning between two projections.
        tuning_rate: the weights' learning rate at the start of the tuning; 0 for a tenth of the search's.
        criterion: `"score"` or `"loss"`: what is measured.
        batches: of the held data that one measurement takes; 0 for all.
        choose: `"magnitude"` keeps the largest weights instead and tunes all the same: what the tuning alone does.
        topology: whether nodes choose their edges in the same way; None where any has more edges than it keeps.
        train_alphas: whether the weights of undecided edges go on training as they did in the search.
    """

    interval: int = 5
    tuning_rate: float = 0.0
    criterion: str = "score"
    batches: int = 0
    choose: str = "perturbation"
    topology: bool | None = None
    train_alphas: bool = True

    def __post_init__(self) -> None:
        refuse_unknown(self.criterion, CRITERIA, "criterion")
        refuse_unknown(self.choose, CHOOSE, "choose")
        refuse_below(self.interval, 1, "interval")
        refuse_below(self.tuning_rate, 0, "tuning_rate")
        refuse_below(self.batches, 0, "batches")


def perturbation(context: Context) -> Selection:
    """Return what the supernet misses most; its weights are tuned on the way."""
    settings = with_settings(Settings(), context.settings, "perturbation")
    plan = planned(context, settings)
    net = context.supernet
    memory = Memory(context.state, {
        "by": "perturbation", "seed": context.seed, "settings": dict(vars(settings)), "most_skips":
        context.recipe.most_skips, "least_features": context.recipe.least_features, "supernet": fingerprint(net.net),
    })  # fmt: skip
    result = memory.finished()
    if result is None:
        result = _projected(context, settings, plan, memory)
        memory.finish(result)
    decisions = {name: tuple(kept) for name, kept in result["decisions"].items()}
    return Selection(net.term(decisions), decisions, result["score"], tuple(result["steps"]))


def planned(context: Context, settings: Settings) -> Schedule:
    """Return when what is decided, and refuse settings that do not go with the supernet."""
    return schedule(context.supernet.sites, interval=settings.interval, topology=settings.topology, seed=context.seed)


def _projected(context: Context, settings: Settings, plan: Schedule, memory: Memory) -> dict[str, Any]:
    rule = PartlyDecided(context.rule)
    projections = Projections(context, settings, plan, rule)
    if plan.epochs:
        mixed_edges = any(site.weighted and site.kind == "pick" for site in context.supernet.sites.values())
        loop = tuning(
            context, rule, epochs=plan.epochs, rate=settings.tuning_rate, train_alphas=settings.train_alphas,
            seed=key_of(context.seed, "tuning") % 2**63, rests_from=None if mixed_edges else plan.settled,
            callbacks=[projections],
        )  # fmt: skip
        loop.run(memory)
    projections.at(plan.epochs)
    decisions = concluded(context, rule.decided, projections.importance)
    with seeded(context):
        score = context.discrete(decisions)["score"]
    return {
        "decisions": {name: list(kept) for name, kept in decisions.items()},
        "score": score,
        "steps": projections.steps,
    }


class Projections(Callback):
    """Makes decisions between epochs of the tuning, as scheduled.

    Attributes:
        steps: what was decided when and why, as plain data. Scores are those without each alternative; an alternative
            that was not taken out has none.
        importance: for each choice what every alternative was worth.
    """

    def __init__(self, context: Context, settings: Settings, plan: Schedule, rule: PartlyDecided):
        self.context, self.settings, self.plan, self.rule = context, settings, plan, rule
        self.measure = Measurement(context, settings.criterion, settings.batches)
        self.steps: list[dict[str, Any]] = []
        self.importance: dict[str, list[float]] = {}

    def before_epoch(self, loop: Loop) -> None:
        """Make the decisions of an epoch."""
        self.at(loop.position.epoch)

    def at(self, epoch: int) -> None:
        """Make the decisions that are due after so many epochs."""
        for projection in self.plan.projections:
            if projection.epoch == epoch:
                self.project(projection)

    def project(self, projection: Projection) -> None:
        """Make the decisions of a projection, each with those before it made."""
        for name in projection.names:
            site = self.context.supernet.sites[name]
            decide = self._operation if site.kind == "choice" else self._edges
            text = decide(site, projection.epoch)
            if self.context.watch is not None:
                self.context.watch("selection", (len(self.rule.decided), self.plan.decisions, f"{name}: {text}"))

    def _operation(self, site: Site, epoch: int) -> str:
        offered = candidates(self.context, site)
        scores: list[float | None] = [None] * site.count
        if self.settings.choose == "magnitude":
            theta = self._thetas()[site.name]
            worth = {index: theta[index] for index in offered}
            scores = list(theta)
        elif len(offered) == 1:
            worth = {offered[0]: 1.0}
        else:
            weights = self.rule.weights(self.context.supernet.alphas)
            for index in offered:
                scores[index] = self.measure({**weights, site.name: without(weights[site.name], index)})
            left = {index: self.measure.value(scores[index] or 0.0) for index in offered}
            worth = {index: max(left.values()) - value for index, value in left.items()}
        kept = max(offered, key=lambda index: (worth[index], -index))
        self.importance[site.name] = [worth.get(index, -1.0) for index in range(site.count)]
        self.rule.decided[site.name] = (kept,)
        self._told(site, scores, site.labels[kept], epoch)
        return f"keeps {site.labels[kept]}"

    def _edges(self, site: Site, epoch: int) -> str:
        if self.settings.choose == "magnitude":
            strengths = self._strengths(site)
            self.rule.decided[site.name] = strongest(site, strengths)
            self._told(site, list(strengths), _edges_text(self.rule.decided[site.name]), epoch)
            return f"keeps {_edges_text(self.rule.decided[site.name])}"
        remaining = tuple(range(site.count))
        while len(remaining) > site.keep:
            weights = self.rule.weights(self.context.supernet.alphas)
            values = weights[site.name].values
            scores: list[float | None] = [None] * site.count
            for index in remaining:
                others = tuple(edge for edge in remaining if edge != index)
                scores[index] = self.measure({**weights, site.name: MixtureWeights(values, others)})
            gone = max(remaining, key=lambda index: (self.measure.value(scores[index] or 0.0), -index))
            remaining = tuple(edge for edge in remaining if edge != gone)
            self._told(site, scores, _edges_text(remaining), epoch)
        self.rule.decided[site.name] = remaining
        return f"keeps {_edges_text(remaining)}"

    def _strengths(self, site: Site) -> list[float]:
        thetas = self._thetas()
        strength = {name: thetas[name][kept[0]] for name, kept in self.rule.decided.items() if name in thetas}
        strength |= {name: max(theta) for name, theta in thetas.items() if name not in strength}
        return edge_strengths(site, thetas, strength)

    def _thetas(self) -> Mapping[str, list[float]]:
        alphas = {name: alpha.detach() for name, alpha in self.context.supernet.alphas.items()}
        with torch.no_grad():
            return as_scores(self.rule.expected(alphas))

    def _told(self, site: Site, scores: list[float | None], kept: str, epoch: int) -> None:
        plain = [None if score is None or score != score else score for score in scores]
        self.steps.append({"choice": site.name, "scores": plain, "kept": kept, "epoch": epoch})

    # What a tuning remembers

    def variant(self, position: Position) -> Any:
        """Return what is decided: it is a constant inside a captured step."""
        return tuple(sorted(self.rule.decided.items()))

    def state_dict(self) -> dict[str, Any]:
        """Return the decisions and how they came about."""
        decided = {name: list(kept) for name, kept in self.rule.decided.items()}
        return {"decided": decided, "steps": list(self.steps), "importance": dict(self.importance)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        self.rule.decided = {name: tuple(kept) for name, kept in state["decided"].items()}
        self.steps, self.importance = list(state["steps"]), dict(state["importance"])


def without(weights: MixtureWeights, index: int) -> MixtureWeights:
    """Return a mixture with the weight of one alternative set to zero; the others' are left as they are."""
    if weights.values is None:
        raise RequestError("an alternative of a decision without weights cannot be taken out")
    values = weights.values.clone()
    values[index] = 0.0
    return MixtureWeights(values, weights.selected)


def _edges_text(edges: tuple[int, ...]) -> str:
    return f"edges {', '.join(map(str, edges))}"


__all__ = ["Projections", "Settings", "perturbation", "planned", "without"]
