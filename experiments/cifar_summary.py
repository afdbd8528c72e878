"""What the searches of `experiments.cifar_searches` found: figures as JSON, curves and landscapes as one page.

    python -m experiments.cifar_summary nasbench201 --runs runs/nb201 --data DATA
    python -m experiments.cifar_summary robust --runs runs/robust

Test accuracies of NAS-Bench-201 cells are the table's after 200 epochs, looked up after the searches: no search saw
them. Only schedules that came to their end are reported.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._measure import machine

import eclose as ec
from eclose.report.charts import Series, chart
from eclose.report.heat_maps import heat_map
from eclose.report.markup import element, joined, table
from eclose.report.page import page
from eclose.runs import Run, write_text

RESULTS = Path("benchmarks/results")
TABLE = "tabular:cifar10@200"


def finished(runs: Path) -> Iterator[tuple[str, Run]]:
    """Yield the runs that came to their end, by name."""
    for folder in sorted(runs.iterdir()):
        if (folder / "run.json").exists():
            run = Run.open(folder)
            if run.of_kind("search-end"):
                yield folder.name, run


def read(path: Path) -> dict[str, Any]:
    """Return a JSON file."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def nasbench201(runs: Path) -> dict[str, Any]:
    """Return for each search what the table says of its cell after every epoch, and of every selection."""
    scores = ec.task(TABLE)

    def test(term: str) -> float:
        return float(scores.final(ec.parse(term))["test"])

    found: dict[str, Any] = {}
    for name, run in finished(runs):
        seen = run.of_kind("architecture")
        settings = run.request["settings"]
        row: dict[str, Any] = {
            "strategy": run.request["strategy"], "seed": run.request["seed"], "epochs": settings["epochs"],
            "channels": settings["channels"], "cells": settings["cells"], "step": settings["step"],
            "environment": run.environment["versions"],
            "magnitude": {event["epoch"] + 1: test(event["term"]) for event in seen},
            "skips": {event["epoch"] + 1: event["skips"]["derived"] for event in seen},
            "largest_eigenvalue": {
                event["epoch"] + 1: event["hessian"]["largest"] for event in seen if "hessian" in event
            },
            "term": seen[-1]["term"],
            "selections": [],
        }  # fmt: skip
        for path in sorted((run.path / "selections").glob("*.json")):
            content = read(path)
            row["selections"].append(
                {key: content[key] for key in ("by", "epoch", "term", "score", "settings")}
                | {"test": test(content["term"])}
            )
        for path in sorted((run.path / "diagnosis").glob("*.json")):
            content = read(path)
            row[content["kind"]] = {key: value for key, value in content.items() if key not in ("kind", "options")}
        found[name] = row
    return found


def robust(runs: Path) -> dict[str, Any]:
    """Return for S2 and S4 the three selections: skips or noise among 16 operations, and the error after retraining."""
    found: dict[str, Any] = {}
    for name, run in finished(runs):
        space = run.request["space"]
        by = {"magnitude": str(run.best_term)} if run.request["settings"]["step"] != "none" else {}
        for path in sorted((run.path / "selections").glob("*.json")):
            by["perturbation"] = read(path)["term"]
        for how, term in by.items():
            trained = runs / f"{name}-{how}-retrained.json"
            if not trained.exists():
                continue
            label = {"magnitude": "magnitude", "perturbation": "perturbation"}[how]
            if run.request["settings"]["step"] == "none":
                label = "perturbation, alphas fixed"
            result = read(trained)
            text = str(ec.parse(term))
            found.setdefault(space, {})[label] = {
                "skips": text.count("on(id,"), "noise": text.count("on(noise,"), "operations": text.count("on("),
                "test_error": 100.0 - result["score"], "parameters": result["parameters"], "term": text,
                "epochs": run.request["settings"]["epochs"], "protocol": result["protocol"],
            }  # fmt: skip
    return found


def curves(found: dict[str, Any]) -> str:
    """Return the page of the NAS-Bench-201 searches."""
    accuracy = []
    for row in found.values():
        if row["step"] == "none":
            continue
        points = [(float(epoch), value) for epoch, value in row["magnitude"].items()]
        accuracy.append((row["strategy"], Series(f"seed {row['seed']}", points)))
    charts = []
    for strategy in dict.fromkeys(name for name, _ in accuracy):
        series = [drawn for name, drawn in accuracy if name == strategy]
        tuned = [
            (float(chosen["epoch"]), chosen["test"])
            for row in found.values()
            if row["strategy"] == strategy and row["step"] != "none"
            for chosen in row["selections"]
        ]
        if tuned:
            series.append(Series("by perturbation", tuned, "points"))
        label = f"test accuracy, {strategy}"
        charts.append(chart(series, x="epoch", y=label, title=f"{strategy}: the derived cell", whole=True))
    curvature = [
        Series(row["strategy"],
               [(float(epoch), value) for epoch, value in row["largest_eigenvalue"].items()])
        for row in found.values()
        if row["largest_eigenvalue"] and row["seed"] == 0
    ]  # fmt: skip
    charts.append(chart(curvature, x="epoch", y="largest eigenvalue", title="Hessian of the alphas", whole=True))
    maps = [
        heat_map(row["landscape"]["axis"], row["landscape"]["loss"], x="first direction", y="second direction",
                 title=f"{row['strategy']}: validation loss", colour="var(--second)")
        for row in found.values()
        if "landscape" in row
    ]  # fmt: skip
    rows = [
        (name, row["epochs"], f"{list(row['magnitude'].values())[-1]:.2f}", f"{max(row['magnitude'].values()):.2f}",
         "; ".join(f"{chosen['test']:.2f} (epoch {chosen['epoch']})" for chosen in row["selections"]) or "-")
        for name, row in found.items()
    ]  # fmt: skip
    heads = ("search", "epochs", "by magnitude, last epoch", "by magnitude, best epoch", "by perturbation")
    return page(
        "Gradient searches on CIFAR-10",
        joined([element("h1", "Gradient searches on CIFAR-10"),
                element("p", "NAS-Bench-201, supernets of one cell a stage and 8 channels. Test accuracy of the cell, "
                        "trained for 200 epochs by the benchmark's authors.", class_="soft")]),
        [("Test accuracy against search epoch", element("div", *charts, class_="charts")),
         ("Landscapes", element("div", *maps, class_="charts")),
         ("Searches", table(heads, rows, numeric=range(1, 4)))],
    )  # fmt: skip


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("nasbench201", "robust"))
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--data", help="the folder with the table")
    parser.add_argument("--device", default="", help="what the searches ran on, for the record")
    given = parser.parse_args()
    if given.data is not None:
        os.environ["ECLOSE_DATA"] = given.data
    found = nasbench201(given.runs) if given.what == "nasbench201" else robust(given.runs)
    content = {"summarised_on": machine(), "device": given.device, "searches": found}
    write_text(RESULTS / f"cifar-{given.what}.json", json.dumps(content, indent=1) + "\n")
    if given.what == "nasbench201":
        write_text(RESULTS / "cifar-nasbench201.html", curves(found))
    for name, row in found.items():
        print(name, json.dumps({key: row[key] for key in row if key in ("term", "selections")})[:300])


if __name__ == "__main__":
    main()
