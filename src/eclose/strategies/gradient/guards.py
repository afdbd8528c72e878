"""Guards: what may end a search early, or send it back. Each is a callback of the training loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eclose.diagnose.stopping import EigenvalueRule, Stop
from eclose.strategies.gradient.recipe import Recipe
from eclose.train.callbacks import Callback

if TYPE_CHECKING:
    from eclose.strategies.gradient.watching import Watching
    from eclose.train.loop import Loop

WEIGHT_DECAY_FACTOR = 10.0  # as the authors' command line has it
LARGEST_WEIGHT_DECAY = 0.03
EARLIEST = 10  # epochs that pass before anything is stopped


@dataclass(frozen=True)
class Return:
    """What a guard asks of the search when it has stopped it.

    Attributes:
        epochs: finished epochs of the state to return to.
        again: whether the rest is trained once more from there, with more weight decay; else its term is the result.
    """

    epochs: int
    again: bool = False


class Guard(Callback):
    """Never acts."""

    asked: Return | None = None


class Eigenvalue(Guard):
    """Stops when the dominant eigenvalue has grown too fast, and returns to the epoch before (DARTS-ES, DARTS-ADA).

    Args:
        watching: measures the Hessian after epochs.
        limit: the growth that is too much.
        again: whether to go on from there with stronger regularisation (ADA) until its limit is reached.
    """

    def __init__(self, watching: Watching, limit: float, again: bool = False):
        self.watching, self.again = watching, again
        self.rule = EigenvalueRule(factor=limit, earliest=EARLIEST)
        self.asked = None

    def after_epoch(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Take the epoch's measurement where there is one."""
        found = self.watching.measured.get(loop.position.epoch)
        if found is None:
            return
        # The reference counts epochs from 0 and means the end of each.
        stop: Stop | None = self.rule.add(loop.position.epoch - 1, found["largest"])
        if stop is None:
            return
        decay = loop.groups["weights"].running.param_groups[0]["weight_decay"]
        # 3e-4, ten times as much and that again are not quite 0.03 in binary, which would be one return too many.
        again = self.again and decay < LARGEST_WEIGHT_DECAY * (1 - 1e-9)
        if self.again and not again:
            return
        self.asked = Return(stop.epoch + 1, again)
        loop.stop(
            f"the dominant eigenvalue of the alphas' Hessian grew by {stop.ratio:.2f} from epoch {stop.epoch + 1} on"
            + (": going back to it with more weight decay" if again else "")
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the measurements and what was asked."""
        asked = None if self.asked is None else [self.asked.epochs, self.asked.again]
        return {"rule": self.rule.state_dict(), "asked": asked}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        self.rule.load_state_dict(state["rule"])
        self.asked = None if state["asked"] is None else Return(*state["asked"])


class Skips(Guard):
    """Stops when the derived architecture has more than so many skip connections in a cell."""

    def __init__(self, watching: Watching, limit: float):
        self.watching, self.limit = watching, limit
        self.asked = None

    def after_epoch(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Look at the derived architecture."""
        worst = max(self.watching.skips.values(), default=0)
        if loop.position.epoch >= EARLIEST and worst > self.limit:
            loop.stop(f"a cell of the derived architecture has {worst} skip connections, more than {self.limit:g}")


GUARDS: dict[str, Callable[[Any, Recipe], Guard]] = {
    "eigenvalue": lambda watching, recipe: Eigenvalue(watching, recipe.guard_limit),
    "adapt": lambda watching, recipe: Eigenvalue(watching, recipe.guard_limit, again=True),
    "skips": lambda watching, recipe: Skips(watching, recipe.guard_limit),
}


def guard(recipe: Recipe, watching: Watching) -> Guard | None:
    """Return the guard of a recipe, or None."""
    made = GUARDS.get(recipe.guard)
    return None if made is None else made(watching, recipe)


__all__ = ["GUARDS", "LARGEST_WEIGHT_DECAY", "WEIGHT_DECAY_FACTOR", "Eigenvalue", "Guard", "Return", "Skips", "guard"]
