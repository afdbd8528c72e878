"""Diagnose: the public function that measures what a gradient search left, and has the report tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from eclose._api.diagnoses import DIAGNOSES, Options, Subject
from eclose._api.diagnosis_files import DiagnosisFile
from eclose._api.handle import RunHandle
from eclose._api.requests import as_folder
from eclose._api.search_request import GRADIENT
from eclose.algebra.errors import RequestError, did_you_mean
from eclose.runs import Run
from eclose.strategies import STRATEGIES


def diagnose(
    run: Any,
    what: str | Iterable[str] | None = None,
    *,
    epochs: int | Iterable[int] | None = None,
    table: Any = None,
    device: str | None = None,
    task: Any = None,
    watch: Callable[[str, Any], None] | None = None,
    **options: Any,
) -> dict[str, dict[str, Any]]:
    """Measure what the kept checkpoints of a gradient search say, and return it by diagnosis.

    Everything is kept in the run's folder as `diagnosis/NAME.json` and told by its report. What is there already, made
    with the same options, is not measured again.

    Args:
        run: the run's folder, or what `search` returned.
        what: `"hessian"`, `"gap"`, `"landscape"`, `"strength"`, `"correlation"`, `"anytime"`; all that apply without.
        epochs: finished epochs of the checkpoints to look at, all that are kept without. Those diagnoses that look at
            one checkpoint take the last of them.
        table: a table of benchmark scores, `"tabular:cifar10@200"`; for `correlation` and `anytime`.
        device: where the supernet goes; the GPU where there is one.
        task: the task again, where it was given from Python.
        watch: told what happens: `("phase", name)`, `("diagnosis", (done, total, text))`.
        options: `points=`, `radius=`, `space=` (of the landscape), `samples=` (of the correlation), `batches=` (of held
            data for a score, 0 for all), `probe=` (items of the batch for curvature), `method=`, `seed=`.
    """
    folder = _folder(run)
    if task is None:
        task = getattr(run, "task", None)
    settings = _options(options)
    wanted = None if epochs is None else (epochs,) if isinstance(epochs, int) else tuple(epochs)
    subject = Subject(_gradient_run(folder), wanted, None if table is None else _table(table), task, device)
    found = {}
    for name in _names(what, subject):
        diagnosis = DIAGNOSES[name]
        if watch is not None:
            watch("phase", name)
        depends = {key: value for key, value in asdict(settings).items() if key in diagnosis.options}
        if diagnosis.table:
            depends["table"] = subject.table.name

        def tell(done: int, total: int, text: str) -> None:
            if watch is not None:
                watch("diagnosis", (done, total, text))

        found[name] = diagnosis.run(subject, settings, DiagnosisFile(folder, name, depends), tell)
    _tell_in_report(folder)
    return found


def _folder(run: Any) -> Path:
    if isinstance(run, RunHandle):
        if run.path is None:
            raise RequestError("this search was kept in memory; give out= a folder to have checkpoints to diagnose")
        return run.path
    if not as_folder(run):
        raise RequestError(f"a run is diagnosed by its folder, not by {run!r}")
    return Path(run)


def _gradient_run(folder: Path) -> Run:
    run = Run.open(folder)
    name = str(run.request.get("strategy", ""))
    if name not in STRATEGIES or STRATEGIES.get(name).kind != GRADIENT:
        raise RequestError(f"{folder} was searched by {name or 'no strategy'}, which trains no supernet to diagnose")
    return run


def _options(given: dict[str, Any]) -> Options:
    known = {entry.name: entry.default for entry in fields(Options)}
    for key, value in given.items():
        if key not in known:
            hint = did_you_mean(key, known) or f" (known: {', '.join(known)})"
            raise RequestError(f"diagnoses have no option {key!r}{hint}")
        kinds = (int, float) if isinstance(known[key], float) else (type(known[key]),)
        if type(value) not in kinds:
            kind = {int: "a whole number", float: "a number", str: "a text"}[type(known[key])]
            raise RequestError(f"{key} is {kind} such as {known[key]!r}, not {value!r}")
    for key, least in (("batches", 0), ("probe", 0), ("samples", 2)):
        if given.get(key, least) < least:
            raise RequestError(f"{key} must be at least {least}, not {given[key]!r}")
    return Options(**{**given, **({"radius": float(given["radius"])} if "radius" in given else {})})


def _names(what: str | Iterable[str] | None, subject: Subject) -> list[str]:
    """Return the diagnoses to do; without a wish, those that apply."""
    trained = _has_alphas(subject.run)
    if what is None:
        fitting = [
            name
            for name, diagnosis in DIAGNOSES.items()
            if (trained or not diagnosis.alphas) and (subject.table is not None or not diagnosis.table)
        ]
        if not fitting:
            raise RequestError(
                f"{subject.run.path} has no alphas to diagnose; with table= its shared weights can be compared with "
                "a benchmark"
            )
        return fitting
    names = [what] if isinstance(what, str) else list(what)
    for name in names:
        if name not in DIAGNOSES:
            hint = did_you_mean(str(name), DIAGNOSES) or f" (known: {', '.join(DIAGNOSES)})"
            raise RequestError(f"unknown diagnosis {name!r}{hint}")
        if DIAGNOSES[name].alphas and not trained:
            mixture = subject.run.request["settings"]["mixture"]
            raise RequestError(f"{name} looks at alphas, which mean nothing with mixture={mixture!r}")
        if DIAGNOSES[name].table and subject.table is None:
            raise RequestError(f"{name} compares with a table; name one, such as table='tabular:cifar10@200'")
    return names


def _has_alphas(run: Run) -> bool:
    from eclose.strategies.gradient.mixtures import MIXTURES

    return MIXTURES.get(run.request["settings"]["mixture"]).trained


def _table(given: Any) -> Any:
    from eclose.tasks import task as named_task

    found = named_task(given) if isinstance(given, str) else given
    if not getattr(found, "tabular", False):
        raise RequestError(f"{given!r} is no table; one is named like 'tabular:cifar10@200'")
    return found


def _tell_in_report(folder: Path) -> None:
    """Write the report anew, unless the run is being driven: its driver writes one at the end."""
    from eclose.report import write_report

    if not _driven(folder):
        write_report(folder)


def _driven(folder: Path) -> bool:
    import fcntl

    try:
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


__all__ = ["diagnose"]
