"""A network trained on a task by a protocol, and measured: what every evaluation comes down to."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from eclose.algebra.errors import RequestError
from eclose.operations.groups import weights
from eclose.runs.files import write_bytes
from eclose.tasks import Task
from eclose.tasks.parts import Part
from eclose.train.augment import Augmentation, Crop, Cutout, Flip, PolicyList, policy
from eclose.train.callbacks import Callback, DropPath
from eclose.train.data import Batch, DatasetFeed, Feed, LoaderFeed, Preparation, ResidentFeed
from eclose.train.groups import Group
from eclose.train.loop import Checkpoints, Loop, TrainingError
from eclose.train.meters import Meter
from eclose.train.precision import resolve_precision
from eclose.train.protocols import Protocol, protocol
from eclose.train.schedules import Linear
from eclose.train.steps import TaskObjective, single_level

LARGEST_RESIDENT = 0.5  # of a GPU's free memory that data may take
MEASURED_BATCH = 500


@dataclass(frozen=True)
class Trained:
    """What a training gave.

    Attributes:
        score: of the measured part, by the task's metric.
        figures: of the last epoch and the measured part: `train_loss`, `valid_score`, ...
        seconds: that the training took in this process.
        notes: what was asked for and is not done, and why.
    """

    score: float
    figures: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


def as_device(asked: str | torch.device | None) -> torch.device:
    """Return a device: the one asked for, or the GPU where there is one."""
    if asked is None or asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise RequestError(f"unknown device {str(asked)!r}; write cpu, cuda or cuda:1") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise RequestError("no CUDA device is available here; use device='cpu'")
        if device.index is not None and device.index >= torch.cuda.device_count():
            raise RequestError(f"there is no {device}; this machine has {torch.cuda.device_count()} CUDA devices")
    return device


def make_feed(
    part: Part,
    task: Task,
    settings: Protocol,
    *,
    seed: int,
    device: torch.device,
    training: bool = True,
    batch_size: int | None = None,
    workers: int = 0,
) -> Feed:
    """Return the feed of a part: resident on the device where the data are arrays that fit, read in batches elsewhere.

    Args:
        part: of the task.
        task: how inputs are prepared.
        settings: augmentation and batch size.
        seed: of order and augmentation.
        device: where batches go.
        training: whether items are shuffled and augmented.
        batch_size: instead of the protocol's.
        workers: processes that read items of a data set.
    """
    size = settings.batch_size if batch_size is None else batch_size
    resident, loader = part.resident(), part.loader()
    augmentations = augmentations_of(settings, task, device) if training else []
    prepare = Preparation(device, task.normalise, augmentations, settings.channels_last)
    if loader is not None:
        return LoaderFeed(loader, prepare=prepare, seed=seed, name=part.name)
    # A batch norm cannot be trained on one item; a last batch of one is left out, another one every epoch.
    alone = training and len(part) > size and len(part) % size == 1
    common: dict[str, Any] = {"seed": seed, "prepare": prepare, "shuffle": training, "name": part.name}
    if resident is not None and _fits(resident, device):
        return ResidentFeed(*resident, size, drop_last=alone, **common)
    return DatasetFeed(part.dataset(), size, drop_last=alone, workers=workers, **common)


def augmentations_of(settings: Protocol, task: Task, device: torch.device) -> list[Augmentation]:
    """Return the augmentations of a protocol that a task allows: only images keep their meaning when they are moved."""
    found: list[Augmentation] = []
    if task.augmentable == "image":
        if settings.policy:
            found.append(PolicyList(policy(settings.policy), tuple(task.input)).to(device))  # type: ignore[arg-type]
        if settings.crop:
            found.append(Crop(settings.crop))
        if settings.flip:
            found.append(Flip())
        if settings.cutout:
            found.append(Cutout(settings.cutout))
    return found


def _fits(resident: tuple[Any, Any], device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    size = sum(tensor.numel() * tensor.element_size() for tensor in resident)
    return bool(size <= LARGEST_RESIDENT * torch.cuda.mem_get_info(device)[0])


def make_loop(
    model: nn.Module,
    task: Task,
    settings: Protocol,
    *,
    seed: int = 0,
    device: torch.device,
    train_on: str = "train",
    workers: int = 0,
) -> Loop:
    """Return the loop that trains a model's weights on a part of a task by a protocol."""
    model.to(device)
    if settings.channels_last:
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    feeds = {"train": make_feed(task.part(train_on), task, settings, seed=seed, device=device, workers=workers)}
    group = Group(
        "weights", weights(model), settings.make_optimiser(), settings.make_schedule(), clip=settings.clip or None
    )
    callbacks: list[Callback] = []
    if settings.drop_path and hasattr(model, "drop_path_rate"):
        callbacks.append(DropPath(Linear(0.0, settings.drop_path)))
    loop = Loop(
        model,
        single_level(TaskObjective(task.loss, settings.label_smoothing, settings.auxiliary)),
        [group],
        feeds,
        epochs=settings.epochs,
        seed=seed,
        precision=settings.precision,
        measure=task.metric.measure,
        accumulate=settings.accumulate,
        callbacks=callbacks,
        capture=settings.capture,
    )
    if task.augmentable is None and (settings.policy or settings.crop or settings.flip or settings.cutout):
        loop.notes.append(
            f"the augmentation of {settings.name} is left out: the task does not say that its inputs keep their "
            "meaning when they are moved (augmentable='image')"
        )
    if not all(feed.exact for feed in feeds.values()):
        loop.notes.append(
            "the data come from a DataLoader of your own: a resumed training has the same bits only where its order "
            "and its workers' randomness come from the generator that it was given"
        )
    return loop


