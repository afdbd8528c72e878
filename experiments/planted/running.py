"""Jobs of a study, done in processes of their own and kept as one line of JSON each.

A job is plain data and its outcome a function of it, so neither the number of workers nor an interruption changes what
comes out. A job whose line is there is not done again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.planted.rows import Row

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """One search, or one training of a given network.

    Attributes:
        study: the construction.
        row: its name in the table.
        seed: of the data, the search and the training that judges.
        judge: the settings of that training.
        strategy: that searches; nothing where `chosen` is trained.
        settings: of the strategy.
        reverse: whether the alternatives stand in reversed order.
        chosen: the alternatives of the network that is trained without any search.
    """

    study: str
    row: str
    seed: int
    judge: dict[str, Any]
    strategy: str = ""
    settings: dict[str, Any] | None = None
    reverse: bool = False
    chosen: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """What tells a job from all others: everything it depends on."""
        return json.dumps(asdict(self), sort_keys=True)


def search_jobs(study: str, rows: Iterable[Row], seeds: int, judge: dict[str, Any]) -> list[Job]:
    """Return the searches of a study, seed by seed."""
    found = list(rows)
    return [
        Job(study, row.name, seed, judge, row.strategy, row.settings, row.reverse)
        for seed in range(seeds)
        for row in found
    ]


def done(job: Job) -> dict[str, Any]:
    """Return what a job gave: the alternatives chosen, how many count, and the accuracy after a short training."""
    from experiments.planted.constructions import STUDIES

    import eclose as ec

    began = time.process_time()
    construction = STUDIES[job.study]
    task = construction.task(job.seed)
    outcome: dict[str, Any] = {}
    chosen = job.chosen
    if job.strategy:
        found = ec.search(construction.space(reverse=job.reverse), task, job.strategy, seed=job.seed, retrain=0,
                          device="cpu", **(job.settings or {}))  # fmt: skip
        chosen = construction.chosen(found.best.term)
        outcome["search_score"] = round(found.best.score, 3)
        outcome["search_seconds"] = round(time.process_time() - began, 2)
    judged = ec.evaluate(construction.term(chosen), task, "quick", seed=job.seed, device="cpu", **job.judge)
    return {
        "key": job.key, "row": job.row, "seed": job.seed, "chosen": list(chosen), "count": construction.count(chosen),
        "accuracy": round(judged["score"], 3), **outcome, "seconds": round(time.process_time() - began, 2),
    }  # fmt: skip


def kept(file: Path) -> dict[str, dict[str, Any]]:
    """Return the outcomes that a file holds, by their jobs; a last line that was cut off does not count."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            outcome = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "key" in outcome:
            found[outcome["key"]] = outcome
    return found


def machines(file: Path) -> list[dict[str, Any]]:
    """Return the machines that the outcomes in a file come from."""
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.startswith('{"machine"')]
    return [line["machine"] for number, line in enumerate(lines) if line not in lines[:number]]


def run(jobs: list[Job], file: Path, workers: int, machine: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Do the jobs that are not done yet, and give each outcome as it comes."""
    there = kept(file)
    left = [job for job in jobs if job.key not in there]
    if not left:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    torn = file.exists() and not file.read_text().endswith("\n")
    with file.open("a") as stream:
        stream.write(("\n" if torn else "") + json.dumps({"machine": machine}) + "\n")
        stream.flush()
        context = multiprocessing.get_context("spawn")
        with _threads_of_children(1), context.Pool(min(workers, len(left))) as pool:
            for outcome in pool.imap_unordered(done, left):
                stream.write(json.dumps(outcome) + "\n")
                stream.flush()
                yield outcome


@contextmanager
def _threads_of_children(count: int) -> Iterator[None]:
    """Let processes that are started in here compute with so many threads; they read it when they load torch."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(count)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


__all__ = ["Job", "done", "kept", "machines", "run", "search_jobs"]
