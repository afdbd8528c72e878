"""The demonstration: a search from beginning to end on data that ship with the package."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from eclose.cli.language import JsonOption
from eclose.cli.main import app
from eclose.cli.output import as_json, note, table, text
from eclose.cli.progress import Watcher

BASELINE = "Sequential(stem(channels=16), conv(kernel=3), max_pool(kernel=2, stride=2), conv(channels=32), head)"
TRIALS = 24
SEARCH_EPOCHS = 5
FINAL_EPOCHS = 20
SEEDS = 3


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option("--out", help="The run's folder; runs/demo-N without.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything.")] = 0,
    json: JsonOption = False,
) -> None:
    """Find a network for handwritten digits, train it, compare it with a fixed one: a few minutes on two cores."""
    from eclose._api.search import evaluate, search
    from eclose.runs import Run
    from eclose.study.executors import limit_threads

    folder = out if out is not None else _fresh(Path("runs"))
    began = time.monotonic()
    if not json:
        note("searching the space `tiny` for a network that reads 8x8 digits")
    with Watcher("%", quiet=json, run=folder) as watch:
        run = search(
            "tiny", "digits", "evolution", out=folder, seed=seed, watch=watch, device="cpu",
            budget=TRIALS, population=6, tournament=3, epochs=SEARCH_EPOCHS, retrain=FINAL_EPOCHS,
        )  # fmt: skip
    searched = time.monotonic() - began
    limit_threads(1)  # two threads gain little on networks this small
    rows = []
    for name, term, space in (("found", run.best.term, "tiny"), ("fixed baseline", BASELINE, None)):
        if not json:
            note(f"training {name}: {SEEDS} times {FINAL_EPOCHS} epochs")
        results = []
        for number in range(SEEDS):
            with Watcher(quiet=json) as watch:
                results.append(
                    evaluate(
                        term, "digits", "quick", space=space, seed=seed + 1 + number, device="cpu", watch=watch,
                        epochs=FINAL_EPOCHS,
                    )
                )  # fmt: skip
        rows.append(_row(name, term, space, results))
    columns = ["network", "test accuracy %", "from ... to", "parameters", "multiply-adds", "seconds a training"]
    remark = (
        f"Both trained alike, {SEEDS} times for {FINAL_EPOCHS} epochs from other seeds than the search's; means of "
        f"the accuracies on 359 digits that the search could not see. One digit is 0.28 %."
    )
    from eclose.report import write_report

    with Run.resume(folder, threads=1) as kept:
        kept.append("comparison", durable=True, columns=columns, rows=rows, remark=remark)
        report = write_report(kept)
    if json:
        as_json({"path": str(folder), "columns": columns, "rows": rows, "seconds": time.monotonic() - began})
        return
    shown = [(row[0], f"{row[1]:.2f}", row[2], f"{row[3]:,}", f"{row[4]:,}", f"{row[5]:.1f}") for row in rows]
    table(shown, columns, right=(1, 2, 3, 4, 5))
    text("")
    text(f"found in {searched:.0f} s: {run.best.term}")
    text(f"report: {report}")


def _row(name: str, term: Any, space: str | None, results: list[dict[str, Any]]) -> list[Any]:
    from eclose._api.networks import cost

    spent = cost(term, space=space, task="digits")
    scores = [result["score"] for result in results]
    seconds = statistics.median(result["seconds"] for result in results)
    spread = f"{min(scores):.2f} to {max(scores):.2f}"
    return [name, statistics.mean(scores), spread, spent.parameters, spent.multiply_adds, seconds]


def _fresh(runs: Path) -> Path:
    """Return a folder that does not exist yet."""
    number = 1
    while (runs / f"demo-{number}").exists():
        number += 1
    return runs / f"demo-{number}"
