"""Puts a run's report together from its sections.

A section is a function `Record -> Markup | None` in a file of its own; `SECTIONS` lists them in order. Another kind of
run adds its sections here and changes none that exist.
"""

from __future__ import annotations

from pathlib import Path

from eclose.algebra.declarations import resolve
from eclose.report.markup import Markup, element, joined
from eclose.report.page import page
from eclose.report.record import Record, duration, grouped
from eclose.runs import Run, write_text

SECTIONS: list[tuple[str, str]] = [
    ("Best architecture", "eclose.report.sections.best:best"),
    ("Comparison", "eclose.report.sections.comparison:comparison"),
    ("Search", "eclose.report.sections.search:progress"),
    ("Training of the supernet", "eclose.report.sections.training:supernet"),
    ("Architecture by epoch", "eclose.report.sections.architecture:architecture"),
    ("Derived architectures", "eclose.report.sections.architecture:derived"),
    ("Curvature", "eclose.report.sections.curvature:curvature"),
    ("Landscape", "eclose.report.sections.landscape:landscape"),
    ("Gap of discretisation", "eclose.report.sections.gap:gap"),
    ("Strength of operations", "eclose.report.sections.strength:strength"),
    ("Ranks by shared weights", "eclose.report.sections.correlation:correlation"),
    ("Anytime performance", "eclose.report.sections.anytime:anytime"),
    ("Selections", "eclose.report.sections.selections:selections"),
    ("Training of the best network", "eclose.report.sections.training:training"),
    ("Trials", "eclose.report.sections.trials:trials"),
    ("Settings", "eclose.report.sections.settings:settings"),
    ("Environment", "eclose.report.sections.settings:environment"),
    ("Notes", "eclose.report.sections.settings:notes"),
]


def report_text(run: Run | str | Path) -> str:
    """Return the report of a run as one HTML page."""
    record = Record(run if isinstance(run, Run) else Run.open(run))
    sections = []
    for heading, reference in SECTIONS:
        content = resolve(reference)(record)
        if content is not None:
            sections.append((heading, content))
    return page(f"eclose: {record.run.path.name}", _lead(record), sections)


def write_report(run: Run | str | Path, file: str | Path | None = None) -> Path:
    """Write the report of a run, to `report.html` in its folder unless another file is named, and return its path."""
    folder = run.path if isinstance(run, Run) else Path(run)
    path = folder / "report.html" if file is None else Path(file)
    write_text(path, report_text(run))
    return path


def _lead(record: Record) -> Markup:
    request = record.request
    what = f"{request.get('strategy', 'search')} on {_name(request.get('space'))} for {_name(request.get('task'))}"
    state = "finished" if record.finished else "not finished; it can be resumed"
    figures = [_figure(value, label) for value, label in _figures(record)]
    return joined(
        [
            element("h1", what),
            element("p", f"Run {record.run.path.name}, begun {record.run.created}, {state}.", class_="soft"),
            element("div", *figures, class_="figures"),
        ]
    )


def _name(value: object) -> str:
    return str(value.get("name", "")) if isinstance(value, dict) else str(value or "")


def _figure(value: str, label: str) -> Markup:
    return element("div", element("b", value), element("span", label), class_="figure")


def _figures(record: Record) -> list[tuple[str, str]]:
    figures: list[tuple[str, str]] = []
    final, best = record.final, record.best
    metric = record.request.get("metric", {}).get("name", "score")
    if final is not None:
        part = final.get("part", "test")
        figures.append((grouped(final["score"]) + record.unit, f"{metric} on the {part} part, retrained"))
    if best is not None:
        value = grouped(best.objectives[record.objective])
        figures.append((value + record.unit, f"{record.objective} of the best trial"))
        for name, label in (("parameters", "parameters"), ("multiply_adds", "multiply-adds")):
            if name in best.objectives:
                figures.append((grouped(best.objectives[name]), label))
    for event in record.run.of_kind("search-end"):
        figures.append((grouped(event["score"]) + record.unit, f"{metric} with the supernet's weights"))
        figures.append((str(event["epochs"]), "epochs of search" + (", stopped" if event["reason"] else "")))
    if record.trials:
        failed = sum(trial.status == "failed" for trial in record.trials)
        figures.append((str(len(record.trials)), f"trials, {failed} failed" if failed else "trials"))
        figures.append((duration(max(trial.elapsed for trial in record.trials)), "searched"))
    return figures


__all__ = ["SECTIONS", "report_text", "write_report"]
