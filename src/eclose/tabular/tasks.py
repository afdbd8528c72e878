"""Tabular tasks: a search on a table, with the clock that training would have had.

A search sees validation accuracies only. What a table says of test images is reached through `TabularTask.final`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.terms import Term
from eclose.tabular.nasbench201 import EPOCHS, HARDWARE, NAMES, SPACE, Table, table

PREFIX = "tabular:"
SCORE, SECONDS = "score", "seconds"
DIRECTIONS = {SCORE: "maximise", SECONDS: "minimise"} | {
    name: "maximise" if name.endswith("intensity") else "minimise" for name in HARDWARE
}


class TabularTask:
    """A data set of a table, searched at one budget and reported at another.

    Args:
        data_set: `"cifar10"`, `"cifar100"` or `"imagenet16-120"`.
        query: epochs of training that a search sees.
        report: epochs of training that the outcome is reported at.

    Attributes:
        tabular: True; tasks with data have False.
        space: the name of the space whose terms the table holds.
        direction: that of the score.
    """

    tabular = True
    space = SPACE
    direction = "maximise"

    def __init__(self, data_set: str, query: int, report: int):
        self.data_set, self.query, self.report = data_set, query, report

    @property
    def name(self) -> str:
        """What `eclose.task` calls it."""
        budget = f"{self.query}->{self.report}" if self.query != self.report else f"{self.report}"
        return f"{PREFIX}{self.data_set}@{budget}"

    def __repr__(self) -> str:
        return f"<tabular task {self.name}>"

    def evaluator(
        self, space: Any = None, *, seed: int = 0, objectives: Mapping[str, str] | Iterable[str] | None = None
    ) -> TableEvaluator:
        """Return what evaluates terms for a study.

        Args:
            space: what is searched; the table says itself which terms it holds.
            seed: not used, since a table has no randomness.
            objectives: further numbers to give besides `score` and `seconds`, by name (`"raspi4_latency"`), or
                `{name: direction}`.
        """
        return TableEvaluator(self, objectives)

    def final(self, term: Term) -> dict[str, float]:
        """Return the `validation` and `test` accuracy in percent of a term at the budget that is reported.

        It is for the outcome of a search and is looked up once; a search that looked here would search on test images.
        """
        known, row = table(), table().row(term)
        return {part: float(known.accuracy(self.data_set, part, self.report)[row]) for part in ("validation", "test")}


class TableEvaluator:
    """Looks terms up: `evaluator(term, seed) -> {"score": ..., "seconds": ...}`.

    Attributes:
        objectives: what results are judged by, `{name: direction}`; the first is the score unless asked otherwise.
        simulated: True; `seconds` are those that training would have taken.
    """

    simulated = True

    def __init__(self, task: TabularTask, objectives: Mapping[str, str] | Iterable[str] | None = None):
        self.task = task
        self.objectives = checked_objectives(objectives)
        self._further = [name for name in self.objectives if name not in (SCORE, SECONDS)]

    def __call__(self, term: Term, seed: int = 0, report: Any = None) -> dict[str, float]:
        """Return the validation accuracy in percent, the simulated seconds of training, and what else was asked for."""
        row = self._table.row(term)
        found = {SCORE: self._scores[row], SECONDS: self._seconds[row]}
        for name in self._further:
            value = self._hardware[name][row]
            if value != value:
                device = name.partition("_")[0]
                raise RequestError(f"{name} of this cell was not measured: {device} does not support its operations")
            found[name] = value
        return found

    def __repr__(self) -> str:
        return f"<evaluator of {self.task.name}: {', '.join(self.objectives)}>"

    def __reduce__(self) -> Any:
        return TableEvaluator, (self.task, self.objectives)

    # Plain lists: a lookup in a numpy array takes longer than everything else here.

    @cached_property
    def _table(self) -> Table:
        return table()

    @cached_property
    def _scores(self) -> list[float]:
        scores: list[float] = self._table.accuracy(self.task.data_set, "validation", self.task.query).tolist()
        return scores

    @cached_property
    def _seconds(self) -> list[float]:
        seconds: list[float] = self._table.training_seconds(self.task.data_set, self.task.query).tolist()
        return seconds

    @cached_property
    def _hardware(self) -> dict[str, list[float]]:
        return {name: self._table.hardware(self.task.data_set, name).tolist() for name in self._further}


def tabular_task(name: str = "") -> TabularTask:
    """Return the tabular task of a name such as `cifar10@12->200`.

    Args:
        name: data set, `@`, the epochs that a search sees, `->`, the epochs that are reported; `cifar100@200` uses
            200 for both.
    """
    right = "write cifar10@12->200 or cifar100@200 (data sets: " + ", ".join(NAMES) + ")"
    match = re.fullmatch(r"([^@]+)@(\d+)(?:\s*->\s*(\d+))?", name.removeprefix(PREFIX).strip())
    if match is None:
        raise RequestError(f"a tabular task is DATA@EPOCHS or DATA@EPOCHS->EPOCHS, not {name!r}: {right}")
    data_set, query, report = match[1].strip(), int(match[2]), int(match[3] or match[2])
    if data_set not in NAMES:
        hint = did_you_mean(data_set, NAMES) or f" (known: {', '.join(NAMES)})"
        raise RequestError(f"the table has no data set {data_set!r}{hint}")
    for epochs in (query, report):
        if epochs not in EPOCHS:
            raise RequestError(
                f"the table was trained for {EPOCHS[0]} and for {EPOCHS[1]} epochs, not for {epochs}: {right}"
            )
    if query > report:
        raise RequestError(f"a search sees the shorter training: {data_set}@{report}->{query}, not {name}")
    return TabularTask(data_set, query, report)


def checked_objectives(asked: Mapping[str, str] | Iterable[str] | None) -> dict[str, str]:
    """Return `{name: direction}`: the score alone where nothing is asked for, and always the score among them."""
    if asked is None:
        return {SCORE: DIRECTIONS[SCORE]}
    if isinstance(asked, str):
        asked = [asked]
    named = dict(asked) if isinstance(asked, Mapping) else dict.fromkeys(asked, "")
    given = {name: direction or DIRECTIONS.get(name, "") for name, direction in named.items()}
    for name in given:
        if name not in DIRECTIONS:
            hint = did_you_mean(name, DIRECTIONS) or f" (known: {', '.join(DIRECTIONS)})"
            raise RequestError(f"the table has no objective {name!r}{hint}")
        if given[name] not in ("maximise", "minimise"):
            raise RequestError(f"an objective is to maximise or to minimise, not to {given[name]!r}")
    return given if SCORE in given else {SCORE: DIRECTIONS[SCORE], **given}


__all__ = ["TableEvaluator", "TabularTask", "checked_objectives", "tabular_task"]
