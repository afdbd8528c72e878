"""Evaluation protocols: how a network is trained to be judged, as named presets with the papers' settings.

A protocol is plain data; `training.py` turns it into a training of a model on a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from eclose.algebra.catalogue import Catalogue
from eclose.algebra.errors import RequestError, did_you_mean
from eclose.train.groups import SGD, Adam, OptimiserFactory
from eclose.train.precision import REQUESTS as PRECISIONS
from eclose.train.schedules import Constant, Cosine, Exponential, Linear, Schedule, Warmup


@dataclass(frozen=True)
class Protocol:
    """How a network is trained.

    Attributes:
        name: for people and files.
        source: where the settings come from.
        epochs: passes over the train part.
        batch_size: items a step.
        optimiser: `sgd`, `adam` or `adamw`.
        rate: the (highest) learning rate.
        schedule: `cosine`, `linear`, `exponential` or `constant`.
        schedule_unit: whether the rate changes every `epoch` or every `step`.
        decay: the factor of an exponential schedule, every epoch.
        warmup: epochs over which the rate rises first.
        momentum: of SGD.
        nesterov: whether its momentum is Nesterov's.
        weight_decay: the L2 term (AdamW: decoupled).
        clip: the largest gradient norm, 0 for none.
        accumulate: pieces that a batch is cut into.
        precision: `float32`, `mixed`, `bfloat16` or `float16`.
        channels_last: whether images have their channels innermost in memory.
        capture: whether steps run as CUDA graphs: `auto`, `on`, `off`.
        flip: whether images are mirrored at random.
        crop: pixels that images are padded by for random crops, 0 for none.
        cutout: side of the hole cut into images, 0 for none.
        policy: the name of an augmentation policy, or nothing.
        drop_path: the highest probability of drop-path; it rises linearly from 0.
        label_smoothing: share of each target spread over the classes.
        auxiliary: weight of the loss at side outputs, 0 for none.
        size: of the space's network.
    """

    name: str
    source: str = ""
    epochs: int = 10
    batch_size: int = 64
    optimiser: str = "sgd"
    rate: float = 0.1
    schedule: str = "cosine"
    schedule_unit: str = "epoch"
    decay: float = 0.97
    warmup: int = 0
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 5e-4
    clip: float = 0.0
    accumulate: int = 1
    precision: str = "float32"
    channels_last: bool = False
    capture: str = "auto"
    flip: bool = False
    crop: int = 0
    cutout: int = 0
    policy: str = ""
    drop_path: float = 0.0
    label_smoothing: float = 0.0
    auxiliary: float = 0.0
    size: str = "evaluation"

    def __post_init__(self) -> None:
        self._refuse(self.epochs >= 1, "epochs", "at least 1")
        self._refuse(self.batch_size >= 1, "batch_size", "at least 1")
        self._refuse(self.rate > 0, "rate", "above 0")
        self._refuse(self.accumulate >= 1, "accumulate", "at least 1")
        for key in ("clip", "crop", "cutout", "warmup", "weight_decay", "auxiliary"):
            self._refuse(getattr(self, key) >= 0, key, "at least 0")
        for key in ("drop_path", "label_smoothing"):
            self._refuse(0 <= getattr(self, key) < 1, key, "at least 0 and below 1")
        for key, known in (
            ("optimiser", ("sgd", "adam", "adamw")),
            ("schedule", ("cosine", "linear", "exponential", "constant")),
            ("schedule_unit", ("epoch", "step")),
            ("precision", PRECISIONS),
            ("capture", ("auto", "on", "off")),
        ):
            value = getattr(self, key)
            if value not in known:
                hint = did_you_mean(str(value), known) or f" (known: {', '.join(known)})"
                raise RequestError(f"protocol {self.name}: unknown {key} {value!r}{hint}")

    def _refuse(self, fine: bool, key: str, right: str) -> None:
        if not fine:
            raise RequestError(f"protocol {self.name}: {key} must be {right}, not {getattr(self, key)!r}")

    def make_optimiser(self) -> OptimiserFactory:
        """Return what makes the optimiser of the weights."""
        if self.optimiser == "sgd":
            return SGD(self.momentum, self.nesterov, self.weight_decay)
        return Adam(weight_decay=self.weight_decay, decoupled=self.optimiser == "adamw")

    def make_schedule(self) -> Schedule:
        """Return the learning rate as a function of the position."""
        unit: Any = self.schedule_unit
        schedules: dict[str, Schedule] = {
            "cosine": Cosine(self.rate, unit=unit),
            "linear": Linear(self.rate, unit=unit),
            "exponential": Exponential(self.rate, self.decay),
            "constant": Constant(self.rate),
        }
        schedule = schedules[self.schedule]
        return Warmup(self.warmup, schedule, unit=unit) if self.warmup else schedule

    def plain(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


QUICK = Protocol(
    "quick",
    "ours: small networks on small data in seconds",
    epochs=15,
    batch_size=64,
    optimiser="adamw",
    rate=3e-3,
    weight_decay=1e-2,
    schedule="cosine",
    schedule_unit="step",
    size="search",
)
NASBENCH201 = Protocol(
    "nasbench201",
    "Dong and Yang (2020), the benchmark's 200 epochs",
    epochs=200,
    batch_size=256,
    rate=0.1,
    nesterov=True,
    weight_decay=5e-4,
    flip=True,
    crop=4,
)
DARTS_CIFAR = Protocol(
    "darts-cifar",
    "Liu et al. (2019), evaluation on CIFAR",
    epochs=600,
    batch_size=96,
    rate=0.025,
    weight_decay=3e-4,
    clip=5.0,
    flip=True,
    crop=4,
    cutout=16,
    drop_path=0.2,
    auxiliary=0.4,
)
DARTS_IMAGENET = Protocol(
    "darts-imagenet",
    "Xu et al. (2020), the mobile setting with large batches",
    epochs=250,
    batch_size=1024,
    rate=0.5,
    schedule="linear",
    warmup=5,
    weight_decay=3e-5,
    clip=5.0,
    label_smoothing=0.1,
    auxiliary=0.4,
    flip=True,
    size="imagenet",
)
S1_S4 = replace(DARTS_CIFAR, name="s1-s4", source="Zela et al. (2020), as darts-cifar; `small` networks off CIFAR-10")
FAST_AUTOAUGMENT = replace(
    DARTS_CIFAR,
    name="darts-cifar-autoaugment",
    source="darts-cifar with the policy of Lim et al. (2019)",
    policy="fast-autoaugment-cifar10",
)

PROTOCOLS: Catalogue[Protocol] = Catalogue("protocol")
for _protocol, _description in (
    (QUICK, "15 epochs of AdamW, no augmentation: small networks on small data in seconds"),
    (NASBENCH201, "200 epochs of SGD with flips and crops, as the benchmark trains"),
    (DARTS_CIFAR, "600 epochs with cutout, drop-path and auxiliary head, as DARTS evaluates on CIFAR"),
    (DARTS_IMAGENET, "250 epochs in batches of 1,024 with label smoothing, as PC-DARTS evaluates on ImageNet"),
    (S1_S4, "the evaluation of the spaces S1 to S4"),
    (FAST_AUTOAUGMENT, "darts-cifar with the published Fast AutoAugment policy"),
):
    PROTOCOLS.add(_protocol.name, _protocol, _description)


def protocol(name: str | Protocol, **overrides: Any) -> Protocol:
    """Return a protocol by name with some settings replaced; an unknown setting names the nearest known one."""
    found = name if isinstance(name, Protocol) else PROTOCOLS.get(name)
    return replace(found, **_checked(found, overrides)) if overrides else found


def _checked(found: Protocol, overrides: Mapping[str, Any]) -> dict[str, Any]:
    known = {entry.name: getattr(found, entry.name) for entry in fields(found) if entry.name not in ("name", "source")}
    result = {}
    for key, value in overrides.items():
        if key not in known:
            hint = did_you_mean(key, known) or f" (settings: {', '.join(known)})"
            raise RequestError(f"protocol {found.name} has no setting {key!r}{hint}")
        default = known[key]
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not type(default):
            raise RequestError(
                f"protocol {found.name}: {key} is a {_spoken(default)} such as {default!r}, not {value!r}"
            )
        result[key] = value
    return result


def _spoken(value: Any) -> str:
    return {bool: "truth value", int: "whole number", float: "number", str: "text"}[type(value)]


__all__ = ["PROTOCOLS", "Protocol", "protocol"]
