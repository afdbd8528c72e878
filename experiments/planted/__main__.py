"""Planted studies of the gradient searches: what they find where it is known what they should find.

    python -m experiments.planted truth --workers 2    # or trap, or all; goes on where it was interrupted
    python -m experiments.planted networks             # trains given networks: that the construction is what it says
    python -m experiments.planted table                # writes the tables again, also into docs/planted-studies.md

Outcomes are lines of `experiments/results/planted-truth.jsonl` and so on, figures are in `planted-truth.json`.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from benchmarks._measure import machine
from experiments.planted.constructions import CONVOLUTION, SKIP, STUDIES, Construction
from experiments.planted.rows import Row, judge, rows
from experiments.planted.running import Job, run, search_jobs
from experiments.planted.tables import place, summarised, text, write

RESULTS = Path(__file__).parents[1] / "results"
PAGE = Path(__file__).parents[2] / "docs" / "planted-studies.md"
SEEDS = 10
TRAINING_SEEDS = 5
DRAWN = 40  # networks of the planted truth's 3,125 that are trained


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m experiments.planted", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=[*STUDIES, "all", "networks", "table"])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--strategies", nargs="*", help="names of rows; all without")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--quick", action="store_true", help="two epochs of everything: only to see that it runs")
    options = parser.parse_args()
    began = time.time()
    for study in STUDIES if options.what in ("all", "networks", "table") else (options.what,):
        mark = "-quick" if options.quick else ""
        files = RESULTS / f"planted-{study}{mark}.jsonl", RESULTS / f"planted-{study}{mark}-networks.jsonl"
        judged = judge(options.quick)
        trainings = training_jobs(STUDIES[study], 1 if options.quick else TRAINING_SEEDS, options.quick)
        asked: list[tuple[list[Job], Path]] = []
        if options.what != "table":
            asked.append((trainings, files[1]))
        if options.what not in ("table", "networks"):
            wanted = offered(study, options.strategies, options.quick)
            asked.append((search_jobs(study, wanted, options.seeds, judged), files[0]))
        for todo, file in asked:
            for outcome in run(todo, file, options.workers, machine()):
                print(f"{time.time() - began:7.1f} s  {study}  {outcome['row']}, seed {outcome['seed']}: "
                      f"{outcome['count']} {outcome['chosen']} {outcome['accuracy']:.1f}", flush=True)  # fmt: skip
        every = search_jobs(study, offered(study, None, options.quick), options.seeds, judged)
        figures = summarised(study, every, trainings, files)
        if not figures["rows"] and not figures["networks"]:
            continue
        write(RESULTS / f"planted-{study}{mark}.json", figures)
        print(f"\n{study}\n\n{text(figures)}\n")
        if options.what == "table" and not options.quick:
            place(PAGE, study, text(figures))


def offered(study: str, names: list[str] | None, quick: bool) -> list[Row]:
    """Return the rows of a study that are asked for."""
    every = rows(study, len(STUDIES[study].edges[0]), quick=quick)
    known = [row.name for row in every]
    for name in names or ():
        if name not in known:
            raise SystemExit(f"no row {name!r}; rows: {', '.join(known)}")
    return [row for row in every if not names or row.name in names]


def training_jobs(construction: Construction, seeds: int, quick: bool) -> list[Job]:
    """Return trainings of given networks, by which a construction shows what it is.

    Of the trap one for each number of convolutions; of the planted truth the right one, all that differ from it on
    one edge, and some that are drawn.
    """
    named = networks(construction)
    return [
        Job(construction.name, name, seed, judge(quick), chosen=chosen)
        for name, found in named.items()
        for number, chosen in enumerate(found)
        for seed in (range(seeds) if len(found) == 1 else [number % seeds])
    ]


def networks(construction: Construction) -> dict[str, list[tuple[int, ...]]]:
    """Return the networks that are trained, by the row they belong to."""
    if construction.right is None:  # a chain, in which skip connections may stand anywhere: it is the same network
        edges = len(construction.edges)
        return {
            f"{edges - skips} convolutions": [tuple(edge.index(SKIP if k < skips else CONVOLUTION)
                                                    for k, edge in enumerate(construction.edges))]
            for skips in range(edges, -1, -1)
        }  # fmt: skip
    truth = construction.truth
    found = {"the right one": [truth]}
    for edge, alternatives in enumerate(construction.edges):
        for index, name in enumerate(alternatives):
            if index != truth[edge]:
                found[f"edge {edge + 1} is `{name}`"] = [(*truth[:edge], index, *truth[edge + 1 :])]
    drawn = random.Random(0)
    for _ in range(DRAWN):
        chosen = tuple(drawn.randrange(len(edge)) for edge in construction.edges)
        found.setdefault(f"drawn, {construction.count(chosen)} right", []).append(chosen)
    return dict(sorted(found.items(), key=lambda item: item[0] if item[0].startswith("drawn") else ""))


if __name__ == "__main__":
    main()
