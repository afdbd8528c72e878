"""Simulated searches of NAS-Bench-201: the means of random search, evolution and REINFORCE against published ones."""

import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks._measure import record

import eclose as ec
from eclose.strategies import make
from eclose.study.in_memory import run_in_memory
from eclose.study.results import Objective, best_trial
from eclose.tabular import TabularTask, tabular_task

BUDGETS = {"cifar10": 20_000, "cifar100": 40_000, "imagenet16-120": 120_000}  # seconds of simulated training
TOLERANCES = {"cifar10": 0.1, "cifar100": 0.3, "imagenet16-120": 0.3}
RUNS = {"random": 300, "evolution": 300, "reinforce": 100}
SETTINGS: dict[str, dict[str, Any]] = {"evolution": {"population": 10, "tournament": 3, "mutation": "decision"}}
PUBLISHED = {  # (validation, test) at 200 epochs
    ("cifar10", "random"): (91.09, 93.87),
    ("cifar10", "evolution"): (91.32, 94.08),
    ("cifar10", "reinforce"): (91.08, 93.88),
    ("cifar100", "random"): (71.41, 71.55),
    ("cifar100", "evolution"): (72.46, 72.40),
    ("cifar100", "reinforce"): (71.79, 71.88),
    ("imagenet16-120", "random"): (45.08, 45.30),
    ("imagenet16-120", "evolution"): (45.76, 45.88),
    ("imagenet16-120", "reinforce"): (45.40, 45.65),
}


def outcome(task: TabularTask, strategy: str, seed: int) -> dict[str, float]:
    """Return what the best term of one search, by 12 epochs of training, scores after 200."""
    settings = dict(SETTINGS.get(strategy, {}))
    if strategy == "reinforce":
        settings["seed"] = seed
    objective = Objective()
    evaluate = task.evaluator()
    searcher = make(strategy, ec.space(task.space), objective, **settings)
    trials = run_in_memory(searcher, evaluate, f"{BUDGETS[task.data_set]}s", seed)
    best = best_trial(trials, objective)
    assert best is not None
    return task.final(best.term) | {"trials": len(trials)}


def run(out: Path | None = None) -> None:
    """Search, print, record."""
    began = time.perf_counter()
    figures: dict[str, Any] = {}
    for name in BUDGETS:
        task = tabular_task(f"{name}@12->200")
        for strategy, runs in RUNS.items():
            started = time.perf_counter()
            found = [outcome(task, strategy, seed) for seed in range(runs)]
            means = {part: statistics.fmean(each[part] for each in found) for part in ("validation", "test")}
            deviations = {part: statistics.stdev(each[part] for each in found) for part in means}
            published = dict(zip(means, PUBLISHED[name, strategy], strict=True))
            within = all(abs(means[part] - published[part]) <= TOLERANCES[name] for part in means)
            seconds = time.perf_counter() - started
            print(
                f"{name:15s} {strategy:10s} {runs} runs: "
                + ", ".join(f"{part} {means[part]:.2f} +- {deviations[part]:.2f} ({published[part]})" for part in means)
                + f"; {seconds:.1f} s{'' if within else '; OUTSIDE'}",
                flush=True,
            )
            figures[f"{name} {strategy}"] = {
                "runs": runs,
                "trials_mean": statistics.fmean(each["trials"] for each in found),
                "mean": means,
                "deviation": deviations,
                "published": published,
                "tolerance": TOLERANCES[name],
                "within": within,
                "seconds": seconds,
            }
    total = time.perf_counter() - began
    print(f"{sum(RUNS.values()) * len(BUDGETS):,} searches in {total:.1f} s; goal below 60 s")
    record(out, {"seconds": total, "studies": figures})
