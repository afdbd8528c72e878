"""Whether a mixture weight tells the strength of an alternative (Wang et al., 2021).

For each choice, the score with one alternative fixed is measured for every alternative, and its order compared with
that of the weights. How an alternative is fixed and a score measured is the caller's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.diagnose.ranks import kendall


@dataclass(frozen=True)
class ChoiceStrength:
    """The alternatives of one choice.

    Attributes:
        weights: their mixture weights.
        scores: the score after fixing each.
        tau: Kendall's tau-b of the two; None where either is constant.
    """

    weights: list[float]
    scores: list[float]
    tau: float | None


@dataclass(frozen=True)
class Strength:
    """The choices measured.

    Attributes:
        choices: by name.
        tau: the mean of the choices' taus, of those that have one; None where none has. Scores are compared within a
            choice only, since choices matter to different degrees.
    """

    choices: dict[str, ChoiceStrength]
    tau: float | None


def strength(
    score: Callable[[str, int], float],
    weights: Mapping[str, Sequence[float]],
    *,
    choices: Iterable[str] | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Strength:
    """Compare weights with scores.

    Args:
        score: (choice, alternative) -> the score with this alternative fixed; larger is better.
        weights: choice -> weight of each alternative.
        choices: those to measure; all without it.
        watch: called with the number of scores measured and to be measured, after each.
    """
    names = list(weights) if choices is None else list(choices)
    for name in names:
        if name not in weights:
            raise RequestError(f"there are no weights of choice {name!r}{did_you_mean(name, weights)}")
    total = sum(len(weights[name]) for name in names)
    done = 0
    found: dict[str, ChoiceStrength] = {}
    for name in names:
        values = [float(value) for value in weights[name]]
        scores: list[float] = []
        for index in range(len(values)):
            scores.append(float(score(name, index)))
            done += 1
            if watch is not None:
                watch(done, total)
        found[name] = ChoiceStrength(values, scores, kendall(values, scores))
    taus = [choice.tau for choice in found.values() if choice.tau is not None]
    return Strength(found, math.fsum(taus) / len(taus) if taus else None)


__all__ = ["ChoiceStrength", "Strength", "strength"]
