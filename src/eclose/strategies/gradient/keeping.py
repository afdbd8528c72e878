"""What a search keeps of itself: states of epochs for selection and diagnosis, and the one it goes on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from eclose.runs import Run
from eclose.runs.files import replace_file
from eclose.strategies.gradient.mixtures import MixtureRule
from eclose.train.callbacks import Callback
from eclose.train.loop import Loop
from eclose.train.training import load_state, save_state

FORMAT = 1


@dataclass
class Shelf:
    """The states of epochs that are kept: files in a run's folder, or in memory without one."""

    folder: Path | None
    memory: dict[int, Any] = field(default_factory=dict)

    def write(self, epochs: int, content: Any) -> None:
        """Keep a state."""
        if self.folder is None:
            self.memory[epochs] = _copied(content)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.path(epochs), lambda path: save_state(content, path))

    def read(self, epochs: int) -> Any:
        """Return a state."""
        if self.folder is None:
            return _copied(self.memory[epochs])
        return load_state(self.path(epochs))

    def path(self, epochs: int) -> Path:
        """Return the file of a state."""
        assert self.folder is not None
        return self.folder / f"epoch-{epochs:04d}.pt"


def _copied(content: Any) -> Any:
    if isinstance(content, torch.Tensor):
        return content.detach().clone()
    if isinstance(content, Mapping):
        return {key: _copied(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return type(content)(_copied(value) for value in content)
    return content


class Kept(Callback):
    """Keeps the state of every so many epochs on a shelf, and that of the last."""

    def __init__(self, shelf: Shelf, every: int, stage: int, rule: MixtureRule):
        self.shelf, self.every, self.stage, self.rule = shelf, every, stage, rule

    def after_epoch(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Keep the state where its turn has come."""
        epochs = loop.position.epoch
        if epochs == loop.epochs or loop.stopped or (self.every and epochs % self.every == 0):
            self.shelf.write(
                epochs,
                {"format": FORMAT, "epochs": epochs, "stage": self.stage, "rule": self.rule.state_dict(),
                 "loop": loop.state_dict()},
            )  # fmt: skip


class RuleState(Callback):
    """Lets what a mixture remembers survive a resume."""

    def __init__(self, rule: MixtureRule):
        self.rule = rule

    def state_dict(self) -> dict[str, Any]:
        """Return the mixture's state."""
        return self.rule.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        self.rule.load_state_dict(state)


@dataclass
class Checkpoint:
    """Where a loop's state goes: the run's checkpoint, together with what the search itself remembers."""

    run: Run | None
    outer: Callable[[], dict[str, Any]]
    first: Any = None

    def read(self) -> Any:
        """Return the state to begin with, once."""
        found, self.first = self.first, None
        return found

    def write(self, content: Any) -> None:
        """Keep a state."""
        if self.run is not None:
            self.run.checkpoint({**self.outer(), "content": content}, save_state)


__all__ = ["FORMAT", "Checkpoint", "Kept", "RuleState", "Shelf"]
