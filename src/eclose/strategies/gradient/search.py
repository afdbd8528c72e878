"""A gradient search: a supernet, the training loop with the parts of a recipe, a term at the end.

Stages, returns of a guard and resumes are all the same thing here: a loop that takes up a state and runs on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from eclose.algebra.errors import RequestError
from eclose.algebra.terms import Term
from eclose.diagnose.normalisation import preserved
from eclose.operations.groups import weights as weights_of
from eclose.runs import Run
from eclose.spaces import Space
from eclose.strategies.gradient.data import search_feeds
from eclose.strategies.gradient.decisions import Decisions
from eclose.strategies.gradient.finite import explaining
from eclose.strategies.gradient.guards import LARGEST_WEIGHT_DECAY, WEIGHT_DECAY_FACTOR, Guard, guard
from eclose.strategies.gradient.keeping import Checkpoint, Kept, RuleState, Shelf
from eclose.strategies.gradient.mixtures import MixtureRule, mixture
from eclose.strategies.gradient.objective import alphas_of
from eclose.strategies.gradient.optimisers import architecture_optimiser
from eclose.strategies.gradient.perturbations import Perturbation, perturbation
from eclose.strategies.gradient.probe import Probe
from eclose.strategies.gradient.progress import next_stage
from eclose.strategies.gradient.recipe import Recipe, Stage, stages_of
from eclose.strategies.gradient.regularisers import regulariser
from eclose.strategies.gradient.selection import Context, select
from eclose.strategies.gradient.steps import ALPHAS, WEIGHTS, step_of
from eclose.strategies.gradient.supernet import Supernet, Weighted, supernet
from eclose.strategies.gradient.watching import Watching, history_of
from eclose.tasks import Task
from eclose.train.callbacks import Callback, CutoutShare, DropPath
from eclose.train.data import Feed
from eclose.train.groups import SGD, Group
from eclose.train.loop import Loop
from eclose.train.randomness import key_of
from eclose.train.schedules import Constant, Cosine, Linear
from eclose.train.steps import TaskObjective
from eclose.train.training import as_device, load_state

Watch = Callable[[str, Any], None]


@dataclass(frozen=True)
class Found:
    """What a gradient search gave.

    Attributes:
        term: the selected architecture.
        decisions: what each decision keeps.
        score: of that architecture with the supernet's weights on the data of the alphas, by the task's metric.
        epochs: that were searched.
        reason: why it ended early, or nothing.
        notes: what was asked for and is not done, and why.
        seconds: that the search took, with those before an interruption up to the state that was kept.
    """

    term: Term
    decisions: Decisions
    score: float
    epochs: int
    reason: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


class GradientSearch:
    """One search.

    Args:
        space: what is searched.
        task: what is learned.
        recipe: how.
        seed: of everything.
        device: where; the GPU where there is one.
        run: the folder that keeps it, or None.
        watch: told what happens.
    """

    def __init__(
        self,
        space: Space,
        task: Task,
        recipe: Recipe,
        *,
        seed: int = 0,
        device: str | None = None,
        run: Run | None = None,
        watch: Watch | None = None,
    ):
        self.space, self.task, self.recipe, self.seed = space, task, recipe, seed
        self.device, self.run, self.watch = as_device(device), run, watch
        self.stages = stages_of(recipe)
        self.shelf = Shelf(None if run is None else run.path / "checkpoints")
        self.returns: list[dict[str, Any]] = []
        self.plain = TaskObjective(task.loss)
        self.notes: list[str] = []
        self.history: list[dict[str, Any]] = []
        self._feeds: dict[str, Feed] | None = None
        self._began = time.monotonic()

    # The search

    def search(self) -> Found:
        """Search to the end, or on from where an interrupted search was."""
        self._began = time.monotonic()
        state = self.run.restore(load_state) if self.run is not None else None
        number = 0
        if state is not None:
            number, self.returns = int(state["stage"]), list(state["returns"])
            assert self.run is not None
            self.history = history_of(self.run)
            self._began -= float(state.get("seconds", 0.0))
        content = None if state is None else state["content"]
        made = self.made(number)
        self.notes += made.supernet.notes
        self.notes += [f"{key}= is not used: {reason}" for key, reason in self.recipe.unused().items()]
        if state is None:
            made.rule.initialise(made.supernet.alphas, self._generator("alphas"))
            made.rule.updated(made.supernet.alphas)
            self._introduce(made.supernet)
        while True:
            loop = self.loop(made, number)
            if made.carry is not None:
                made.carry(loop)
                made.carry = None
            checkpoint = Checkpoint(self.run, partial(self._outer, number), content)
            content = None
            with explaining(loop, made.supernet):
                loop.run(checkpoint, self._finished)
            for note in loop.notes:
                self._note(note)
            asked = None if made.guard is None else made.guard.asked
            if asked is not None and asked.again and loop.stopped:
                content = self._returned(loop, asked.epochs)
                continue
            if loop.stopped or number + 1 == len(self.stages):
                break
            made = next_stage(self, made, loop, number)
            number += 1
        reason = loop.stopped
        if asked is not None and loop.stopped:
            loop.load_state_dict(self.shelf.read(asked.epochs)["loop"])
        return self._selected(made, loop.position.epoch, reason)

    def _outer(self, number: int) -> dict[str, Any]:
        """Return what the search itself remembers beside a loop's state."""
        return {"stage": number, "returns": self.returns, "seconds": time.monotonic() - self._began}

    def _returned(self, loop: Loop, epochs: int) -> Any:
        """Return the state of an earlier epoch, from which the search goes on with more weight decay."""
        before = self._weight_decay()
        more = min(before * WEIGHT_DECAY_FACTOR, LARGEST_WEIGHT_DECAY)
        self.returns.append({"from": loop.position.epoch, "to": epochs, "weight_decay": more})
        if self.run is not None:
            self.run.append("return", durable=True, **self.returns[-1], reason=loop.stopped)
        return {"figures": {}, "loop": self.shelf.read(epochs)["loop"]}

    def _selected(self, made: Made, epochs: int, reason: str) -> Found:
        context = Context(
            supernet=made.supernet, rule=made.rule, recipe=replace(self.recipe, weight_decay=self._weight_decay()),
            task=self.task, feeds=self.feeds(),
            plain=self.plain, device=self.device, seed=self.seed, watch=self.watch,
            state=None if self.run is None else self.run.path / "selection.pt",
        )  # fmt: skip
        found = select(self.recipe.selection, context)
        if found.term not in self.space:
            self._note("the selected term breaks a constraint of the grammar; selection by magnitude keeps them")
        seconds = time.monotonic() - self._began
        return Found(found.term, found.decisions, found.score, epochs, reason, tuple(self.notes), seconds)

    def refuse_undefined(self, made: Made, loop: Loop) -> None:
        """Raise where a supernet gives no finite loss before anything is trained; its state is not kept."""
        made.rule.initialise(made.supernet.alphas, self._generator("alphas"))
        with torch.random.fork_rng(devices=[]), torch.no_grad(), preserved(loop.model):
            weights = made.rule(alphas_of(loop.model, made.rule), "weights")
            outcome = self.plain(Weighted(loop.model, weights), self.feeds()["valid"].batch(0, 0))  # type: ignore[arg-type]
        if not bool(torch.isfinite(outcome.loss)):
            raise RequestError(
                f"the supernet of {self.space.name} has no finite loss to begin with: some of its alternatives give "
                "values that are no numbers, and a mixture spreads them. Search it by trials: random or evolution"
            )

    # What it is made of

    def made(self, number: int) -> Made:
        """Return the supernet and the parts of a stage, with initial parameters."""
        stage = self.stages[number]
        seed = key_of(self.seed, "supernet") % 2**63
        net = supernet(self.space, self.task, self.recipe, partial=stage.partial, seed=seed)
        net.net.to(self.device)
        if self.recipe.channels_last:
            net.net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        rule = mixture(net.sites, self.recipe)
        largest = max((site.count for site in net.choices.values()), default=0)
        if number == 0 and 0 < stage.operations < largest:
            raise RequestError(
                f"a first stage has all operations, since nothing is known about them yet: {stage.operations} of "
                f"{largest} in stages={self.recipe.stages!r}; write 0 for all"
            )
        if self.recipe.without_none:
            rule.drop_none()
        return Made(net, rule, perturbation(tuple(name for name in net.choices), self.recipe), stage)

    def loop(self, made: Made, number: int) -> Loop:
        """Return the training loop of a stage."""
        recipe, stage = self.recipe, made.stage
        net = made.supernet.net
        steps = step_of(
            recipe, self.plain, made.rule, perturbation=made.perturbation,
            regulariser=regulariser(recipe, made.rule, net.program),
            pauses=((stage.first, stage.first + recipe.frozen),) if recipe.frozen else (),
        )  # fmt: skip
        optimiser = SGD(recipe.momentum, recipe.nesterov, self._weight_decay())
        rate = Cosine(recipe.rate, recipe.rate_end, period=recipe.period or None)
        groups = [Group(WEIGHTS, weights_of(net), optimiser, rate, clip=recipe.clip or None)]
        if any(ALPHAS in getattr(part, "groups", (ALPHAS,)) for part in steps.parts):
            groups.append(
                Group(ALPHAS, made.supernet.alphas, architecture_optimiser(recipe), Constant(recipe.architecture_rate))
            )
        callbacks: list[Callback] = [RuleState(made.rule), *made.rule.callbacks()]
        if made.perturbation is not None:
            callbacks += made.perturbation.callbacks()
        if recipe.drop_path and not net.program.droppable:
            self._note(f"drop_path={recipe.drop_path:g} drops nothing: no operation stands on an edge of a pick here")
        if recipe.cutout and self.task.augmentable is None:
            self._note("cutout is left out: the task does not say that its inputs keep their meaning when changed")
        if recipe.drop_path:
            callbacks.append(DropPath(Linear(0.0, recipe.drop_path)))
        if recipe.cutout:
            callbacks.append(CutoutShare(Linear(0.0, 1.0)))
        watching = Watching(made.supernet, made.rule, recipe, lambda: self.probe(made), self._tell)
        made.guard = guard(recipe, watching)
        callbacks += [watching, *([made.guard] if made.guard is not None else [])]
        callbacks.append(Kept(self.shelf, recipe.checkpoint_every, number, made.rule))
        capture = recipe.capture
        if not made.rule.captures and capture != "off":
            if capture == "on":
                raise RequestError(
                    f"steps with mixture={recipe.mixture!r} cannot be captured: every step takes another path"
                )
            capture = "off"
        return Loop(
            net, steps, groups, self.feeds(), epochs=recipe.epochs, first=stage.first, until=stage.end,
            seed=key_of(self.seed, "search") % 2**63, precision=recipe.precision, measure=self.task.metric.measure,
            callbacks=callbacks, capture=capture,
        )  # fmt: skip

    def feeds(self) -> dict[str, Feed]:
        """Return the feeds of both levels and that of the probe."""
        if self._feeds is None:
            self._feeds = search_feeds(self.task, self.recipe, seed=self.seed, device=self.device)
        return self._feeds

    def probe(self, made: Made) -> Probe:
        """Return the probe: the loss around the present alphas on the first batch of the alphas' data."""
        feed = self.feeds()["valid"]
        return Probe(made.supernet.net, made.rule, self.plain, feed.batch(0, 0))

    def _weight_decay(self) -> float:
        return float(self.returns[-1]["weight_decay"]) if self.returns else self.recipe.weight_decay

    def _generator(self, label: str) -> torch.Generator:
        return torch.Generator().manual_seed(key_of(self.seed, label) % 2**63)

    # What it says

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _introduce(self, made: Supernet) -> None:
        if self.run is None:
            return
        self.run.append(
            "supernet",
            durable=True,
            choices={
                name: {"kind": site.kind, "labels": list(site.labels), "keep": site.keep, "skip": list(site.skips),
                       "zero": list(site.zeros)}
                for name, site in made.sites.items()
            },
            parameters=sum(parameter.numel() for parameter in weights_of(made.net).values()),
            term=str(made.relaxed),
        )  # fmt: skip

    def _finished(self, epoch: int, figures: dict[str, float]) -> None:
        values = {key: value for key, value in figures.items() if value == value}
        self.history.append({"epoch": epoch, **values})
        if self.run is not None:
            self.run.append("epoch", epoch=epoch, phase="search", values=values)
        if self.watch is not None:
            self.watch("epoch", (epoch, self.recipe.epochs, figures))

    def _tell(self, seen: dict[str, Any]) -> None:
        if self.history:
            self.history[-1]["term"] = seen["term"]
        if self.run is not None:
            self.run.append("architecture", **seen)


@dataclass
class Made:
    """A stage's supernet with what moves it."""

    supernet: Supernet
    rule: MixtureRule
    perturbation: Perturbation | None
    stage: Stage
    guard: Guard | None = None
    carry: Callable[[Loop], None] | None = None  # hands what an optimiser remembers to the stage's first loop


__all__ = ["Found", "GradientSearch", "Made"]
