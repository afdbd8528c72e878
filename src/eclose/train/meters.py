"""Sums of losses and metrics on the device: nothing waits for the device until an epoch's figures are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Measure = Callable[[Any, Any], tuple[Tensor, Tensor]]

LOSS, ITEMS, SCORE, COUNT = range(4)


class Meter:
    """The mean loss and metric of the steps added, and the first of them whose loss was not finite.

    Args:
        device: where the sums live.
        measure: outputs and targets to (sum, count) of a metric, or None.
    """

    def __init__(self, device: torch.device, measure: Measure | None = None):
        self.measure = measure
        kind = torch.float32 if device.type == "mps" else torch.float64  # MPS has no float64
        self.sums = torch.zeros(4, dtype=kind, device=device)
        self.steps = torch.zeros((), dtype=torch.long, device=device)
        self.bad = torch.full((), -1, dtype=torch.long, device=device)

    def add(self, loss: Tensor, outputs: Any, targets: Any) -> None:
        """Add one batch; device operations only."""
        items = len(targets)
        loss = loss.detach()
        self.sums[LOSS].add_(loss.to(self.sums.dtype), alpha=items)
        self.sums[ITEMS].add_(items)
        if self.measure is not None:
            with torch.no_grad():
                total, count = self.measure(outputs, targets)
            self.sums[SCORE].add_(total)
            self.sums[COUNT].add_(count)
        first = ~torch.isfinite(loss) & (self.bad < 0)
        self.bad.copy_(torch.where(first, self.steps, self.bad))
        self.steps.add_(1)

    def reset(self) -> None:
        """Start again from nothing."""
        self.sums.zero_()
        self.steps.zero_()
        self.bad.fill_(-1)

    def first_bad(self) -> int:
        """Return the first step whose loss was not finite, or -1; waits for the device."""
        return int(self.bad.item())

    def means(self) -> dict[str, float]:
        """Return the mean loss and, where a metric is measured, the score; waits for the device."""
        loss, items, score, count = self.sums.tolist()
        result = {"loss": loss / items if items else math.nan}
        if self.measure is not None:
            result["score"] = score / count if count else math.nan
        return result

    def state_dict(self) -> dict[str, Tensor]:
        """Return the sums."""
        return {"sums": self.sums, "steps": self.steps, "bad": self.bad}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up sums in place."""
        self.sums.copy_(state["sums"])
        self.steps.copy_(state["steps"])
        self.bad.copy_(state["bad"])


__all__ = ["Measure", "Meter"]
