"""What may happen around steps and epochs: ramps, perturbations, guards. A callback sees the loop and may stop it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from eclose.train.augment import Cutout
from eclose.train.schedules import Position, Schedule

if TYPE_CHECKING:
    from eclose.train.loop import Loop


class Callback:
    """Does nothing at every occasion; subclasses override what they need.

    What a callback remembers between calls belongs into its state, or a resumed training forgets it.
    """

    def before_epoch(self, loop: Loop) -> None:
        """Called with the position at an epoch's first step."""

    def before_step(self, loop: Loop) -> None:
        """Called before each step, outside of what is captured."""

    def after_step(self, loop: Loop) -> None:
        """Called after each step was handed to the device."""

    def after_epoch(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Called with an epoch's figures; `loop.stop(reason)` ends the training here."""

    def variant(self, position: Position) -> Hashable:
        """Return what a captured step depends on that this callback changes; another value captures anew."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return what must survive a resume."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""


@dataclass
class DropPath(Callback):
    """Sets the model's `drop_path_rate` by a schedule, every epoch."""

    schedule: Schedule

    def before_epoch(self, loop: Loop) -> None:
        """Set the rate of an epoch."""
        loop.model.drop_path_rate = self.schedule(loop.position)  # type: ignore[assignment]

    def variant(self, position: Position) -> Hashable:
        """Return the rate: it is a constant inside a captured step."""
        return self.schedule(position)


@dataclass
class CutoutShare(Callback):
    """Sets the share of images that cutout changes by a schedule, every epoch, in all feeds of a training."""

    schedule: Schedule

    def before_epoch(self, loop: Loop) -> None:
        """Set the share of an epoch; it lies in memory that a captured step reads."""
        for feed in loop.feeds.values():
            for augmentation in getattr(getattr(feed, "prepare", None), "late", ()):
                if isinstance(augmentation, Cutout):
                    if augmentation.share is None:
                        augmentation.share = torch.zeros((), device=loop.device)
                    augmentation.share.fill_(self.schedule(loop.position))


__all__ = ["Callback", "CutoutShare", "DropPath"]
