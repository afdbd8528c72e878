"""What a comparison says: rows, differences in pairs, and what they do not show. It computes and writes, runs nothing.

Two spreads are kept apart. *Over searches*: between the networks that searches with different seeds find, each network
being worth the mean of its trainings. *Over retrainings*: between trainings of one network. Means, intervals and tests
are over searches, whatever the number of retrainings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from eclose.study.statistics import EXACT, SIGNIFICANT, holm, paired, pooled_deviation, summary


@dataclass
class Found:
    """One search's outcome.

    Attributes:
        seed: of the search; None for a network that nobody searched for.
        term: the network that was found, None where the search failed.
        score: what the search itself measured of it, on data that it could see.
        trials: evaluations of the search, None where it has none.
        seconds: that the search took; on a table those that training would have taken.
        failed: why the search failed, or nothing.
        trainings: `{"seed", "score"}` or `{"seed", "failed"}` for each training or look-up of the network.
        costs: parameters and multiply-adds of the network, where it was trained.
    """

    seed: int | None
    term: str | None = None
    score: float | None = None
    trials: int | None = None
    seconds: float | None = None
    failed: str = ""
    trainings: list[dict[str, Any]] = field(default_factory=list)
    costs: dict[str, Any] = field(default_factory=dict)

    @property
    def scores(self) -> list[float]:
        """What the trainings that came to their end gave."""
        return [training["score"] for training in self.trainings if "score" in training]

    @property
    def mean(self) -> float | None:
        """The mean over the trainings, which is what this search is worth; None where none came to its end."""
        return math.fsum(self.scores) / len(self.scores) if self.scores else None


@dataclass
class Row:
    """A strategy with its searches.

    Attributes:
        strategy: its name.
        searches: in the order of their seeds; for the skip-only baseline the one network that it is.
        direction: `"maximise"` or `"minimise"`.
    """

    strategy: str
    searches: list[Found]
    direction: str

    @property
    def searched(self) -> bool:
        """Whether there was a search at all."""
        return all(found.seed is not None for found in self.searches)

    @property
    def means(self) -> list[float]:
        """What each search is worth, those that failed left out."""
        return [found.mean for found in self.searches if found.mean is not None]

    @property
    def best(self) -> float | None:
        """The best search's worth. It is picked by the very number that is shown, so it flatters."""
        pick = max if self.direction == "maximise" else min
        return pick(self.means) if self.means else None

    @property
    def networks(self) -> int:
        """How many different networks were found."""
        return len({found.term for found in self.searches if found.term is not None})

    @property
    def failed_searches(self) -> int:
        """How many searches failed."""
        return sum(bool(found.failed) for found in self.searches)

    @property
    def failed_trainings(self) -> int:
        """How many trainings of found networks failed."""
        return sum("failed" in training for found in self.searches for training in found.trainings)

    def plain(self) -> dict[str, Any]:
        """Return the row as JSON can write it."""
        over = summary(self.means)
        return {
            "strategy": self.strategy,
            "searched": self.searched,
            "count": len(self.means),
            "mean": None if math.isnan(over.mean) else over.mean,
            "interval": None if over.interval is None else list(over.interval),
            "best": self.best,
            "networks": self.networks,
            "deviation_over_searches": over.deviation,
            "deviation_over_retrainings": pooled_deviation([found.scores for found in self.searches]),
            "failed_searches": self.failed_searches,
            "failed_retrainings": self.failed_trainings,
            "searches": [{**vars(found), "mean": found.mean} for found in self.searches],
        }


