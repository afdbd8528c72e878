"""How much a study may spend: trials, seconds on the wall, or seconds that the results say they would have taken."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eclose.algebra.errors import RequestError

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Budget:
    """Limits of which the first reached ends the study; None is no limit.

    Attributes:
        trials: proposals.
        seconds: wall clock, over all sessions of a resumed study.
        simulated: the sum of the results' `seconds` that the strategy has seen.
    """

    trials: int | None = None
    seconds: float | None = None
    simulated: float | None = None

    def __post_init__(self) -> None:
        limits = (self.trials, self.seconds, self.simulated)
        if all(limit is None for limit in limits):
            raise RequestError("a budget needs a limit: a number of trials, seconds, or simulated seconds")
        if any(limit is not None and not limit > 0 for limit in limits):
            raise RequestError("a budget must be more than nothing")

    def allows(self, proposed: int, elapsed: float, simulated: float) -> bool:
        """Whether another trial may be proposed."""
        return (
            (self.trials is None or proposed < self.trials)
            and (self.seconds is None or elapsed < self.seconds)
            and (self.simulated is None or simulated < self.simulated)
        )


def as_budget(value: Budget | int | str, simulated: bool = False) -> Budget:
    """Return a budget from a number of trials or a text such as `40`, `20000s`, `2h`.

    Args:
        value: the budget or how it is written.
        simulated: whether a time is the evaluator's simulated one.
    """
    if isinstance(value, Budget):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Budget(trials=value)
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", value)
        if match and match[2]:
            amount = float(match[1]) * UNITS[match[2]]
            return Budget(simulated=amount) if simulated else Budget(seconds=amount)
        if match and "." not in match[1]:
            return Budget(trials=int(match[1]))
    raise RequestError(f"a budget is a number of trials (40) or a time (20000s, 30m, 2h, 1d), not {value!r}")
