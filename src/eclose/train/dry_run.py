"""What a training will take, before it is begun: memory predicted from shapes, seconds measured on a few real steps."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from eclose.algebra.errors import EcloseError
from eclose.meanings.cost import Cost
from eclose.tasks import Task
from eclose.train.protocols import Protocol
from eclose.train.training import as_device, make_loop

STEPS = 5  # that are timed, after one that warms up
ROOM = 0.9  # of the memory that may be planned for


@dataclass(frozen=True)
class DryRun:
    """What a training will take.

    Attributes:
        predicted: bytes of values, weights, gradients and optimiser at the batch size, and of the data on a GPU.
        measured: bytes that the steps really took on a GPU, or None where they cannot be measured.
        available: bytes that the device has free.
        seconds: of one step.
        steps: of one epoch.
        epochs: of the training.
        batch_size: items a step.
        fits: whether it fits into the memory there is.
        advice: what would make it fit, or nothing.
    """

    predicted: int
    measured: int | None
    available: int
    seconds: float
    steps: int
    epochs: int
    batch_size: int
    fits: bool
    advice: str

    @property
    def total_seconds(self) -> float:
        """Seconds of the whole training."""
        return self.seconds * self.steps * self.epochs


def dry_run(
    model: torch.nn.Module, spent: Cost, task: Task, settings: Protocol, device: str | torch.device | None = None
) -> DryRun:
    """Predict a training and verify the prediction with a few steps; the model's weights are changed by them.

    Args:
        model: the network.
        spent: what it costs.
        task: what it learns.
        settings: the protocol.
        device: where; the GPU where there is one.
    """
    place = as_device(device)
    batch = -(-settings.batch_size // settings.accumulate)
    resident = task.part("train").resident()
    data = sum(t.numel() * t.element_size() for t in resident) if resident is not None and place.type == "cuda" else 0
    predicted = spent.memory(batch, training=True) + data
    available = available_bytes(place)
    fits = predicted <= ROOM * available
    if not fits:
        return DryRun(
            predicted, None, available, 0.0, 0, settings.epochs, settings.batch_size, False,
            _advice(spent, settings, data, available),
        )  # fmt: skip
    loop = make_loop(model, task, settings, device=place)
    if place.type == "cuda":
        torch.cuda.reset_peak_memory_stats(place)
    threads = torch.get_num_threads()
    times = []
    try:
        torch.set_num_threads(1)  # as trials are trained
        model.train()
        for _ in range(1 + STEPS):
            began = now(place)
            loop.take_step(loop.batches())
            times.append(now(place) - began)
    except torch.OutOfMemoryError as error:
        raise EcloseError(
            f"one step does not fit although {predicted / 2**20:,.0f} MiB were predicted; "
            f"{_advice(spent, settings, data, available // 2)}"
        ) from error
    finally:
        torch.set_num_threads(threads)
    seconds = statistics.median(times[1:])
    measured = int(torch.cuda.max_memory_allocated(place)) if place.type == "cuda" else None
    return DryRun(
        predicted, measured, available, seconds, loop.position.steps, settings.epochs, settings.batch_size, True, ""
    )


def available_bytes(device: torch.device) -> int:
    """Return the bytes that a device has free."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 2**62  # unknown here: the steps will show


def _advice(spent: Cost, settings: Protocol, data: int, available: int) -> str:
    fixed = data + spent.memory(0, training=True)
    room = int(ROOM * available) - fixed
    largest = room // max(1, spent.training_memory)
    if largest < 1:
        return f"the weights alone need {fixed / 2**20:,.0f} MiB; take a smaller network (fewer channels or cells)"
    pieces = -(-settings.batch_size // largest)
    return f"use batch_size={largest}, or accumulate={pieces} to keep batches of {settings.batch_size}"


def now(device: torch.device) -> float:
    """Return the time when a device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


__all__ = ["ROOM", "STEPS", "DryRun", "available_bytes", "dry_run", "now"]
