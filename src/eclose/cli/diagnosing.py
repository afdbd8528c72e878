"""The command that measures what a gradient search left: diagnose."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from eclose.cli.language import JsonOption
from eclose.cli.main import app
from eclose.cli.output import as_json, note, table
from eclose.cli.progress import EVERY, Stopped, Watcher
from eclose.cli.runs import RunArgument
from eclose.cli.searching import DeviceOption


class DiagnosisWatcher(Watcher):
    """Shows which diagnosis is at which of its measurements."""

    def __init__(self, quiet: bool = False, run: Path | None = None):
        super().__init__(quiet=quiet, run=run)
        self._name = ""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if isinstance(error, KeyboardInterrupt):
            raise Stopped("interrupted; the same command goes on where it was") from error

    def __call__(self, kind: str, value: Any) -> None:
        """Show what happened."""
        if kind == "diagnosis" and not self.quiet:
            self._measured(*value)
        elif kind == "phase":
            self._name, self._task, self._said = str(value), None, time.monotonic()

    def _measured(self, done: int, total: int, text: str) -> None:
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(self._name, total=total, figures="")
            self._bar.update(self._task, completed=done, total=total, figures=text)
        elif done == total or time.monotonic() - self._said > EVERY:
            self._said = time.monotonic()
            note(f"{self._name} {done}/{total}: {text}")


@app.command()
def diagnose(
    run: RunArgument,
    what: Annotated[
        list[str] | None,
        typer.Option(
            "--what",
            metavar="NAME",
            help="hessian, gap, landscape, strength, correlation, anytime; give several, or none for all that apply.",
        ),
    ] = None,
    epochs: Annotated[
        list[int] | None,
        typer.Option("--epoch", metavar="N", help="Look at the checkpoint after N epochs; all that are kept without."),
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option("--table", help="A table of benchmark scores such as tabular:cifar10@200."),
    ] = None,
    points: Annotated[int, typer.Option(help="Coordinates along a direction of the landscape.")] = 11,
    radius: Annotated[float, typer.Option(help="The largest of them, in lengths of the centre.")] = 1.0,
    space: Annotated[str, typer.Option("--landscape", help="Where the landscape lies: alpha or theta.")] = "alpha",
    samples: Annotated[int, typer.Option(help="Architectures whose ranks are compared with the table.")] = 50,
    batches: Annotated[
        int, typer.Option(help="Batches of held data, 500 items each, that a score is taken on; 0 for all.")
    ] = 5,
    probe: Annotated[int, typer.Option(help="Items that curvature is taken on; 0 for one batch of the search.")] = 0,
    method: Annotated[str, typer.Option(help="Of the curvature: auto, dense or lanczos.")] = "auto",
    seed: Annotated[int, typer.Option(help="Of the landscape's directions and of the architectures drawn.")] = 0,
    device: DeviceOption = None,
    json: JsonOption = False,
) -> None:
    """Measure what the kept checkpoints of a gradient search say, and tell it in the report."""
    from eclose._api.diagnosing import diagnose as diagnosed

    with DiagnosisWatcher(quiet=json, run=run) as watch:
        found = diagnosed(
            run, what or None, epochs=epochs or None, table=scores, device=device, watch=watch, points=points,
            radius=radius, space=space, samples=samples, batches=batches, probe=probe, method=method, seed=seed,
        )  # fmt: skip
    if json:
        as_json(found)
        return
    table([(name, _summary(content)) for name, content in found.items()])
    note(f"report: {run / 'report.html'}")


def _summary(content: dict[str, Any]) -> str:
    """Return what a diagnosis says in a line."""
    summaries = {
        "hessian": lambda: f"largest eigenvalue {_course(content['rows'], 'largest')}",
        "gap": lambda: f"gap {_course(content['rows'], 'gap')}",
        "landscape": lambda: f"{len(content['axis'])} x {len(content['axis'])} points after {content['epoch']} epochs",
        "strength": lambda: f"mean tau {_number(content['tau'])} of {len(content['choices'])} choices",
        "correlation": lambda: (
            f"tau {_number(content['tau'])}, regret of the best of {len(content['points'])} "
            f"{_number(content['regret']['1'])}"
        ),
        "anytime": lambda: f"score {_course(content['rows'], 'score')}",
    }
    return summaries[content["kind"]]()


def _course(rows: list[dict[str, Any]], key: str) -> str:
    """Return a quantity at the first and at the last epoch."""
    first, last = rows[0], rows[-1]
    if first is last:
        return f"{_number(last[key])} at epoch {last['epoch']}"
    return f"{_number(first[key])} at epoch {first['epoch']}, {_number(last[key])} at epoch {last['epoch']}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
