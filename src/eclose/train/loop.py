"""The one training loop: epochs of steps over feeds, with as many parameter groups as there are.

The loop knows neither tasks nor searches. What a step does is a `Step` of parts, where batches come from are feeds,
what happens around them are callbacks. Everything a training remembers is in `state_dict`, so that it goes on from
there with the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from eclose.algebra.errors import EcloseError, RequestError
from eclose.train.callbacks import Callback
from eclose.train.capture import CapturedStep, obstacle
from eclose.train.data import Batch, Feed
from eclose.train.groups import Group, disjoint
from eclose.train.meters import Measure, Meter
from eclose.train.precision import resolve_precision
from eclose.train.randomness import key_of
from eclose.train.schedules import Position
from eclose.train.steps import Objective, Outcome, Part, Step, split

CHECK_STEPS = 100  # so often a GPU is asked whether a loss has stopped being finite; a CPU at every step
CAPTURE_REQUESTS = ("auto", "on", "off")


class TrainingError(EcloseError, RuntimeError):
    """A training that cannot go on; the message says where it stopped."""

    exit_status = 1


class Checkpoints(Protocol):
    """Where a training keeps its state."""

    def read(self) -> Any | None:
        """Return the newest good state, or None."""
        ...

    def write(self, content: Any) -> None:
        """Keep a state."""
        ...


class Loop:
    """A training.

    Args:
        model: what is trained, on its device already.
        step: what one step does.
        groups: the parameters that move.
        feeds: where batches come from; `"train"` sets the number of steps of an epoch.
        epochs: of the whole training, which schedules refer to.
        first: the epoch it begins with, where others took those before it.
        until: the epoch before which it ends, where others go on; None for the end.
        seed: all randomness of the model (dropout, drop-path) is a function of it and the epoch.
        precision: `"float32"`, `"mixed"`, `"bfloat16"` or `"float16"`.
        measure: outputs and targets to (sum, count) of the score, or None.
        accumulate: into how many pieces a batch is cut whose gradients are added up.
        callbacks: what happens around steps and epochs.
        capture: whether whole steps run as CUDA graphs: `"auto"` where that is legal, `"on"` (an error elsewhere),
            `"off"`.

    Attributes:
        position: the step about to be taken.
        notes: what was asked for and is not done, and why.
    """

    def __init__(
        self,
        model: nn.Module,
        step: Step,
        groups: Sequence[Group],
        feeds: Mapping[str, Feed],
        *,
        epochs: int,
        first: int = 0,
        until: int | None = None,
        seed: int = 0,
        precision: str = "float32",
        measure: Measure | None = None,
        accumulate: int = 1,
        callbacks: Sequence[Callback] = (),
        capture: str = "auto",
    ):
        disjoint(groups)
        if "train" not in feeds:
            raise RequestError("a training needs a feed called 'train'; its steps make the epochs")
        if epochs < 1:
            raise RequestError(f"a training takes at least one epoch, not {epochs}")
        if accumulate < 1:
            raise RequestError(f"a batch is cut into at least one piece, not {accumulate}")
        if capture not in CAPTURE_REQUESTS:
            raise RequestError(f"capture is {', '.join(map(repr, CAPTURE_REQUESTS))}, not {capture!r}")
        self.model, self.step, self.feeds = model, step, dict(feeds)
        self.groups = {group.name: group for group in groups}
        self.epochs, self.seed, self.accumulate = epochs, seed, accumulate
        self.until = epochs if until is None else until
        self.callbacks = list(callbacks)
        self.device = groups[0].tensors[0].device
        self.notes: list[str] = []
        found = resolve_precision(precision, self.device)
        if found.note:
            self.notes.append(found.note)
        self._dtype = found.dtype
        self.scaler = torch.amp.GradScaler(self.device.type) if found.scaled else None
        self.position = Position(first, 0, epochs, self.feeds["train"].steps)
        self.meters = {part.name: Meter(self.device, measure) for part in step.parts}
        self._stopped = ""
        wanted = capture != "off" and self.device.type == "cuda"
        for group in groups:
            group.start(self.position, on_device=wanted)
        self._captured = self._capturing(capture)

    def _capturing(self, capture: str) -> CapturedStep | None:
        if capture == "off":
            return None
        reason = obstacle(self)
        if not reason and self.accumulate == 1:
            return CapturedStep(self)
        reason = reason or "gradients are accumulated over pieces of a batch"
        if capture == "on":
            raise RequestError(f"steps cannot be captured as a CUDA graph: {reason}")
        if self.device.type == "cuda":
            self.notes.append(f"steps are not captured as a CUDA graph: {reason}")
        return None

    # What parts of a step and captures ask for

    def needed(self) -> tuple[str, ...]:
        """Return the feeds whose batches the present step needs, each once."""
        return tuple(dict.fromkeys(feed for part in self.step.active(self.position) for feed in part.feeds))

    def address(self, name: str) -> tuple[int, int]:
        """Return the epoch and step of a feed's batch for the present step; each feed has epochs of its own length."""
        done = self.position.done
        steps = self.feeds[name].steps
        return (self.position.epoch, self.position.step) if name == "train" else divmod(done, steps)

    def batches(self) -> dict[str, Batch]:
        """Return the batches of the present step."""
        return {name: self.feeds[name].batch(*self.address(name)) for name in self.needed()}

    def variant(self) -> tuple[Any, ...]:
        """Return what a captured step depends on and is not read from the device."""
        active = tuple(part.name for part in self.step.active(self.position))
        return (active, *(callback.variant(self.position) for callback in self.callbacks))

    def take_step(self, batches: Mapping[str, Batch]) -> None:
        """Let every active part do its work on the batches."""
        for part in self.step.active(self.position):
            outcome = part(self, batches)
            self._measured(part, outcome, batches)

    def _measured(self, part: Part, outcome: Outcome, batches: Mapping[str, Batch]) -> None:
        self.meters[part.name].add(outcome.loss, outcome.outputs, batches[part.feeds[0]].targets)

    def clear_gradients(self) -> None:
        """Forget all gradients."""
        for group in self.groups.values():
            for parameter in group.tensors:
                parameter.grad = None

    def backward(self, objective: Objective, batch: Batch, groups: Sequence[str]) -> Outcome:
        """Compute the gradients of some groups; what they held before is forgotten, the others are not touched."""
        parameters = [parameter for name in groups for parameter in self.groups[name].tensors]
        for parameter in parameters:
            parameter.grad = None
        pieces = split(batch, self.accumulate)
        whole = len(batch.targets) if len(pieces) > 1 else 1
        losses, outputs = [], []
        for piece in pieces:
            with self.precision():
                outcome = objective(self.model, piece)
            share = outcome.loss * (len(piece.targets) / whole) if len(pieces) > 1 else outcome.loss
            scaled = share if self.scaler is None else self.scaler.scale(share)
            scaled.backward(inputs=parameters)
            losses.append(share.detach())
            outputs.append(outcome.outputs.detach() if isinstance(outcome.outputs, Tensor) else outcome.outputs)
        if len(pieces) == 1:
            return Outcome(losses[0], outputs[0])
        return Outcome(torch.stack(losses).sum(), torch.cat(outputs))

    def precision(self) -> Any:
        """Return the context in which models compute."""
        return nullcontext() if self._dtype is None else torch.autocast(self.device.type, self._dtype)

    def update(self, groups: Sequence[str]) -> None:
        """Move some groups along their gradients."""
        for name in groups:
            group = self.groups[name]
            if self.scaler is None:
                group.clip_gradient()
                group.running.step()
                continue
            self.scaler.unscale_(group.running)
            group.clip_gradient()
            self.scaler.step(group.running)
            self.scaler.update()

    def stop(self, reason: str) -> None:
        """End the training after the present epoch."""
        self._stopped = reason

    @property
    def stopped(self) -> str:
        """Why the training was ended early, or nothing."""
        return self._stopped

    # The training

    def run(
        self,
        checkpoints: Checkpoints | None = None,
        on_epoch: Callable[[int, dict[str, float]], Mapping[str, float] | None] | None = None,
        *,
        every: float = 0.0,
    ) -> dict[str, float]:
        """Train to the end and return the last epoch's figures.

        Args:
            checkpoints: read at the start and written after epochs.
            on_epoch: called with the number of each finished epoch and its figures, for example `train_loss`; what it
                returns is added to the figures.
            every: seconds that pass at least between two checkpoints; the last epoch's is always written.
        """
        figures: dict[str, float] = {}
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            kept = checkpoints.read() if checkpoints is not None else None
            if kept is not None:
                figures = dict(kept["figures"])
                self.load_state_dict(kept["loop"])
            written = time.monotonic()
            while self.position.epoch < self.until and not self._stopped:
                epoch = self.position.epoch
                figures = self._epoch()
                if on_epoch is not None:
                    figures = {**figures, **(on_epoch(epoch, figures) or {})}
                for callback in self.callbacks:
                    callback.after_epoch(self, figures)
                last = self.position.epoch == self.until or bool(self._stopped)
                if checkpoints is not None and (last or time.monotonic() - written >= every):
                    checkpoints.write({"figures": figures, "loop": self.state_dict()})
                    written = time.monotonic()
        if self._captured is not None and self._captured.reason:
            self.notes.append(f"steps are not captured as a CUDA graph: {self._captured.reason}")
        return figures

    def _epoch(self) -> dict[str, float]:
        """Take the steps of an epoch and return its figures; the position ends at the next epoch's first step."""
        epoch, steps = self.position.epoch, self.position.steps
        torch.manual_seed(key_of(self.seed, "model", epoch))
        for meter in self.meters.values():
            meter.reset()
        self.model.train()
        for callback in self.callbacks:
            callback.before_epoch(self)
        often = CHECK_STEPS if self.device.type == "cuda" else 1
        for number in range(steps):
            self.position = Position(epoch, number, self.epochs, steps)
            self.advance()
            if number % often == often - 1 or number == steps - 1:
                self._refuse_bad()
        self.position = Position(epoch + 1, 0, self.epochs, steps)
        return {f"{name}_{key}": value for name, meter in self.meters.items() for key, value in meter.means().items()}

    def advance(self) -> None:
        """Take the step at the position, captured where that is legal, with everything that happens around it."""
        for group in self.groups.values():
            group.prepare(self.position)
        for callback in self.callbacks:
            callback.before_step(self)
        if self._captured is not None:
            self._captured()
        else:
            self.take_step(self.batches())
        for callback in self.callbacks:
            callback.after_step(self)

    def _refuse_bad(self) -> None:
        for name, meter in self.meters.items():
            bad = meter.first_bad()
            if bad >= 0:
                epoch = self.position.epoch
                good = (
                    f"the last good state is that after epoch {epoch}" if epoch else "there is no good state before it"
                )
                raise TrainingError(
                    f"the {name} loss is not finite at step {bad + 1} of {self.position.steps} in epoch {epoch + 1}; "
                    f"{good}. A smaller learning rate, gradient clipping or float32 may help"
                )

    # What a training remembers

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the rest of the training depends on, at the end of an epoch."""
        return {
            "epoch": self.position.epoch,
            "model": self.model.state_dict(),
            "groups": {name: group.state_dict() for name, group in self.groups.items()},
            "callbacks": [callback.state_dict() for callback in self.callbacks],
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
            "stopped": self._stopped,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        self.position = Position(int(state["epoch"]), 0, self.epochs, self.position.steps)
        self.model.load_state_dict(state["model"])
        for name, group in self.groups.items():
            group.load_state_dict(state["groups"][name])
        for callback, kept in zip(self.callbacks, state["callbacks"], strict=True):
            callback.load_state_dict(kept)
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
        self._stopped = state["stopped"]
        if self._captured is not None:
            self._captured.forget()


__all__ = ["Checkpoints", "Loop", "TrainingError"]
