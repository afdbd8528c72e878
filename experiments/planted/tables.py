"""From outcomes to tables: a study's rows with intervals, and their place in the documentation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.planted.constructions import STUDIES
from experiments.planted.running import Job, kept, machines

from eclose.study.statistics import paired, summary

REVERSED = ", reversed"


def summarised(study: str, jobs: Sequence[Job], trainings: Sequence[Job], files: tuple[Path, Path]) -> dict[str, Any]:
    """Return the figures of a study from the outcomes there are.

    Args:
        study: its name.
        jobs: the searches that belong to it.
        trainings: those of given networks.
        files: where the outcomes of both are.
    """
    searched = _grouped(jobs, files[0])
    trained = _grouped(trainings, files[1])
    edges = len(STUDIES[study].edges)
    return {
        "study": study,
        "edges": edges,
        "rows": [{"row": name, **_row(found, edges)} for name, found in searched.items()],
        "order": [_order(name, searched) for name in searched if name.endswith(REVERSED)],
        "networks": [{"row": name, **_row(found, edges)} for name, found in trained.items()],
        "machines": machines(files[0]) if files[0].exists() else [],
        "searches": {name: [_plain(outcome) for outcome in found] for name, found in searched.items()},
    }


def _plain(outcome: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in outcome.items() if key not in ("key", "row")}


def _grouped(jobs: Sequence[Job], file: Path) -> dict[str, list[dict[str, Any]]]:
    outcomes = kept(file)
    found: dict[str, list[dict[str, Any]]] = {}
    for job in sorted(jobs, key=lambda job: job.seed):
        if job.key in outcomes:
            found.setdefault(job.row, []).append(outcomes[job.key])
    return {row: found[row] for row in dict.fromkeys(job.row for job in jobs) if row in found}


def _row(outcomes: Sequence[Mapping[str, Any]], edges: int) -> dict[str, Any]:
    counts, accuracies = (summary([outcome[key] for outcome in outcomes]) for key in ("count", "accuracy"))
    return {
        "seeds": counts.count,
        "mean": counts.mean, "interval": counts.interval,
        "full": sum(outcome["count"] == edges for outcome in outcomes),
        "accuracy": accuracies.mean, "accuracy_interval": accuracies.interval,
        "cpu_seconds": sum(outcome["seconds"] for outcome in outcomes) / len(outcomes),
    }  # fmt: skip


def _order(name: str, searched: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Compare a row in reversed order with the same row in the order as written, seed by seed."""
    plain = {outcome["seed"]: outcome for outcome in searched.get(name.removesuffix(REVERSED), ())}
    pairs = [(plain[outcome["seed"]], outcome) for outcome in searched[name] if outcome["seed"] in plain]
    found: dict[str, Any] = {"row": name.removesuffix(REVERSED), "pairs": len(pairs)}
    for key in ("count", "accuracy"):
        compared = paired([second[key] for _, second in pairs], [first[key] for first, _ in pairs])
        found[key] = {"difference": compared.summary.mean, "interval": compared.summary.interval, "p": compared.p}
    return found


# As text


def text(figures: Mapping[str, Any]) -> str:
    """Return the tables of a study in Markdown."""
    edges, truth = figures["edges"], figures["study"] == "truth"
    counted = f"right edges of {edges}" if truth else f"skips of {edges}"
    full = "all right" if truth else "all skip"
    lines = [f"| strategy | {counted} | 95 % interval | {full} | accuracy | 95 % interval | CPU s |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    lines += [
        f"| {row['row']} | {row['mean']:.2f} | {_interval(row['interval'])} | {row['full']}/{row['seeds']} "
        f"| {row['accuracy']:.1f} | {_interval(row['accuracy_interval'], 1)} | {row['cpu_seconds']:.1f} |"
        for row in figures["rows"]
    ]
    if figures["order"]:
        lines += ["", f"| order reversed | seeds | difference in {counted} | 95 % interval | p | in accuracy "
                  "| 95 % interval | p |", "|---|---|---|---|---|---|---|---|"]  # fmt: skip
        lines += [
            f"| {row['row']} | {row['pairs']} | "
            + " | ".join(
                f"{row[key]['difference']:+.2f} | {_interval(row[key]['interval'])} | {_number(row[key]['p'])}"
                for key in ("count", "accuracy")
            )
            + " |"
            for row in figures["order"]
        ]
    if figures["networks"]:
        lines += ["", f"| network trained | seeds | {counted} | accuracy | 95 % interval |", "|---|---|---|---|---|"]
        lines += [
            f"| {row['row']} | {row['seeds']} | {row['mean']:.0f} | {row['accuracy']:.1f} "
            f"| {_interval(row['accuracy_interval'], 1)} |"
            for row in figures["networks"]
        ]
    commits: dict[str, list[str]] = {}
    for machine in figures["machines"]:
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
        where = f"{machine['processor']}, one core a search, python {machine['python']}, {versions}"
        commits.setdefault(where, []).append(str(machine["commit"]))
    for where, found in commits.items():
        lines += ["", f"Measured on {where}, commit {', '.join(dict.fromkeys(found))}."]
    return "\n".join(lines)


def _interval(interval: Sequence[float] | None, digits: int = 2) -> str:
    return "-" if interval is None else f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def place(page: Path, study: str, table: str) -> None:
    """Put a study's tables between its two marks on a page."""
    begin, end = f"<!-- {study}: begin -->", f"<!-- {study}: end -->"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{table}\n\n{end}{after}")


def write(file: Path, figures: Mapping[str, Any]) -> None:
    """Write the figures."""
    file.write_text(json.dumps(figures, indent=1) + "\n")


__all__ = ["place", "summarised", "text", "write"]
