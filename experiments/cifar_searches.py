"""Gradient searches on CIFAR-10 with every selection on their checkpoints: NAS-Bench-201, and the spaces S2 and S4.

    python -m experiments.cifar_searches nasbench201 --out runs/nb201 --data DATA --workers 12 --device cuda
    python -m experiments.cifar_searches robust --out runs/robust --data DATA

Every job is a command of `eclose` in a process of its own, so a job that was interrupted goes on when the program is
started again, and one that is done is left alone. `python -m experiments.cifar_summary` writes what the folders hold to
`benchmarks/results/`.

The supernet of NAS-Bench-201 is reduced (C=8, N=1; the benchmark's own has C=16, N=5). Those of S2 and S4 have three
cells of 8 channels and see a subset of 3,000 images, half of it each for weights and alphas; what they find is trained
on the same subset, as eight cells of 16 channels. Batches have 64 images; everything else is as in the papers but for
the epochs that are stated. A magnitude selection needs no job: the log of a search has it for every epoch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SEEDS = (0, 1, 2)
EPOCHS = 50
SHORT = 25  # of drnas, and on S2 and S4
REDUCED = {"cells": 1, "channels": 8}
ROBUST = {"cells": 3, "channels": 8}
RETRAINED = 8  # epochs of the short retraining on S2 and S4
SUBSET = "cifar10:subset=3000"


@dataclass(frozen=True)
class Job:
    """One command.

    Attributes:
        name: of its log.
        arguments: of `eclose`.
        result: the file that is there when it is done.
        needs: files that must be there before it can begin.
    """

    name: str
    arguments: tuple[str, ...]
    result: str
    needs: tuple[str, ...] = ()


def settings(**values: object) -> list[str]:
    """Return settings as the command line takes them."""
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def search(name: str, space: str, strategy: str, seed: int, task: str = "cifar10", **values: object) -> Job:
    """Return a search without a final training; channels are innermost in memory, which is faster on a GPU."""
    given = {"retrain": 0, "channels_last": "true", "checkpoint_every": 10, **values}
    arguments = ("search", "--space", space, "--task", task, "--strategy", strategy, "--seed", str(seed),
                 "--out", f"{{out}}/{name}", *settings(**given))  # fmt: skip
    return Job(name, arguments, f"{name}/best.term")


def selection(run: str, by: str, epoch: int, **values: object) -> Job:
    """Return a selection on a checkpoint; it may begin while the search still goes on."""
    name = f"{by}-epoch-{epoch:04d}"
    arguments = ("select", f"{{out}}/{run}", "--by", by, "--epoch", str(epoch), "--name", name, *settings(**values),
                 "--out", f"{{out}}/{run}-{name}.term")  # fmt: skip
    return Job(
        f"{run}-{name}", arguments, f"{run}/selections/{name}.json", (f"{run}/checkpoints/epoch-{epoch:04d}.pt",)
    )


def retraining(run: str, by: str, file: str) -> Job:
    """Return the short training of what a selection found."""
    name = f"{run}-{by}-retrained"
    given = settings(epochs=RETRAINED, channels_last="true")
    arguments = ("evaluate", f"{{out}}/{file}", "--task", SUBSET, "--space", run[:2], "--size", "small",
                 "--protocol", "darts-cifar", *given, "--out", f"{{out}}/{name}.json")  # fmt: skip
    return Job(name, arguments, f"{name}.json", (file,))


def nasbench201() -> list[Job]:
    """Return the searches of NAS-Bench-201 in the order in which they are begun."""
    found = []
    for seed in SEEDS:
        found.append(search(f"reduced-darts-{seed}", "nasbench201", "darts", seed, epochs=EPOCHS, hessian_every=5,
                            **REDUCED))  # fmt: skip
        found.append(search(f"reduced-drnas-{seed}", "nasbench201", "drnas", seed, epochs=SHORT, hessian_every=5,
                            **REDUCED))  # fmt: skip
    found.append(
        search("reduced-sdarts-rs-0", "nasbench201", "sdarts-rs", 0, epochs=EPOCHS, hessian_every=5, **REDUCED)
    )
    found.append(search("reduced-fixed-0", "nasbench201", "darts", 0, epochs=EPOCHS, step="none", **REDUCED))
    for epoch in (50, 10, 30):
        for run in ("darts-0", "fixed-0", "darts-1", "darts-2"):
            found.append(selection(f"reduced-{run}", "perturbation", epoch, interval=1, batches=10))
    return found


def robust() -> list[Job]:
    """Return the searches of S2 and S4, the three selections of each, and the trainings of what they found."""
    found = []
    for space in ("s2", "s4"):
        found.append(search(f"{space}-darts", space, "darts", 0, task=SUBSET, epochs=SHORT, **ROBUST))
        found.append(search(f"{space}-fixed", space, "darts", 0, task=SUBSET, epochs=SHORT, step="none", **ROBUST))
    for space in ("s2", "s4"):
        found.append(selection(f"{space}-darts", "perturbation", SHORT, interval=1))
        found.append(selection(f"{space}-fixed", "perturbation", SHORT, interval=1))
    for space in ("s2", "s4"):
        found.append(retraining(f"{space}-darts", "magnitude", f"{space}-darts/best.term"))
        for run in ("darts", "fixed"):
            file = f"{space}-{run}-perturbation-epoch-{SHORT:04d}.term"
            found.append(retraining(f"{space}-{run}", "perturbation", file))
    return found


LISTS = {"nasbench201": nasbench201, "robust": robust}


def run(what: str, out: Path, data: str | None, device: str | None, workers: int, seconds: float, only: str) -> None:
    """Run what is not done, some jobs at a time, for at most so many seconds."""
    out.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in LISTS[what]() if only in job.name and not (out / job.result).exists()]
    running: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}
    failed: dict[str, int] = {}
    began = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    while (waiting or running) and time.monotonic() - began < seconds:
        for name, (_, process) in list(running.items()):
            if process.poll() is not None:
                del running[name]
                print(f"{time.monotonic() - began:6.0f} s  {name}: status {process.returncode}", flush=True)
                if process.returncode:
                    failed[name] = process.returncode
        for job in list(waiting):
            if len(running) >= workers:
                break
            if any(not (out / file).exists() for file in job.needs):
                continue
            waiting.remove(job)
            arguments = [argument.replace("{out}", str(out)) for argument in job.arguments]
            if job.arguments[0] == "search" and (out / job.name / "events.jsonl").exists():
                arguments = ["resume", str(out / job.name)]
            elif device is not None and job.arguments[0] != "resume":
                arguments += ["--device", device]
            if data is not None and job.arguments[0] in ("search", "evaluate") and arguments[0] != "resume":
                arguments += ["--data", data]
            with (out / f"{job.name}.log").open("ab") as log:
                command = [sys.executable, "-m", "eclose", *arguments]
                running[job.name] = (job, subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        time.sleep(0.5)
    for _, process in running.values():
        process.terminate()
    print(f"{len(waiting)} waiting, {len(running)} stopped, failed: {failed or 'none'}", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=LISTS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", help="the folder of the data sets")
    parser.add_argument("--device")
    parser.add_argument("--workers", type=int, default=1, help="jobs at a time")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop what runs after so long")
    parser.add_argument("--only", default="", help="jobs with this in their name")
    parser.add_argument("--list", action="store_true", help="print the jobs and stop")
    given = parser.parse_args()
    if given.list:
        for job in LISTS[given.what]():
            print(json.dumps(job.__dict__))
        return
    run(given.what, given.out, given.data, given.device, given.workers, given.seconds, given.only)


if __name__ == "__main__":
    main()
