"""Supernets: what computing repeated values once saves, what capture saves, how good the prediction of memory is.

The network computes values that are equal by construction once (`meanings/program/repetition.py`); the benchmark takes
that away for its baseline. Both give the same numbers, which is checked first. Images are random.
"""

import gc
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from benchmarks._measure import ratio, record

import eclose as ec
from eclose.meanings.cost import program_cost
from eclose.strategies import STRATEGIES
from eclose.strategies.gradient.named import recipe_of
from eclose.strategies.gradient.search import GradientSearch
from eclose.train.loop import Loop
from eclose.train.schedules import Position

SMALL: dict[str, dict[str, Any]] = {
    "nasbench201": {"cells": 1, "channels": 8, "batch_size": 16},
    "darts": {"cells": 3, "channels": 4, "batch_size": 16},
}
LARGE: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("nasbench201", "darts", {}),
    ("nasbench201", "darts", {"batch_size": 256}),
    ("nasbench201", "darts", {"cells": 1, "channels": 8}),
    ("darts", "darts", {}),
    ("darts", "pc-darts", {"frozen": 0}),
    ("s2", "darts", {"cells": 6, "channels": 8}),
)
WORKSPACE = 64 * 2**20  # that CUDA's libraries take whatever the network is
STEPS = 10


def task(count: int) -> Any:
    """Return random images with labels."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (count, 3, 32, 32), generator=generator, dtype=torch.uint8)
    return ec.Task(train=(images, torch.arange(count) % 10), classes=10, augmentable="image", normalise="train")


def loop_of(space: str, strategy: str, count: int, device: str, **settings: Any) -> tuple[Loop, Any]:
    """Return the loop of a search and what it trains."""
    recipe = recipe_of(STRATEGIES.get(strategy), space, settings)
    search = GradientSearch(ec.space(space), task(count), recipe, device=device)
    made = search.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
    loop = search.loop(made, 0)
    loop.model.train()
    for callback in loop.callbacks:
        callback.before_epoch(loop)
    return loop, made


def take(loop: Loop, number: int) -> None:
    """Take a step of a loop, captured where it can be."""
    loop.position = Position(0, number % loop.feeds["train"].steps, loop.epochs, loop.feeds["train"].steps)
    for group in loop.groups.values():
        group.prepare(loop.position)
    if loop._captured is not None:
        loop._captured()
    else:
        loop.take_step(loop.batches())


def sharing(space: str) -> dict[str, float]:
    """Return how much longer a step takes when repeated values are computed again."""
    loop, made = loop_of(space, "darts", 64, "cpu", **SMALL[space])
    net = made.supernet.net
    batch = loop.feeds["train"].batch(0, 0)
    shared, own = (net._same, net._plans), ({}, None)
    outputs = []
    for same in (shared[0], own[0]):
        net._same = same
        outputs.append(net.eval()(batch.inputs))
    net.train()
    if not torch.equal(*outputs):
        raise SystemExit(f"{space}: the two ways to compute differ")

    def step(same: Any) -> None:
        net._same = same
        take(loop, 0)

    step(shared[0])
    found, baseline, seconds = ratio(lambda: step({}), lambda: step(shared[0]), repeats=9)
    net._same = shared[0]
    return {"repeated_over_once": found, "repeated": baseline, "once": seconds}


def measured(space: str, strategy: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return memory and time of a supernet's steps on a GPU."""
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    found: dict[str, Any] = {"space": space, "strategy": strategy, **settings}
    for capture in ("off", "on"):
        torch.cuda.reset_peak_memory_stats()
        loop, made = loop_of(space, strategy, 6_400, "cuda", capture=capture, channels_last=True, **settings)
        unweighted = [name for name, site in made.supernet.sites.items() if not site.weighted]
        spent = program_cost(made.supernet.net.program, unweighted=unweighted)
        feeds = sum(t.numel() * t.element_size() for f in loop.feeds.values() for t in (f.inputs, f.targets))
        size = loop.feeds["train"].batch_size
        for number in range(8):
            take(loop, number)
        times = []
        for number in range(STEPS):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            take(loop, number)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        found["eager_ms" if capture == "off" else "captured_ms"] = 1e3 * statistics.median(times)
        found["peak_mib"] = (torch.cuda.max_memory_allocated() - before) / 2**20
        found["predicted_mib"] = (spent.memory(size, training=True) + feeds + WORKSPACE) / 2**20
        del loop, made
        gc.collect()
    found["predicted_over_measured"] = found["predicted_mib"] / found["peak_mib"]
    found["eager_over_captured"] = found["eager_ms"] / found["captured_ms"]
    return found


def run(out: Path | None) -> None:
    """Print the ratios, and write them where asked."""
    figures: dict[str, Any] = {"sharing": {}}
    for space in SMALL:
        figures["sharing"][space] = found = sharing(space)
        longer = found["repeated_over_once"]
        print(f"{space}: a step takes {longer:.2f} x as long where repeated values are computed again")
    if torch.cuda.is_available():
        figures["gpu"] = torch.cuda.get_device_name()
        figures["cuda"] = []
        for space, strategy, settings in LARGE:
            found = measured(space, strategy, settings)
            figures["cuda"].append(found)
            memory = f"{found['predicted_mib']:.0f} MiB predicted, {found['peak_mib']:.0f} measured"
            faster = f"eager over captured {found['eager_over_captured']:.1f}"
            print(f"{strategy} on {space} {settings}: {memory} ({found['predicted_over_measured']:.3f}); {faster}")
    record(out, figures)


__all__ = ["run"]
