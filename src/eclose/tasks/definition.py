"""A task: data in parts, what goes in and comes out, a loss and a metric.

A task knows no network and no training. While `searching()`, its test part cannot be read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.shapes import Classes, Input, Output, Tokens, as_input, as_output
from eclose.tasks.checks import check_every_class, check_flag, check_output
from eclose.tasks.fitting import fitting
from eclose.tasks.inference import check_fit, gives_labels, infer_input, infer_output, usual_loss, usual_metric, widened
from eclose.tasks.losses import Loss, as_loss
from eclose.tasks.metrics import Metric, as_metric
from eclose.tasks.normalisation import Normalise, normalisation
from eclose.tasks.parts import PARTS, Arrays, Batches, Items, Part, as_source, joined, known_labels
from eclose.tasks.splits import split

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TaskSpec:
    """A name and options that build the task again, in another process for example."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> Any:
        """Build the task."""
        from eclose.tasks.names import task

        return task(self.name, **self.options)


class Task:
    """Data with a loss and a metric.

    Args:
        train: a pair `(inputs, targets)` of arrays or tensors, a map-style `Dataset`, or a `DataLoader`.
        valid: the same; without it, `valid_fraction` of the train part is held out.
        test: the same, or None where there is no test part.
        loss: a name from `LOSSES` or a function `(outputs, targets) -> tensor`; by default what the targets call for.
        metric: a name from `METRICS`, a `Metric`, or a function together with `direction=`; by default what the
            targets call for.
        direction: `"maximise"` or `"minimise"`, for a metric that is a function.
        input: a shape (channels first, no batch) or `Tokens(length, vocab)`; by default what the data show.
        output: `Classes`, `Map`, `Values` or `Tokens`; by default what the targets show.
        classes: short for `output=Classes(...)`.
        name: for people and reports.
        valid_fraction: the share (or number) of train items held out where `valid` is not given.
        split_seed: another seed holds out other items.
        stratify: whether every class gives its share to the held-out part.
        normalise: `(mean, std)` per channel, `"train"` to measure them on the train part, or None. Applied on the
            device; uint8 inputs are first divided by 255.
        augmentable: `"image"` where flips and crops keep the meaning, or None.
        allow_missing_classes: whether a class may be absent from a part.
    """

    tabular = False

    def __init__(
        self,
        train: Any,
        valid: Any = None,
        test: Any = None,
        *,
        loss: str | Loss | Callable[[Any, Any], Any] | None = None,
        metric: str | Metric | Callable[[Any, Any], Any] | None = None,
        direction: str | None = None,
        input: Input | None = None,
        output: Output | None = None,
        classes: int | None = None,
        name: str = "data",
        valid_fraction: float | int = 0.2,
        split_seed: int = 0,
        stratify: bool = True,
        normalise: Normalise | str | None = None,
        augmentable: str | None = None,
        allow_missing_classes: bool = False,
    ):
        check_flag(stratify, "stratify")
        check_flag(allow_missing_classes, "allow_missing_classes")
        sources = {"train": as_source(train, "train")}
        if valid is not None:
            sources["valid"] = as_source(valid, "valid")
        if test is not None:
            sources["test"] = as_source(test, "test")
        self.name = name
        self.input: Input = as_input(input) if input is not None else infer_input(sources)
        sources = {part: widened(source, self.input) for part, source in sources.items()}
        asked = as_output(output, classes)
        wanted = as_loss(loss) if loss is not None else None
        self.output: Output = asked if asked is not None else infer_output(sources, self.input, wanted)
        check_output(self.output, self.input)
        labels = gives_labels(sources, self.output, wanted)
        self.loss: Loss = wanted if wanted is not None else as_loss(usual_loss(labels))
        usual = usual_metric(self.loss, self.output, labels)
        self.metric: Metric = as_metric(usual if metric is None else metric, direction)
        check_fit(self.loss, self.metric, self.output, labels)
        sources = fitting(sources, self.input, self.output, self.loss, labels)
        if "valid" not in sources:
            sources["train"], sources["valid"] = _held_out(
                sources["train"], valid_fraction, split_seed, stratify and isinstance(self.output, Classes)
            )
        if isinstance(self.output, Classes) and not allow_missing_classes:
            for part, source in sources.items():
                labels = known_labels(source)
                if labels is not None:
                    check_every_class(labels, self.output.count, part)
        if augmentable not in (None, "image"):
            raise RequestError(f"augmentable is 'image' or None, not {augmentable!r}")
        if augmentable == "image" and (isinstance(self.input, Tokens) or len(self.input) != 3):
            raise RequestError(f"augmentable='image' needs inputs (channels, height, width), not {self.input}")
        self.augmentable = augmentable
        self.spec: TaskSpec | None = None
        self._sources = sources
        self._searching = 0
        self._lock = threading.Lock()
        self._parts: dict[str, Part] = {}
        self._fingerprint: str | None = None
        self._constants: dict[Any, tuple[Tensor, Tensor]] = {}
        self.normalise: Normalise | None = normalisation(normalise, self.input, sources["train"])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part} {len(self._sources[part])}" for part in PARTS if part in self._sources)
        return f"<task {self.name}: {self.input} -> {self.output}, {self.loss.name}, {self.metric.name}; {sizes}>"

    def part(self, name: str) -> Part:
        """Return a part: `"train"`, `"valid"`, `"test"`, or `"search"` (train and valid together)."""
        if name not in PARTS:
            raise RequestError(f"a task has the parts {', '.join(PARTS)}, not {name!r}{did_you_mean(str(name), PARTS)}")
        self._allowed(name)
        if name not in self._parts:
            if name == "search":
                source: Arrays | Items | Batches = joined(self._sources["train"], self._sources["valid"])
            elif name in self._sources:
                source = self._sources[name]
            else:
                raise RequestError(f"the task {self.name!r} has no {name} part; give it with {name}=")
            self._parts[name] = Part(name, source, self._allowed)
        return self._parts[name]

    def has(self, name: str) -> bool:
        """Return whether there is such a part."""
        return name == "search" or name in self._sources

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Refuse every access to the test part until the block ends."""
        with self._lock:
            self._searching += 1
        try:
            yield
        finally:
            with self._lock:
                self._searching -= 1

    def _allowed(self, part: str) -> None:
        if part == "test" and self._searching:
            raise RequestError(
                f"the test part of {self.name!r} cannot be read during a search; use the valid part and test at the end"
            )

    def prepare(self, inputs: Tensor) -> Tensor:
        """Return a batch as the network takes it, on the batch's own device: uint8 over 255, then normalised."""
        import torch

        if isinstance(self.input, Tokens):
            return inputs
        values = inputs.float() / 255.0 if inputs.dtype == torch.uint8 else inputs
        if self.normalise is None:
            return values
        key = (inputs.device, values.dtype)
        if key not in self._constants:
            shape = (1, -1) + (1,) * (len(self.input) - 1)
            mean, std = (torch.tensor(numbers, dtype=values.dtype).view(shape) for numbers in self.normalise)
            self._constants[key] = mean.to(inputs.device), std.to(inputs.device)
        mean, std = self._constants[key]
        return (values - mean) / std

    def fingerprint(self) -> str:
        """Return a digest of the data and of every option: equal for equal tasks, in any process."""
        if self._fingerprint is None:
            from eclose.tasks.digests import digest

            facts = (self.input, self.output, self.loss, self.metric, self.normalise, self.augmentable)
            self._fingerprint = digest(facts, self._sources)
        return self._fingerprint

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_parts": {}, "_constants": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.spec is None:
            return super().__reduce_ex__(protocol)
        from eclose.tasks.names import rebuilt

        return rebuilt, (self.spec, self._searching)


def _held_out(
    source: Arrays | Items | Batches, fraction: float | int, seed: int, stratify: bool
) -> tuple[Arrays | Items | Batches, Arrays | Items | Batches]:
    if isinstance(source, Batches):
        raise RequestError("a loader cannot be split; give valid= as well, or the dataset instead of the loader")
    labels = known_labels(source) if stratify else None
    kept, held = split(len(source), fraction, seed, labels)
    return source.take(kept), source.take(held)


__all__ = ["Task", "TaskSpec"]
