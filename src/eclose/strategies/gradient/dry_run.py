"""What a gradient search will take, before it is begun: memory predicted from shapes, seconds of a few real steps.

The steps are those of the search's own loop, so every mixture, order and perturbation takes the time it will take.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import torch

from eclose.algebra.errors import EcloseError
from eclose.meanings.cost import Cost, program_cost
from eclose.strategies.gradient.search import GradientSearch, Made
from eclose.train.capture import WARM_STEPS
from eclose.train.dry_run import ROOM, STEPS, DryRun, available_bytes, now
from eclose.train.schedules import Position

LIBRARIES = 64 * 2**20  # bytes of workspaces that the libraries of a GPU take
MEBI = 2**20


@dataclass(frozen=True)
class SearchDryRun(DryRun):
    """What a gradient search will take.

    Attributes:
        parameters: of the supernet, without its alphas.
        stages: of the search; what is said is that of the one that needs most memory.
    """

    parameters: int = 0
    stages: int = 1


def dry_run(search: GradientSearch) -> SearchDryRun:
    """Predict a search and verify the prediction with a few steps; nothing of it is kept.

    Args:
        search: without a run's folder; it is not to be searched with afterwards.
    """
    if search.device.type == "cuda":
        torch.cuda.empty_cache()  # what is held for reuse is free
    available = available_bytes(search.device)
    costs = [supernet_cost(search.made(number)) for number in range(len(search.stages))]
    number = max(range(len(costs)), key=lambda index: costs[index].training_memory)
    spent, recipe, place = costs[number], search.recipe, search.device
    data = resident_bytes(search)
    fixed = data + (LIBRARIES if place.type == "cuda" else 0)
    predicted = spent.memory(recipe.batch_size, training=True) + fixed
    shared = {"epochs": recipe.epochs, "batch_size": recipe.batch_size, "parameters": spent.parameters,
              "stages": len(search.stages)}  # fmt: skip
    if predicted > ROOM * available:
        return SearchDryRun(
            predicted=predicted, measured=None, available=available, seconds=0.0, steps=0, fits=False,
            advice=advice(search, spent, fixed, available), **shared,
        )  # fmt: skip
    if place.type == "cuda":
        torch.cuda.reset_peak_memory_stats(place)
    try:
        seconds, steps = timed(search, number)
    except torch.OutOfMemoryError as error:
        raise EcloseError(
            f"one step does not fit although {predicted / MEBI:,.0f} MiB were predicted; "
            f"{advice(search, spent, fixed, available // 2)}"
        ) from error
    measured = int(torch.cuda.max_memory_allocated(place)) if place.type == "cuda" else None
    return SearchDryRun(
        predicted=predicted, measured=measured, available=available, seconds=seconds, steps=steps, fits=True,
        advice="", **shared,
    )  # fmt: skip


def supernet_cost(made: Made) -> Cost:
    """Return what a stage's supernet costs; decisions without alphas are plain sums, which keep less."""
    unweighted = [name for name, site in made.supernet.sites.items() if not site.weighted]
    return program_cost(made.supernet.net.program, unweighted=unweighted)


def resident_bytes(search: GradientSearch) -> int:
    """Return the bytes of the data that lie on a GPU; elsewhere they are in memory already."""
    if search.device.type != "cuda":
        return 0
    held = {
        tensor.data_ptr(): tensor.numel() * tensor.element_size()
        for feed in search.feeds().values()
        for tensor in vars(feed).values()
        if isinstance(tensor, torch.Tensor)
    }
    return sum(held.values())


def timed(search: GradientSearch, number: int) -> tuple[float, int]:
    """Return the seconds of a step of a stage, the median of a few, and the steps of its epochs.

    The steps are those of the stage's last epoch, when nothing rests any more.
    """
    made = search.made(number)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
    loop = search.loop(made, number)
    steps, times = loop.position.steps, []
    warm = WARM_STEPS + 2 if search.device.type == "cuda" else 1  # of which one may be the capture of a graph
    with torch.random.fork_rng(devices=[search.device] if search.device.type == "cuda" else []):
        torch.manual_seed(0)
        for step in range(warm + STEPS):
            loop.position = Position(made.stage.end - 1, step % steps, loop.epochs, steps)
            if not loop.position.step:
                loop.model.train()
                for callback in loop.callbacks:
                    callback.before_epoch(loop)
            began = now(search.device)
            loop.advance()
            times.append(now(search.device) - began)
    return statistics.median(times[warm:]), steps


def advice(search: GradientSearch, spent: Cost, fixed: int, available: int) -> str:
    """Return what would make a search fit."""
    recipe = search.recipe
    known = search.space.options.keys() | search.space.supernet_options.keys()
    smaller = [f"fewer {key}=" for key in ("channels", "cells") if key in known]
    if recipe.partial == 1 and not recipe.stages:
        smaller.append("partial=4 (a quarter of the channels goes through the mixture)")
    room = int(ROOM * available) - fixed - spent.memory(0, training=True)
    largest = room // max(1, spent.training_memory)
    if largest < 1:
        need = (fixed + spent.memory(0, training=True)) / MEBI
        return f"weights and data alone need {need:,.0f} MiB; take {' or '.join(smaller) or 'a smaller space'}"
    return " or ".join([f"use batch_size={largest}", *smaller])


__all__ = ["LIBRARIES", "SearchDryRun", "advice", "dry_run", "resident_bytes", "supernet_cost", "timed"]
