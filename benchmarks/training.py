"""Training speed: data that lie on the device against a `DataLoader` with workers; captured steps against eager ones.

The network is fixed: three 3x3 convolutions of 32 channels, batches of 64 CIFAR-sized images, no augmentation. All
variants take the same steps on the same items; the benchmark stops where their numbers differ.
"""

import statistics
import time
from pathlib import Path
from typing import Any

import torch
from benchmarks._measure import record
from torch import nn

from eclose.train.data import DatasetFeed, Feed, Preparation, ResidentFeed
from eclose.train.groups import SGD, Group
from eclose.train.loop import Loop
from eclose.train.schedules import Cosine
from eclose.train.steps import TaskObjective, single_level

BATCH = 64
EPOCHS = 4  # the first warms up and is not counted
IMAGES = {"cpu": 4_096, "cuda": 50_048}
MEAN, DEVIATION = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


class Images(torch.utils.data.Dataset[Any]):
    """8-bit images in memory, read one by one."""

    def __init__(self, inputs: torch.Tensor, targets: torch.Tensor):
        self.inputs, self.targets = inputs, targets

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, item: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[item], self.targets[item]


def network() -> nn.Module:
    """Return the fixed network with its initial weights."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def trained(feed: Feed, device: torch.device, capture: str) -> tuple[float, list[float]]:
    """Return the median seconds of an epoch, and every epoch's loss."""
    model = network().to(device)
    group = Group("weights", list(model.parameters()), SGD(), Cosine(0.05))
    step = single_level(TaskObjective(nn.functional.cross_entropy))
    loop = Loop(model, step, [group], {"train": feed}, epochs=EPOCHS, capture=capture)
    times, losses = [], []
    last = time.perf_counter()

    def finished(epoch: int, figures: dict[str, float]) -> None:
        nonlocal last
        now = time.perf_counter()
        times.append(now - last)
        losses.append(figures["train_loss"])
        last = now

    loop.run(on_epoch=finished)
    assert capture != "on" or not loop.notes, loop.notes
    return statistics.median(times[1:]), losses


def run(out: Path | None = None) -> None:
    """Measure, print, record."""
    figures: dict[str, Any] = {}
    for name in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
        figures[name] = measured(torch.device(name))
    if torch.cuda.is_available():
        figures["gpu"] = torch.cuda.get_device_name()
    record(out, figures)


def measured(device: torch.device) -> dict[str, float]:
    """Return seconds an epoch of every variant on a device, and their ratios."""
    count = IMAGES[device.type]
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
    targets = torch.randint(0, 10, (count,), generator=generator)
    prepare = Preparation(device, (MEAN, DEVIATION))
    resident = ResidentFeed(inputs, targets, BATCH, seed=0, prepare=prepare)
    loader = DatasetFeed(Images(inputs, targets), BATCH, seed=0, prepare=prepare, workers=2)
    variants: dict[str, tuple[Feed, str]] = {"resident": (resident, "off"), "loader": (loader, "off")}
    if device.type == "cuda":
        variants["captured"] = (resident, "on")
    found: dict[str, float] = {}
    all_losses: dict[str, list[float]] = {}
    for name, (feed, capture) in variants.items():
        found[name], all_losses[name] = trained(feed, device, capture)
    for name, losses in all_losses.items():
        worst = max(abs(a - b) for a, b in zip(losses, all_losses["resident"], strict=True))
        assert worst < (1e-4 if device.type == "cuda" else 1e-9), (name, losses, all_losses["resident"])
    found["loader_over_resident"] = found["loader"] / found["resident"]
    print(
        f"{device.type}: {count:,} images an epoch: resident {found['resident']:.3f} s, DataLoader with 2 workers "
        f"{found['loader']:.3f} s = {found['loader_over_resident']:.1f} x"
    )
    if "captured" in found:
        found["eager_over_captured"] = found["resident"] / found["captured"]
        print(f"{device.type}: captured {found['captured']:.3f} s; eager {found['eager_over_captured']:.1f} x")
    return found