class Comparison:
    """A comparison that is done.

    Attributes:
        path: its folder.
        request: what was asked, as resolved.
        metric: name, direction and unit of the score.
        part: of the data that networks were judged on: `test`, or `valid` where there is no test part.
        rows: one for each strategy.
    """

    def __init__(
        self,
        path: Path,
        request: Mapping[str, Any],
        metric: Mapping[str, str],
        part: str,
        rows: Sequence[Row],
        remarks: Sequence[str] = (),
    ):
        self.path, self.request, self.metric, self.part = path, dict(request), dict(metric), part
        self.rows = list(rows)
        self._remarks = list(remarks)

    @cached_property
    def pairs(self) -> list[dict[str, Any]]:
        """Every two strategies compared seed by seed: first minus second, with interval, p and Holm's p."""
        found: list[dict[str, Any]] = []
        ps: list[float] = []
        for one, other in combinations(self.rows, 2):
            fixed = not (one.searched and other.searched)
            ours, theirs = _by_seed(one, other), _by_seed(other, one)
            seeds = [seed for seed in ours if seed in theirs]
            compared = paired([ours[seed] for seed in seeds], [theirs[seed] for seed in seeds])
            if not compared.differences:
                continue
            found.append(
                {
                    "first": one.strategy,
                    "second": other.strategy,
                    "against_one_network": fixed,
                    "seeds": seeds,
                    "differences": list(compared.differences),
                    "mean": compared.summary.mean,
                    "interval": None if compared.summary.interval is None else list(compared.summary.interval),
                    "p": compared.p,
                    "exact": compared.exact,
                    "smallest_p": compared.smallest,
                }
            )
            ps.append(compared.p if compared.p is not None else 1.0)
        for pair, p in zip(found, holm(ps), strict=True):
            better = (float(pair["mean"]) > 0) == (self.metric["direction"] == "maximise")
            pair["p_holm"] = p
            pair["better"] = pair["first" if better else "second"] if p <= SIGNIFICANT else None
        return found

    @cached_property
    def notes(self) -> list[str]:
        """What the numbers do not show by themselves, in sentences."""
        seeds, again = len(self.request["seeds"]), len(self.request["retrain_seeds"])
        notes = [*self._remarks]
        for row in self.rows:
            if row.failed_searches:
                notes.append(
                    f"{row.failed_searches} of {len(row.searches)} searches by {row.strategy} failed and are not in "
                    f"its mean, which may flatter it: {next(f.failed for f in row.searches if f.failed)}"
                )
            if row.failed_trainings:
                notes.append(f"{row.failed_trainings} trainings of networks found by {row.strategy} failed.")
            if row.searched and row.networks == 1 and len(row.means) > 1:
                notes.append(f"All {len(row.means)} searches by {row.strategy} found the same network.")
        if seeds == 1:
            notes.append("One search each: there is no interval and no test. Ask for more seeds.")
        elif self.pairs:
            notes += _reach(self.pairs)
        if again == 1:
            notes.append(
                "Each network was trained once, so the spread over searches contains the chance of a single training."
            )
        notes.append(
            f"Searches chose by data that they could see; what is compared is the {self.metric['name']} on the "
            f"{self.part} part. The best of several searches is picked by that number and flatters."
        )
        if self.part != "test" and not self.request["table"]:
            notes.append("There is no test part: networks are judged on data that the searches could see.")
        return notes

    def row(self, strategy: str) -> Row:
        """Return a strategy's row."""
        return next(row for row in self.rows if row.strategy == strategy)

    def plain(self) -> dict[str, Any]:
        """Return everything as JSON can write it."""
        found: dict[str, Any] = json.loads(
            json.dumps(
                {
                    "path": str(self.path),
                    "request": self.request,
                    "metric": self.metric,
                    "part": self.part,
                    "rows": [row.plain() for row in self.rows],
                    "pairs": self.pairs,
                    "notes": self.notes,
                },
                default=str,
            )
        )
        return found

    def table(self) -> str:
        """Return rows, differences and notes as text for people."""
        from eclose.report.comparison_page import comparison_text

        return comparison_text(self.plain())

    def __repr__(self) -> str:
        means = ", ".join(f"{row.strategy} {summary(row.means).mean:.5g}" for row in self.rows)
        return f"<comparison in {self.path}: {means}>"


def _by_seed(row: Row, other: Row) -> dict[int | None, float]:
    """Return what searches are worth by their seed; one network that nobody searched for stands at every seed."""
    if row.searched or not other.searched:
        return {found.seed: found.mean for found in row.searches if found.mean is not None}
    return {found.seed: row.means[0] for found in other.searches} if row.means else {}


def _reach(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a warning where the number of seeds is too small for any difference to be significant."""
    count = min(len(pair["seeds"]) for pair in pairs)
    least = 2.0 ** (1 - count)
    if count > EXACT or least * len(pairs) <= SIGNIFICANT:
        return []
    needed = 1 + math.ceil(math.log2(len(pairs) / SIGNIFICANT))
    return [
        f"With {count} seed{'s' * (count > 1)} the smallest p is {least:.4g}, corrected for {len(pairs)} "
        f"pair{'s' * (len(pairs) > 1)} {min(1.0, least * len(pairs)):.4g}: no difference can be significant at "
        f"{SIGNIFICANT}. At least {needed} seeds are needed."
    ]


__all__ = ["Comparison", "Found", "Row"]
