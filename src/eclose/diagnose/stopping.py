"""When the curvature says that a search should have ended: the rule of DARTS-ES (Zela et al., 2020, section 4.3).

The rule sees epochs and eigenvalues and decides; saving, returning and regularising more strongly are a search's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eclose.algebra.errors import RequestError


@dataclass(frozen=True)
class Stop:
    """The rule's decision to end a search.

    Attributes:
        epoch: the epoch whose architecture to return, the centre of the older window.
        newer: the mean of the newer window.
        older: the mean of the older window.
    """

    epoch: int
    newer: float
    older: float

    @property
    def ratio(self) -> float:
        """By what the eigenvalue has grown."""
        return self.newer / self.older


class EigenvalueRule:
    """Ends a search when the smoothed largest eigenvalue has grown by more than a factor.

    Measurements are numbered 0, 1, ..., n as they are added, whatever epochs they belong to. With w = `window` and
    d = `distance`, the newer window is measurements n-w+1 .. n, with its centre c = n - floor(w/2); the older one is as
    wide with its centre at o = c - d. The search ends when

        mean(newer) / mean(older) > factor,

    and the epoch to return is that of measurement o. Where one epoch in f is measured, this is
    `epoch - f floor(w/2) - f d`. The rule does not speak before o >= 0 and the epoch of o is at least `earliest`. An
    older window that would begin before the first measurement begins with it, as in the authors' code; with the usual
    settings `earliest` leaves no such window. (The paper states the same rule with the reciprocal of the factor.)

    An older mean of zero or less gives no decision: a ratio of two eigenvalues below zero rises as they fall.

    Args:
        window: measurements in a mean, an odd number.
        distance: measurements from one window to the other.
        factor: the growth that is too much.
        earliest: the first epoch that may be returned.
    """

    def __init__(self, *, window: int = 5, distance: int = 4, factor: float = 1.3, earliest: int = 10):
        if window < 1 or window % 2 == 0:
            raise RequestError(f"a window with a centre is an odd number of measurements, not {window}")
        if distance < 1:
            raise RequestError(f"the windows compared are at least one measurement apart, not {distance}")
        if not factor > 0:
            raise RequestError(f"the factor of growth is above 0, not {factor!r}")
        self.window, self.distance, self.factor, self.earliest = window, distance, factor, earliest
        self.epochs: list[int] = []
        self.eigenvalues: list[float] = []

    def add(self, epoch: int, eigenvalue: float) -> Stop | None:
        """Take a measurement and return the decision to stop, or None to go on.

        Args:
            epoch: later than those added before.
            eigenvalue: the largest of the Hessian at the end of this epoch.
        """
        if self.epochs and epoch <= self.epochs[-1]:
            raise RequestError(f"eigenvalues come in the order of their epochs; {epoch} came after {self.epochs[-1]}")
        if not math.isfinite(eigenvalue):
            raise RequestError(f"the largest eigenvalue of epoch {epoch} is {eigenvalue}, not a number to compare")
        self.epochs.append(int(epoch))
        self.eigenvalues.append(float(eigenvalue))
        return self.decision

    @property
    def decision(self) -> Stop | None:
        """What the measurements so far say."""
        newer = len(self.epochs) - 1 - self.window // 2
        older = newer - self.distance
        if older < 0 or self.epochs[older] < self.earliest:
            return None
        stop = Stop(self.epochs[older], self._mean(newer), self._mean(older))
        return stop if stop.older > 0 and stop.ratio > self.factor else None

    def _mean(self, centre: int) -> float:
        reach = self.window // 2
        values = self.eigenvalues[max(0, centre - reach) : centre + reach + 1]
        return math.fsum(values) / len(values)

    def rewind(self, epoch: int) -> None:
        """Forget what was measured after an epoch, for a search that goes back to it."""
        kept = sum(known <= epoch for known in self.epochs)
        del self.epochs[kept:], self.eigenvalues[kept:]

    def state_dict(self) -> dict[str, Any]:
        """Return the measurements, as plain data."""
        return {"epochs": list(self.epochs), "eigenvalues": list(self.eigenvalues)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up measurements that `state_dict` returned."""
        self.epochs = [int(epoch) for epoch in state["epochs"]]
        self.eigenvalues = [float(eigenvalue) for eigenvalue in state["eigenvalues"]]


__all__ = ["EigenvalueRule", "Stop"]
