"""Commands that search and train: search, resume, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eclose.algebra.errors import RequestError
from eclose.cli.language import JsonOption, SizeOption
from eclose.cli.main import app, imported
from eclose.cli.output import as_json, note, table, text
from eclose.cli.progress import Watcher

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the search, its strategy or its training."),
]
TaskOption = Annotated[str, typer.Option("--task", help="A task: digits, cifar10, tabular:cifar10@12->200, ...")]
SeedOption = Annotated[int, typer.Option(help="Of everything; the same seed gives the same run.")]
DataOption = Annotated[Path | None, typer.Option("--data", help="The folder of the data sets.")]
DeviceOption = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1; the GPU where there is one.")]


def read_settings(pairs: list[str] | None) -> dict[str, Any]:
    """Return `KEY=VALUE` texts as settings with their values read."""
    from eclose.tasks.names import read_value

    found: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        owner, dot, name = key.strip().rpartition(".")  # in a comparison, STRATEGY.KEY
        key = f"{owner}{dot}{name.replace('-', '_')}"
        if not equals or not key:
            raise RequestError(f"--set takes KEY=VALUE, as in --set budget=40, not {pair!r}")
        if key in found:
            raise RequestError(f"--set gives {key} twice")
        found[key] = read_value(value.strip())
    return found


@app.command()
def search(
    task: TaskOption,
    out: Annotated[Path | None, typer.Option("--out", help="The run's folder, new or empty.")] = None,
    space: Annotated[str | None, typer.Option("--space", help="A space that ships.")] = None,
    grammar: Annotated[Path | None, typer.Option("--grammar", help="A file with a grammar.")] = None,
    strategy: Annotated[str, typer.Option("--strategy", help="How the space is searched.")] = "evolution",
    seed: SeedOption = 0,
    settings: SetOption = None,
    data: DataOption = None,
    device: DeviceOption = None,
    storage: Annotated[str | None, typer.Option(help="URL of an Optuna storage to keep the study in.")] = None,
    asynchronous: Annotated[
        bool, typer.Option("--asynchronous", help="Tell results as they come in; the history then depends on timing.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and stop.")] = False,
    json: JsonOption = False,
) -> None:
    """Search a space for the network that a task needs."""
    from eclose._api.search import search as run_search
    from eclose._api.search_request import resolved

    given = read_settings(settings)
    for key, value in (("data", data and str(data)), ("device", device), ("storage", storage)):
        if value is not None:
            given[key] = value
    if asynchronous:
        given["asynchronous"] = True
    place = _space(space, grammar)
    if dry_run:
        _dry_run(resolved(place, task, strategy, seed, given), json)
        return
    if out is None:
        raise RequestError("say where the run is kept, with --out runs/NAME (or --dry-run to see what it would take)")
    with Watcher(quiet=json, run=out) as watch:
        run = run_search(place, task, strategy, out=out, seed=seed, watch=watch, code=imported(), **given)
    _told(run, json)


def _space(space: str | None, grammar: Path | None) -> Any:
    from eclose._api.requests import read_text, space_or_file
    from eclose.spaces import Space

    if (space is None) == (grammar is None):
        raise RequestError("say what is searched, with --space NAME or --grammar FILE, one of them")
    if grammar is not None:
        return Space.from_grammar(read_text(grammar), name=grammar.stem)
    assert space is not None
    return space_or_file(space)


def _told(run: Any, json: bool) -> None:
    """Print what a run found."""
    if json:
        as_json(
            {
                "path": str(run.path),
                "trials": len(run.history),
                "best": {"term": str(run.best.term), "objectives": run.best.objectives},
                "final": run.final,
            }
        )
        return
    rows = [("best of the search", f"{run.best.score:.6g}")]
    if run.final is not None:
        how = "after its final training" if "parameters" in run.final else "at the budget that is reported"
        rows.append((f"{how}, {run.final['part']} part", f"{run.final['score']:.6g}"))
    table(rows, right=(1,))
    text(str(run.best.term))
    if run.stopped:
        note(f"stopped early: {run.stopped}")
    note(f"run: {run.path}, report: {run.path / 'report.html'}")


def _dry_run(parts: Any, json: bool) -> None:
    """Say what a search would take."""
    from eclose._api.drivers import DRY_RUNS
    from eclose.strategies import STRATEGIES

    answer, lines = DRY_RUNS[STRATEGIES.get(parts.request.strategy).kind](parts)
    if json:
        as_json(answer)
    else:
        for line in lines:
            text(line)
    if not answer.get("fits", True):
        raise typer.Exit(1)


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The run's folder.")],
    force: Annotated[bool, typer.Option("--force", help="Go on in another environment than it began in.")] = False,
    json: JsonOption = False,
) -> None:
    """Go on with a run that was interrupted."""
    from eclose._api.search import resume as go_on

    with Watcher(quiet=json, run=run) as watch:
        handle = go_on(run, force=force, watch=watch, code=imported())
    _told(handle, json)


@app.command()
def evaluate(
    term: Annotated[str, typer.Argument(metavar="TERM", help="A term, a file with one, or a run's folder.")],
    task: TaskOption,
    protocol: Annotated[str, typer.Option(help="How it is trained.")] = "quick",
    space: Annotated[str | None, typer.Option("--space", help="The space whose network goes around the term.")] = None,
    size: SizeOption = None,
    seed: SeedOption = 0,
    settings: SetOption = None,
    data: DataOption = None,
    device: DeviceOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the result as JSON to this file.")] = None,
    json: JsonOption = False,
) -> None:
    """Train a network from its initial weights and measure it on the test part."""
    from eclose._api.requests import run_of, space_or_file, term_or_file
    from eclose._api.search import evaluate as judge
    from eclose.tasks import task as named_task

    learned = named_task(task, **({} if data is None else {"data": str(data)}))
    found = run_of(term) if space is None else None
    place = found.space if found is not None else None if space is None else space_or_file(space)
    given = term_or_file(term)
    if getattr(learned, "tabular", False):
        result = judge(given, learned, protocol, size=size, device=device, out=out, **read_settings(settings))
    else:
        with Watcher(quiet=json) as watch:
            result = judge(
                given, learned, protocol, space=place, size=size, seed=seed, device=device, out=out, watch=watch,
                **read_settings(settings),
            )  # fmt: skip
    if json:
        as_json(result)
        return
    shown = [(key, value) for key, value in result.items() if isinstance(value, str | int | float)]
    table([(key.replace("_", " "), f"{value:.6g}" if isinstance(value, float) else value) for key, value in shown])
    if out is not None:
        note(f"wrote {out}")
