"""A gradient run opened again: its supernet as it was after some epoch, for selection and diagnosis.

The run may be finished, interrupted, or still going; nothing in it is changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclose._api.search_request import GRADIENT, Parts, parts_of
from eclose.algebra.errors import RequestError
from eclose.runs import Run
from eclose.strategies import STRATEGIES
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.search import GradientSearch
from eclose.strategies.gradient.selection import Context


@dataclass
class Opened:
    """A gradient run that was opened.

    Attributes:
        run: for reading.
        parts: its space and task.
        search: what searched; it makes supernets and feeds.
        epochs: finished epochs of the checkpoints there are, in order.
    """

    run: Run
    parts: Parts
    search: GradientSearch
    epochs: tuple[int, ...]

    @property
    def last(self) -> int:
        """Finished epochs of the checkpoint that the search's own term is from; of the last, before there is one."""
        ended = self.run.of_kind("search-end")
        chosen = int(ended[-1]["epochs"]) if ended else -1
        return chosen if chosen in self.epochs else self.epochs[-1]

    def context(self, epochs: int | None = None, **settings: Any) -> Context:
        """Return the supernet as it was after so many epochs, those that the search's own term is from without.

        Args:
            epochs: of a checkpoint that there is.
            settings: of the selection.
        """
        if not self.epochs:
            raise RequestError(
                f"{self.run.path} keeps no checkpoints of its supernet yet; one is kept every checkpoint_every= epochs "
                f"and at the end ({self.search.recipe.checkpoint_every} here)"
            )
        epochs = self.last if epochs is None else epochs
        if epochs not in self.epochs:
            kept = ", ".join(map(str, self.epochs))
            raise RequestError(f"{self.run.path} keeps no checkpoint after {epochs} epochs, but after {kept}")
        search = self.search
        content = search.shelf.read(epochs)
        made = search.made(int(content["stage"]))
        made.supernet.net.load_state_dict(content["loop"]["model"])
        made.rule.load_state_dict(content["rule"])
        return Context(
            supernet=made.supernet, rule=made.rule, recipe=search.recipe, task=search.task, feeds=search.feeds(),
            plain=search.plain, device=search.device, seed=search.seed, settings=settings,
        )  # fmt: skip


def opened(path: str | Path, *, task: Any = None, device: str | None = None) -> Opened:
    """Return a gradient run, opened for reading.

    Args:
        path: its folder.
        task: the task again, where it was given from Python.
        device: where its supernet goes; the GPU where there is one.
    """
    run = Run.open(path)
    name = str(run.request.get("strategy", ""))
    if name not in STRATEGIES or STRATEGIES.get(name).kind != GRADIENT:
        raise RequestError(f"{path} was searched by {name or 'no strategy'}, which trains no supernet to look at")
    parts = parts_of(run, task, device)
    search = GradientSearch(
        parts.space, parts.task, Recipe(**parts.request.settings), seed=parts.request.seed, device=device
    )
    search.shelf.folder = run.path / "checkpoints"
    return Opened(run, parts, search, tuple(sorted(_epochs(run.path / "checkpoints"))))


def _epochs(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    found = (re.fullmatch(r"epoch-(\d+)\.pt", entry.name) for entry in folder.iterdir())
    return [int(match[1]) for match in found if match]


__all__ = ["Opened", "opened"]
