"""The command that compares strategies: searches with several seeds, every network found judged alike."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from eclose.algebra.errors import RequestError
from eclose.cli.language import JsonOption
from eclose.cli.main import app, imported
from eclose.cli.output import as_json, note, text
from eclose.cli.progress import EVERY, Stopped, Watcher, _spoken
from eclose.cli.searching import DataOption, DeviceOption, TaskOption, _space, read_settings


class CompareWatcher(Watcher):
    """Shows which search or training a comparison is at; what happens inside one is told now and then.

    Args:
        quiet: whether nothing is shown.
        run: the comparison's folder.
    """

    def __init__(self, quiet: bool = False, run: Path | None = None):
        super().__init__(quiet=quiet, run=run)
        self._next = time.monotonic() + EVERY

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if isinstance(error, KeyboardInterrupt):
            raise Stopped("interrupted; the same command goes on where it was") from error

    def __call__(self, kind: str, value: Any) -> None:
        """Show what happened."""
        if self.quiet:
            return
        if kind == "piece":
            plural = "searches" if value.kind == "search" else "trainings"
            left = "" if value.left is None else f", about {_spoken(value.left)} of {plural} left"
            self._phase(f"{value.kind} {value.number} of {value.of}: {value.name}{left}")
            self._next = time.monotonic() + EVERY
        elif self._bar is not None:
            super().__call__(kind, value)
        elif kind in ("trial", "epoch") and time.monotonic() > self._next and _told(kind, value):
            super().__call__(kind, value)
            self._next = time.monotonic() + EVERY

    def _phase(self, text: str) -> None:
        if self._bar is None:
            note(text)
            return
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._bar.console.print(text, markup=False, highlight=False)
        self._task = None


def _told(kind: str, value: Any) -> bool:
    """Return whether the plain lines have something to say: a trial's start has not."""
    return kind != "trial" or value.happened == "finished"


@app.command()
def compare(
    task: TaskOption,
    strategies: Annotated[
        list[str] | None, typer.Option("--strategy", metavar="NAME", help="A strategy; give as many as you like.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder: new, empty, or one to go on with.")] = None,
    space: Annotated[str | None, typer.Option("--space", help="A space that ships.")] = None,
    grammar: Annotated[Path | None, typer.Option("--grammar", help="A file with a grammar.")] = None,
    seeds: Annotated[str, typer.Option(help="Of the searches: how many, or a list such as 3,4,8.")] = "5",
    retrain_seeds: Annotated[
        str | None, typer.Option(help="Of the trainings of each network found: how many, or a list; 1 without.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Of a search: trials, or a time such as 20000s.")] = None,
    table: Annotated[str | None, typer.Option(help="Look networks up in this table instead of training them.")] = None,
    protocol: Annotated[str | None, typer.Option(help="How networks found are trained.")] = None,
    search_protocol: Annotated[str | None, typer.Option(help="How a search trains its candidates.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="For every strategy that has it; STRATEGY.KEY=VALUE for one, final.KEY=VALUE for the last training.",
        ),
    ] = None,
    data: DataOption = None,
    device: DeviceOption = None,
    json: JsonOption = False,
) -> None:
    """Compare strategies: searches with several seeds, every network found judged alike."""
    from eclose._api.compare_request import split_settings
    from eclose._api.comparing import compare as run_comparison
    from eclose.tasks.names import read_value

    given = read_settings(settings)
    if budget is not None:
        if "budget" in given:
            raise RequestError("--budget and --set budget= say the same; give one of them")
        given["budget"] = read_value(budget)
    common, single, final = split_settings(given)
    place = _space(space, grammar)
    if out is None:
        raise RequestError("say where the comparison is kept, with --out runs/NAME")
    options = {"protocol": protocol, "search_protocol": search_protocol}
    for key in options:
        if key in common:
            raise RequestError(f"{key} is an option of its own here: --{key.replace('_', '-')} {common[key]}")
    for key in ("data", "device", "seeds", "retrain_seeds", "table", "final", "watch", "code", "out", "per_strategy"):
        if key in common:
            raise RequestError(f"{key} is no setting of a search; see `eclose compare --help`")
    with CompareWatcher(quiet=json, run=out) as watch:
        found = run_comparison(
            place, task, strategies or [], out=out, seeds=_seeds("--seeds", seeds),
            retrain_seeds=None if retrain_seeds is None else _seeds("--retrain-seeds", retrain_seeds),
            final=final, table=table, per_strategy=single, device=device, data=data, watch=watch, code=imported(),
            **options, **common,
        )  # fmt: skip
    if json:
        as_json(found.plain())
        return
    text(found.table())
    note(f"page: {found.path / 'comparison.html'}")


def _seeds(option: str, given: str) -> int | list[int]:
    """Return how many seeds, or which, where there is a comma."""
    try:
        numbers = [int(part) for part in given.split(",") if part.strip()]
    except ValueError:
        raise RequestError(f"{option} is a number of seeds or a list such as 3,4,8, not {given!r}") from None
    return numbers[0] if "," not in given and numbers else numbers
