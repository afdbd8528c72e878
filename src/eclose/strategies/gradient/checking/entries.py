"""What a check of gradients says: one row for each number that was compared, as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

ERRORS = 4.0  # standard errors that a mean may be away from what it estimates


@dataclass(frozen=True)
class Entry:
    """One comparison.

    Attributes:
        quantity: what is compared.
        choice: whose alpha it is a derivative by.
        alternative: which of its alternatives.
        estimator: what the search computes.
        reference: what it should be.
        tolerance: how far apart they may be.
        error: the standard error of the estimator's mean, 0 for a single number.
    """

    quantity: str
    choice: str
    alternative: str
    estimator: float
    reference: float
    tolerance: float
    error: float = 0.0

    @property
    def difference(self) -> float:
        """The estimator minus the reference."""
        return self.estimator - self.reference

    @property
    def passed(self) -> bool:
        """Whether they agree; a value that is no number agrees with nothing."""
        return abs(self.difference) <= self.tolerance


@dataclass(frozen=True)
class Checked:
    """A check of one strategy on one space.

    Attributes:
        strategy: its name.
        space: its name.
        kind: what sort of estimator its alphas are moved by.
        method: what was compared with what.
        supernet: the size at which it was checked.
        entries: the comparisons; none where there is no gradient to check.
        notes: what people should know about the result.
    """

    strategy: str
    space: str
    kind: str
    method: str
    supernet: str
    entries: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every comparison agrees."""
        return all(entry.passed for entry in self.entries)

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        rows = [{**asdict(entry), "difference": entry.difference, "passed": entry.passed} for entry in self.entries]
        return {**asdict(self), "entries": rows, "passed": self.passed}


def mean(
    quantity: str, choice: str, alternative: str, draws: Sequence[float], reference: float, rounding: float = 1e-8
) -> Entry:
    """Return the comparison of a mean with what it estimates, which may be `ERRORS` standard errors away.

    Args:
        quantity: see `Entry`.
        choice: see `Entry`.
        alternative: see `Entry`.
        draws: whose mean it is.
        reference: see `Entry`.
        rounding: how far apart they may be on top of it.
    """
    found = fmean(draws)
    error = stdev(draws) / math.sqrt(len(draws)) if len(draws) > 1 else math.inf
    return Entry(quantity, choice, alternative, found, reference, ERRORS * error + rounding, error)


def close(
    quantity: str,
    choice: str,
    alternative: str,
    estimator: float,
    reference: float,
    relative: float,
    scale: float = 0.0,
) -> Entry:
    """Return the comparison of two numbers.

    Args:
        quantity: see `Entry`.
        choice: see `Entry`.
        alternative: see `Entry`.
        estimator: see `Entry`.
        reference: see `Entry`.
        relative: how far apart they may be, as a share.
        scale: of what; the reference where that is larger.
    """
    tolerance = relative * max(abs(reference), scale) + 1e-9
    return Entry(quantity, choice, alternative, estimator, reference, tolerance)


__all__ = ["ERRORS", "Checked", "Entry", "close", "mean"]
