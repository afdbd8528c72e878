"""The demonstration: a search from beginning to end on data that ship with the package."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from eclose.cli.language import JsonOption
from eclose.cli.main import app
from eclose.cli.output import as_json, note, table, text
from eclose.cli.progress import Watcher

BASELINE = "Sequential(stem(channels=16), conv(kernel=3), max_pool(kernel=2, stride=2), conv(channels=32), head)"
TRIALS = 16
SEARCH_EPOCHS = 4
FINAL_EPOCHS = 20


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option("--out", help="The run's folder; runs/demo-N without.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything.")] = 0,
    json: JsonOption = False,
) -> None:
    """Find a network for handwritten digits, train it, compare it with a fixed one: a few minutes on two cores."""
    from eclose._api.search import evaluate, search
    from eclose.runs import Run

    folder = out if out is not None else _fresh(Path("runs"))
    began = time.monotonic()
    if not json:
        note("searching the space `tiny` for a network that reads 8x8 digits")
    with Watcher("%", quiet=json) as watch:
        run = search(
            "tiny", "digits", "evolution", out=folder, seed=seed, watch=watch, device="cpu",
            budget=TRIALS, population=6, tournament=3, epochs=SEARCH_EPOCHS, retrain=FINAL_EPOCHS,
        )  # fmt: skip
    searched = time.monotonic() - began
    rows = []
    for name, term, space in (("found", run.best.term, "tiny"), ("fixed baseline", BASELINE, None)):
        if not json:
            note(f"training {name} for {FINAL_EPOCHS} epochs")
        with Watcher(quiet=json) as watch:
            result = evaluate(
                term, "digits", "quick", space=space, seed=seed + 1, device="cpu", watch=watch, epochs=FINAL_EPOCHS
            )
        rows.append(_row(name, term, space, result))
    columns = ["network", "test accuracy %", "parameters", "multiply-adds", "seconds of training"]
    remark = (
        f"Both trained alike for {FINAL_EPOCHS} epochs from another seed than the search's and tested once, on 359 "
        "digits that the search could not see. One digit is 0.28 %."
    )
    from eclose.report import write_report

    with Run.resume(folder, threads=1) as kept:
        kept.append("comparison", durable=True, columns=columns, rows=rows, remark=remark)
        report = write_report(kept)
    if json:
        as_json({"path": str(folder), "columns": columns, "rows": rows, "seconds": time.monotonic() - began})
        return
    shown = [(row[0], f"{row[1]:.2f}", f"{row[2]:,}", f"{row[3]:,}", f"{row[4]:.1f}") for row in rows]
    table(shown, columns, right=(1, 2, 3, 4))
    text("")
    text(f"found in {searched:.0f} s: {run.best.term}")
    text(f"report: {report}")


def _row(name: str, term: object, space: str | None, result: dict[str, object]) -> list[object]:
    from eclose._api.networks import cost

    spent = cost(term, space=space, task="digits")  # type: ignore[arg-type]
    return [name, result["score"], spent.parameters, spent.multiply_adds, result["seconds"]]


def _fresh(runs: Path) -> Path:
    """Return a folder that does not exist yet."""
    number = 1
    while (runs / f"demo-{number}").exists():
        number += 1
    return runs / f"demo-{number}"
