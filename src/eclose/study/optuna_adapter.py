"""A study in an Optuna storage: a journal file, SQLite or any database that Optuna can reach by a URL.

A trial of ours is a trial of Optuna's without parameters: the term is an attribute, the objectives are its values. All
that resuming needs stands in attributes, so such a storage can be a study's truth as well as its mirror.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from eclose.algebra.errors import EcloseError, MissingExtra, RequestError
from eclose.algebra.printing import term_text
from eclose.algebra.reading import parse
from eclose.algebra.registry import Registry
from eclose.runs.errors import RunError
from eclose.runs.lock import alive, born
from eclose.study.journal_file import JournalFile
from eclose.study.results import DONE, FAILED, Result, Trial, writable

JOURNAL = "journal://"
METRIC_NAMES = "study:metric_names"  # where Optuna and its dashboard look for the objectives' names
REPORT = "report/"


class OptunaStorage:
    """A study under a name in an Optuna storage.

    Args:
        storage: any of Optuna's storages.
        name: the study's name there.
        registry: the operators that terms are read with.
        where: what messages call the storage.
        owner: the id of the run that the study belongs to, which finds it even after the run's folder was renamed.
    """

    def __init__(self, storage: Any, name: str, registry: Registry | None = None, where: str = "", owner: str = ""):
        self.name = name
        self._storage = storage
        self._registry = registry
        self._where = where or type(storage).__name__
        self._owner = owner
        self._journal: JournalFile | None = None
        self._study = -1
        self._ids: dict[int, int] = {}  # our number -> Optuna's id
        self._last = -1  # Optuna's number of the newest trial of ours
        self._objectives: list[str] = []

    @classmethod
    def at(cls, url: str, name: str, registry: Registry | None = None, owner: str = "") -> OptunaStorage:
        """Open the storage at a URL.

        Args:
            url: `sqlite:///studies.db`, `journal://studies.log`, or any other that SQLAlchemy knows.
            name: the study's name there.
            registry: the operators that terms are read with.
            owner: the id of the run that the study belongs to.
        """
        if url.startswith(JOURNAL):
            return cls.journal(Path(url.removeprefix(JOURNAL)), name, registry, owner=owner)
        if "://" not in url:
            raise RequestError(f"a storage is a URL such as sqlite:///studies.db or journal://studies.log, not {url!r}")
        where = without_password(url)
        optuna = imported_optuna()
        # A second driver of the same database may be writing: wait for it instead of failing at once.
        options = {"connect_args": {"timeout": 30}} if url.startswith("sqlite") else {}
        try:
            storage = optuna.storages.RDBStorage(url, engine_kwargs=options)
        except ImportError as error:
            raise MissingExtra(f"the storage {where} needs a package that is not installed: {_line(error)}") from error
        except Exception as error:  # SQLAlchemy's and Optuna's own
            raise RequestError(f"the storage {where} cannot be opened: {_line(error)}") from error
        return cls(storage, name, registry, where, owner)

    @classmethod
    def journal(
        cls, path: Path, name: str, registry: Registry | None = None, *, durable: bool = True, owner: str = ""
    ) -> OptunaStorage:
        """Open a journal file.

        Args:
            path: the file; created where missing.
            name: the study's name there.
            registry: the operators that terms are read with.
            durable: wait for the disk after every operation; not needed for a file that can be made again.
            owner: the id of the run that the study belongs to.
        """
        optuna = imported_optuna()
        with _spoken(str(path)):
            file = JournalFile(path, durable)
            found = cls(optuna.storages.JournalStorage(file), name, registry, str(path), owner)
        found._journal = file
        return found

    # ---- the four calls

    def begin(self, settings: dict[str, Any]) -> tuple[dict[str, Any], list[Trial]]:
        """Return the settings and trials in the storage; begin the study where it is new."""
        with _spoken(self._where):
            study = self._found()
            if study is None:
                study = self._created(settings["objectives"])
            self._study = study
            attributes = self._storage.get_study_user_attrs(study)
            self._refuse_other_driver(attributes)
            kept: dict[str, Any] | None = attributes.get("settings")
            if kept is None:
                self._refuse_foreign(settings["objectives"])
                names = list(settings["objectives"])
                self._storage.set_study_system_attr(study, METRIC_NAMES, names)
                self._storage.set_study_user_attr(study, "settings", settings)
                kept = settings
            self._storage.set_study_user_attr(study, "driver", _myself(self._owner))
            self._objectives = list(kept["objectives"])
            return kept, self._trials()

    def propose(self, trial: Trial) -> None:
        """Enter a running trial."""
        create_trial, states = _trials_of_optuna()
        attributes: dict[str, Any] = {
            "number": trial.number,
            "term": term_text(trial.term, self._registry),
            "seed": trial.seed,
        }
        if trial.source is not None:
            attributes["source"] = trial.source
        with _spoken(self._where):
            template = create_trial(state=states.RUNNING, user_attrs=attributes)
            found = self._storage.create_new_trial(self._study, template_trial=template)
            number = self._storage.get_trial_number_from_id(found)
            if number != self._last + 1:
                self._refuse_rival(trial.number, number, found)
            self._ids[trial.number], self._last = found, number

    def report(self, number: int, step: int, values: Mapping[str, Any]) -> None:
        """Enter a report: Optuna's one value is the first objective's, or else the first reported."""
        values = writable(values)
        first = self._objectives[0] if self._objectives else ""
        with _spoken(self._where), self._batch():
            self._storage.set_trial_user_attr(self._ids[number], f"{REPORT}{step}", values)
            if values:
                value = values[first] if first in values else next(iter(values.values()))
                self._storage.set_trial_intermediate_value(self._ids[number], int(step), float(value))

    def finish(self, trial: Trial) -> None:
        """Enter a result."""
        _, states = _trials_of_optuna()
        result: Result = trial.result  # type: ignore[assignment]  # only finished trials come here
        found = self._ids[trial.number]
        record = {
            "objectives": dict(result.objectives),
            "seconds": round(trial.seconds, 6),
            "elapsed": round(trial.elapsed, 6),
            "order": trial.order,
        }
        with _spoken(self._where):
            with self._batch():
                if result.reason:
                    self._storage.set_trial_user_attr(found, "reason", result.reason)
                self._storage.set_trial_user_attr(found, "result", record)
                if result.status == DONE:
                    values = [float(result.objectives[name]) for name in self._objectives]
                    self._storage.set_trial_state_values(found, states.COMPLETE, values)
                else:
                    self._storage.set_trial_state_values(found, states.FAIL)
            if self._journal is not None:
                self._storage.get_trial(found)  # reads the batch back, and raises where another driver was first

    def _batch(self) -> AbstractContextManager[None]:
        return self._journal.batch() if self._journal is not None else nullcontext()

    # ---- beginning, and taking turns

    def _found(self) -> int | None:
        """Return the study by its name or, where its run was renamed since, by its owner."""
        try:
            found: int = self._storage.get_study_id_from_name(self.name)
            return found
        except KeyError:
            pass
        for study in self._storage.get_all_studies() if self._owner else ():
            if (study.user_attrs.get("driver") or {}).get("owner") == self._owner:
                self.name = study.study_name
                return int(study._study_id)
        return None

    def _created(self, objectives: Mapping[str, str]) -> int:
        optuna = imported_optuna()
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            created: int = self._storage.create_new_study(_directions(objectives), self.name)
        finally:
            optuna.logging.set_verbosity(verbosity)
        return created

    def _refuse_foreign(self, objectives: Mapping[str, str]) -> None:
        """Raise where the study of our name was not begun by us: it has no settings, yet something in it."""
        alike = self._storage.get_study_directions(self._study) == _directions(objectives)
        if not alike or self._storage.get_all_trials(self._study, deepcopy=False):
            raise RequestError(
                f"{self._where} holds a study called {self.name!r} that eclose did not begin; choose another name"
            )

    def _refuse_other_driver(self, attributes: Mapping[str, Any]) -> None:
        """Raise while another process drives the study; one that is gone is taken over from."""
        driver = attributes.get("driver")
        if not driver or (self._owner and driver["owner"] == self._owner):  # our run's own lock tells drivers apart
            return
        here = driver["host"] == socket.gethostname()
        if here and (driver["process"] == os.getpid() or not alive(driver)):
            return
        gone = "" if here else "; if nothing runs there any more, call OptunaStorage.release"
        raise RequestError(
            f"the study {self.name!r} in {self._where} is driven by process {driver['process']} on {driver['host']} "
            f"(since {driver['since']}); a second driver needs a study, that is a run folder, of another name{gone}"
        )

    def _refuse_rival(self, ours: int, number: int, found: int) -> None:
        """Raise where another driver entered the same trial before: the first one wins."""
        _, states = _trials_of_optuna()
        for other in self._storage.get_all_trials(self._study, deepcopy=False):
            if self._last < other.number < number and other.user_attrs.get("number") == ours:
                self._storage.set_trial_user_attr(found, "reason", "entered by a second driver")
                self._storage.set_trial_state_values(found, states.FAIL)
                raise RunError(
                    f"another process drives the study {self.name!r} in {self._where}: it entered trial {ours} first; "
                    f"stop one of the two"
                )

    def release(self) -> None:
        """Say that whoever drove the study is gone, where that cannot be seen from this machine."""
        with _spoken(self._where):
            study = self._found()
            if study is not None:
                self._storage.set_study_user_attr(study, "driver", None)

    def reset(self) -> None:
        """Forget the study, to be written anew."""
        with _spoken(self._where):
            study = self._found()
            if study is not None:
                self._storage.delete_study(study)
        self._ids, self._last, self._study = {}, -1, -1

    # ---- reading

    def _trials(self) -> list[Trial]:
        """Return our trials in order; what other tools or a refused driver entered is passed over."""
        trials: list[Trial] = []
        self._ids, self._last = {}, -1
        for frozen in self._storage.get_all_trials(self._study, deepcopy=False):
            self._last = max(self._last, frozen.number)
            attributes = frozen.user_attrs
            number = attributes.get("number")
            if number is None or number in self._ids:
                continue
            if number != len(trials):
                raise RunError(f"the study {self.name!r} in {self._where} lacks trial {len(trials)}")
            self._ids[number] = frozen._trial_id
            trial = Trial(
                number, parse(attributes["term"], self._registry), attributes["seed"], attributes.get("source")
            )
            trial.reports = sorted(
                (int(key.removeprefix(REPORT)), values) for key, values in attributes.items() if key.startswith(REPORT)
            )
            if frozen.state.is_finished():
                record = attributes.get("result")
                if record is None:  # another tool ended it
                    given = dict(zip(self._objectives, frozen.values or (), strict=False))
                    record = {"objectives": given, "seconds": 0.0, "elapsed": 0.0, "order": len(trials)}
                status = DONE if frozen.state.name == "COMPLETE" else FAILED
                trial.result = Result(status, record["objectives"], attributes.get("reason", ""))
                trial.seconds, trial.elapsed, trial.order = record["seconds"], record["elapsed"], record["order"]
            trials.append(trial)
        return trials


def imported_optuna() -> Any:
    """Return the optuna package, or raise saying how to install it."""
    try:
        import optuna
    except ImportError as error:
        raise MissingExtra(
            f"Optuna storages need optuna ({_line(error)}); install it with `pip install optuna`"
        ) from error
    return optuna


def _trials_of_optuna() -> tuple[Any, Any]:
    from optuna.trial import TrialState, create_trial

    return create_trial, TrialState


def _directions(objectives: Mapping[str, str]) -> list[Any]:
    from optuna.study import StudyDirection

    return [
        StudyDirection.MAXIMIZE if direction == "maximise" else StudyDirection.MINIMIZE
        for direction in objectives.values()
    ]


def _myself(owner: str) -> dict[str, Any]:
    process = os.getpid()
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return {"host": socket.gethostname(), "process": process, "born": born(process), "since": since, "owner": owner}


@contextmanager
def _spoken(where: str) -> Iterator[None]:
    """Turn whatever a storage raises into one sentence."""
    try:
        yield
    except EcloseError:
        raise
    except Exception as error:  # SQLAlchemy's, Optuna's, the operating system's
        if type(error).__name__ == "UpdateFinishedTrialError":
            raise RunError(f"another process finished this trial in {where} first; stop one of the two") from error
        raise RunError(
            f"the storage {where} failed ({type(error).__name__}: {_line(error)}); "
            f"what it recorded before stays, resume when it works again"
        ) from error


def without_password(url: str) -> str:
    """Return a URL as it may be shown."""
    return re.sub(r"//[^@/]*@", "//***@", url)


def _line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