def train_network(
    model: nn.Module,
    task: Task,
    settings: Protocol | str,
    *,
    seed: int = 0,
    device: str | torch.device | None = None,
    train_on: str = "train",
    measure_on: str | None = "valid",
    checkpoint: Path | Checkpoints | None = None,
    on_epoch: Callable[[int, dict[str, float]], Mapping[str, float] | None] | None = None,
    measure_every: bool = False,
    workers: int = 0,
) -> Trained:
    """Train a network on a task and measure it.

    Args:
        model: with its initial weights; it is trained in place.
        task: what it learns.
        settings: a protocol or its name.
        seed: of order, augmentation and the model's own randomness.
        device: where; the GPU where there is one.
        train_on: `"train"`, or `"search"` for train and valid together.
        measure_on: `"valid"` or `"test"`; None measures nothing.
        checkpoint: a file to keep the state in and to go on from, or what reads and writes it.
        on_epoch: called with each finished epoch's number and figures.
        measure_every: whether the part is measured after every epoch.
        workers: processes that read items of a data set.
    """
    settings = protocol(settings)
    place = as_device(device)
    loop = make_loop(model, task, settings, seed=seed, device=place, train_on=train_on, workers=workers)
    kept = checkpoint_file(checkpoint) if isinstance(checkpoint, Path) else checkpoint
    began = time.monotonic()

    def finished(epoch: int, figures: dict[str, float]) -> Mapping[str, float]:
        found: dict[str, float] = {}
        if measure_on is not None and (measure_every or epoch + 1 == settings.epochs):
            measured = measure(model, task, measure_on, device=place, precision=settings.precision)
            found = {f"{measure_on}_{key}": value for key, value in measured.items()}
        if on_epoch is not None:
            found.update(on_epoch(epoch, {**figures, **found}) or {})
        return found

    figures = loop.run(kept, finished)
    score = figures.get(f"{measure_on}_score", figures.get("train_score", float("nan")))
    return Trained(score, figures, time.monotonic() - began, tuple(loop.notes))


def measure(
    model: nn.Module,
    task: Task,
    part: str = "valid",
    *,
    device: str | torch.device | None = None,
    precision: str = "float32",
    batch_size: int = MEASURED_BATCH,
) -> dict[str, float]:
    """Return the mean loss and the score of a model on a part, in evaluation mode."""
    place = as_device(device)
    settings = protocol("quick", batch_size=batch_size)
    feed = make_feed(task.part(part), task, settings, seed=0, device=place, training=False, batch_size=batch_size)
    model.to(place)
    meter = Meter(place, task.metric.measure)
    objective = TaskObjective(task.loss)
    dtype = resolve_precision(precision, place).dtype
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), torch.autocast(place.type, dtype, enabled=dtype is not None):
            for step in range(feed.steps):
                batch: Batch = feed.batch(0, step)
                outcome = objective(model, batch)
                meter.add(outcome.loss, outcome.outputs, batch.targets)
    finally:
        model.train(training)
    return meter.means()


def checkpoint_file(path: Path) -> Checkpoints:
    """Return where a training's state is kept: a file, with the one before it in case it is damaged."""
    from eclose.runs import CheckpointFile

    return CheckpointFile(path, save_state, load_state)


def save_state(content: Any, path: Path) -> None:
    """Write a state to a path; torch's own writer does not say that a disk is full."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_bytes(path, buffer.getvalue())


def load_state(path: Path) -> Any:
    """Read a state back; nothing but tensors and plain data is loaded."""
    return torch.load(path, weights_only=True, map_location="cpu")


__all__ = [
    "Trained",
    "TrainingError",
    "as_device",
    "augmentations_of",
    "checkpoint_file",
    "load_state",
    "make_feed",
    "make_loop",
    "measure",
    "save_state",
    "train_network",
]
