"""Gradient searches on CIFAR-10: NAS-Bench-201 and the spaces S2 and S4, with every selection on every checkpoint.

    python -m experiments.cifar_searches --out runs/cifar --data DATA --workers 12 --device cuda

Every job is a command of `eclose` in a process of its own, so a job that was interrupted goes on when the program is
started again, and one that is done is left alone. `python -m experiments.cifar_searches --out runs/cifar summary` writes
`benchmarks/results/cifar-searches.json` from what the folders hold.

The supernet of NAS-Bench-201 is reduced (C=8, N=1; the benchmark's own has C=16, N=5), those of S2 and S4 have three
cells of 8 channels. All searches use batches of 64, halves of the 50,000 training images, and the settings of the papers
but for the epochs that are stated. A magnitude selection needs no job: the log of a search has it for every epoch.
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
ADVERSARIAL = 30  # of sdarts-adv, whose epochs take four times as long
TUNED = (10, 30, 50)  # those from which a selection by perturbation is tuned
STRATEGIES = ("darts", "drnas", "sdarts-rs")
REDUCED = {"cells": 1, "channels": 8}
ROBUST = {"cells": 3, "channels": 8}
RETRAINED = 10  # epochs of the short retraining on S2 and S4


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


def search(name: str, space: str, strategy: str, seed: int, **values: object) -> Job:
    """Return a search without a final training; channels are innermost in memory, which is faster on a GPU."""
    given = {"retrain": 0, "channels_last": "true", "checkpoint_every": 10, **values}
    arguments = ("search", "--space", space, "--task", "cifar10", "--strategy", strategy, "--seed", str(seed),
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


def diagnosis(run: str, what: str, *options: str) -> Job:
    """Return a diagnosis of a finished search."""
    return Job(f"{run}-{what}", ("diagnose", f"{{out}}/{run}", "--what", what, *options), f"{run}/diagnosis/{what}.json",
               (f"{run}/best.term",))  # fmt: skip


def retraining(run: str, by: str, file: str) -> Job:
    """Return the short training of what a selection found."""
    name = f"{run}-{by}-retrained"
    arguments = (
        "evaluate",
        f"{{out}}/{file}",
        "--task",
        "cifar10",
        "--space",
        run[:2],
        "--size",
        "small",
        "--protocol",
        "darts-cifar",
        *settings(epochs=RETRAINED, channels_last="true"),
        "--out",
        f"{{out}}/{name}.json",
    )
    return Job(name, arguments, f"{name}.json", (file,))


def jobs() -> list[Job]:
    """Return everything, in the order in which it is begun."""
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


def run(out: Path, data: str | None, device: str | None, workers: int, seconds: float, only: str) -> None:
    """Run what is not done, some jobs at a time, for at most so many seconds."""
    out.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs() if only in job.name and not (out / job.result).exists()]
    running: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}
    failed: dict[str, int] = {}
    began = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    while (waiting or running) and time.monotonic() - began < seconds:
        for name, (job, process) in list(running.items()):
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
    parser.add_argument("what", nargs="?", default="run", choices=("run", "summary", "list"))
    parser.add_argument("--out", type=Path, default=Path("runs/cifar"))
    parser.add_argument("--data")
    parser.add_argument("--device")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if given.what == "run":
        run(given.out, given.data, given.device, given.workers, given.seconds, given.only)
    elif given.what == "list":
        for job in jobs():
            print(json.dumps(job.__dict__))
    else:
        from experiments.cifar_summary import summarise

        summarise(given.out)


if __name__ == "__main__":
    main()
