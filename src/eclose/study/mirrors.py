"""The mirror of a run: `trials.log`, the study as an Optuna journal file that Optuna's dashboard and tools open."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eclose.algebra.registry import Registry
from eclose.runs import Run
from eclose.study.optuna_adapter import OptunaStorage
from eclose.study.results import Trial
from eclose.study.storage import Mirror

FILE = "trials.log"


def journal_of(run: Run, registry: Registry | None = None) -> list[Mirror]:
    """Return the mirror of a run's study, or none where Optuna is not installed.

    Args:
        run: the folder, held for driving.
        registry: the operators that terms are read with.
    """
    if find_spec("optuna") is None:
        note = f"optuna is not installed, so {FILE} is not kept; the run itself needs nothing of it"
        if note not in run.notes:
            run.say(note)
        return []
    return [JournalMirror(run.path / FILE, run.path.name, registry, run.id)]


class JournalMirror:
    """A journal file that is made again from the truth whenever it does not fit.

    Args:
        path: the file.
        name: the study's name in it.
        registry: the operators that terms are read with.
        owner: the id of the run that the study belongs to.
    """

    def __init__(self, path: Path, name: str, registry: Registry | None = None, owner: str = ""):
        self.path, self._name, self._registry, self._owner = path, name, registry, owner
        self._storage: OptunaStorage | None = None

    def _opened(self) -> OptunaStorage:
        if self._storage is None:
            self._storage = OptunaStorage.journal(
                self.path, self._name, self._registry, durable=False, owner=self._owner
            )
        return self._storage

    def begin(self, settings: dict[str, Any]) -> tuple[dict[str, Any], list[Trial]]:
        """Open the file; a damaged one is made again."""
        try:
            found = self._opened().begin(settings)
            if self._opened().name == self._name:
                return found
        except Exception:  # damaged in whatever way: the truth knows better
            pass
        self.reset()
        return self._opened().begin(settings)

    def propose(self, trial: Trial) -> None:
        """Record a proposal."""
        self._opened().propose(trial)

    def report(self, number: int, step: int, values: Mapping[str, Any]) -> None:
        """Record a report."""
        self._opened().report(number, step, values)

    def finish(self, trial: Trial) -> None:
        """Record a result."""
        self._opened().finish(trial)

    def reset(self) -> None:
        """Remove the file."""
        self._storage = None
        self.path.unlink(missing_ok=True)
