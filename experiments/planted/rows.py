"""The rows of a study: every strategy with one schedule, and what a strategy needs beside it.

It knows the names and settings of strategies; what they are tried on is not its business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

EPOCHS = 20

SCHEDULE: dict[str, Any] = {
    "epochs": EPOCHS, "batch_size": 32, "rate": 0.1, "rate_end": 0.001, "architecture_rate": 0.05,
}  # fmt: skip
"""What all gradient searches share. A paper's search has a hundred times more steps, so alphas learn faster here."""

JUDGE: dict[str, Any] = {"epochs": 15, "batch_size": 32, "rate": 0.01}
"""The short training (protocol `quick`: AdamW) by which every network found is judged, and random search its trials."""

GRADIENT = (
    "darts", "darts-2nd", "snas", "gdas", "dsnas", "pc-darts", "drnas", "drnas-progressive", "sdarts-rs", "sdarts-adv",
    "gaea", "gaea-pc-darts", "nasp", "proxyless", "rs-ws", "enas", "r-darts-dp", "r-darts-l2", "darts-es", "darts-ada",
    "supernet-sgd",
)  # fmt: skip

PARTIAL = {"partial": 2, "frozen": 6}  # PC-DARTS has 4 of 16 channels and more, frozen for 15 of 50 epochs
EXPONENTIATED = {"architecture_rate": 0.1}  # GAEA's own: another optimiser, so another rate
OWN: dict[str, dict[str, Any]] = {
    "pc-darts": PARTIAL,
    "gaea-pc-darts": {**PARTIAL, **EXPONENTIATED},
    "gaea": EXPONENTIATED,
    "enas": {"controller_steps": 10},
}
PRUNED = {"truth": "10:4:0 10:2:3", "trap": "10:4:0 10:2:0"}  # of two alternatives none can be dropped beforehand


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        name: of the row.
        strategy: that searches.
        settings: of the strategy.
        reverse: whether the alternatives stand in reversed order.
    """

    name: str
    strategy: str
    settings: dict[str, Any] = field(default_factory=dict)
    reverse: bool = False


def rows(study: str, alternatives: int, *, quick: bool = False) -> tuple[Row, ...]:
    """Return the rows of a study.

    Args:
        study: its name.
        alternatives: of an edge: random search trains as many networks, which are then about as much work as one
            supernet.
        quick: two epochs of everything, to see that it runs.
    """
    schedule = {**SCHEDULE, **({"epochs": 2} if quick else {})}
    found = [Row(name, name, {**schedule, **OWN.get(name, {})}) for name in GRADIENT]
    found = [_progressive(row, study, quick) if row.strategy == "drnas-progressive" else row for row in found]
    found.append(Row("darts + perturbation", "darts", {**schedule, "selection": "perturbation"}))
    still = {"frozen": schedule["epochs"], "selection": "perturbation"}  # the even mixture all the while
    found.append(Row("fixed alphas + perturbation", "darts", {**schedule, **still}))
    found.append(Row("random", "random", {**judge(quick), "budget": alternatives}))
    found += [Row(f"{name}, reversed", name, schedule, reverse=True) for name in ("darts", "drnas")]
    return tuple(found)


def judge(quick: bool = False) -> dict[str, Any]:
    """Return the settings of the short training that judges networks."""
    return {**JUDGE, **({"epochs": 2} if quick else {})}


def _progressive(row: Row, study: str, quick: bool) -> Row:
    own = {"stages": "1:4:0 1:2:0"} if quick else {"stages": PRUNED[study], "frozen": 4}
    return Row(row.name, row.strategy, {**row.settings, **own})


__all__ = ["EPOCHS", "GRADIENT", "JUDGE", "SCHEDULE", "Row", "judge", "rows"]
