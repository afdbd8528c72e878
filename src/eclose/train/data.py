"""Feeds: where batches come from.

A feed is addressed, not iterated: batch `step` of epoch `epoch`. For data that fit on the device (`ResidentFeed`) and
for data sets read by our own loader (`DatasetFeed`) a batch is a function of (seed, epoch, step), so a training resumes
exactly anywhere. A user's `DataLoader` (`LoaderFeed`) decides about its order itself and resumes exactly at the ends of
epochs only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from eclose.algebra.errors import RequestError
from eclose.train.augment import Augmentation
from eclose.train.randomness import draws, key_of, permutation

NORMALISED_BYTES = 1 << 30  # images without augmentation are normalised once when that takes no more than this


class Batch(NamedTuple):
    """Inputs and targets on the device."""

    inputs: Any
    targets: Any


class Feed(Protocol):
    """What a loop asks of its data.

    Attributes:
        steps: batches an epoch.
        exact: whether a training can stop and resume within an epoch without a change of its numbers.
    """

    steps: int
    exact: bool

    def batch(self, epoch: int, step: int) -> Batch:
        """Return a batch by its address."""
        ...


class Preparation:
    """From raw to ready batches on the device: augmentation, scaling to [0, 1], normalisation, memory format.

    Args:
        device: where batches go.
        normalise: mean and standard deviation a channel, or None.
        augmentations: applied in order; those on normalised images come last.
        channels_last: whether images have their channels innermost in memory.
    """

    def __init__(
        self,
        device: torch.device,
        normalise: tuple[Any, Any] | None = None,
        augmentations: Sequence[Augmentation] = (),
        channels_last: bool = False,
    ):
        self.device = device
        self.raw = [augmentation for augmentation in augmentations if not augmentation.normalised]
        self.late = [augmentation for augmentation in augmentations if augmentation.normalised]
        self.draws = sum(augmentation.draws for augmentation in augmentations)
        self.channels_last = channels_last
        self.normalise = normalise
        self._constants: tuple[Tensor, Tensor] | None = None

    def __call__(self, inputs: Tensor, items: Tensor, key: int | Tensor) -> Tensor:
        """Return the inputs of some items, ready for the model; a function of its arguments alone."""
        bits = draws(key, items, self.draws) if self.draws else None
        inputs, bits = _augmented(inputs, self.raw, bits)
        inputs = self.normalised(inputs)
        inputs, _ = _augmented(inputs, self.late, bits)
        if self.channels_last and inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return inputs

    def normalised(self, inputs: Tensor) -> Tensor:
        """Return 8-bit images as floats in [0, 1], and inputs normalised where a mean and a deviation are known."""
        if inputs.dtype == torch.uint8:
            inputs = inputs.float().div_(255.0)
        if self.normalise is None or not inputs.is_floating_point():
            return inputs
        if self._constants is None:
            sizes = (-1,) + (1,) * (inputs.dim() - 2)
            mean, deviation = (torch.as_tensor(v, dtype=inputs.dtype).view(sizes) for v in self.normalise)
            self._constants = mean.to(inputs.device), deviation.to(inputs.device)
        mean, deviation = self._constants
        return inputs.sub(mean).div_(deviation)


class ResidentFeed:
    """Data that lie on the device as one tensor of inputs and one of targets.

    Args:
        inputs: all inputs, 8-bit images as they are.
        targets: all targets.
        batch_size: items a batch; the last batch of an epoch may be smaller.
        seed: what order and augmentation are derived from.
        prepare: how raw inputs become ready ones.
        shuffle: whether every epoch has an order of its own.
        name: tells the randomness of several feeds of one training apart.
        drop_last: whether a smaller last batch is left out.
    """

    exact = True

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        batch_size: int,
        *,
        seed: int,
        prepare: Preparation,
        shuffle: bool = True,
        name: str = "train",
        drop_last: bool = False,
    ):
        count = len(inputs)
        _check(count, len(targets), batch_size)
        self.batch_size, self.seed, self.name, self.shuffle = batch_size, seed, name, shuffle
        self.count = count
        self.steps = _steps(count, batch_size, drop_last)
        self.prepare = prepare
        self._ready = not prepare.draws and inputs.dtype == torch.uint8 and 4 * inputs.numel() <= NORMALISED_BYTES
        self._nhwc = self._ready and prepare.channels_last and inputs.dim() == 4
        inputs = inputs.to(prepare.device)
        if self._ready:
            inputs = _whole(prepare.normalised, inputs)
            inputs = inputs.permute(0, 2, 3, 1).contiguous() if self._nhwc else inputs
        self.inputs, self.targets = inputs, targets.to(prepare.device)
        self._order: tuple[int, Tensor] | None = None

    def order(self, epoch: int) -> Tensor:
        """Return the items in the order of an epoch."""
        if self._order is None or self._order[0] != epoch:
            device = self.inputs.device
            order = (
                permutation(key_of(self.seed, self.name, "order", epoch), self.count, device)
                if self.shuffle
                else torch.arange(self.count, device=device)
            )
            self._order = (epoch, order)
        return self._order[1]

    def items(self, epoch: int, step: int) -> Tensor:
        """Return the items of a batch."""
        return self.order(epoch)[step * self.batch_size : (step + 1) * self.batch_size]

    def key(self, epoch: int) -> int:
        """Return the key of an epoch's augmentation."""
        return key_of(self.seed, self.name, "augmentation", epoch)

    def gather(self, items: Tensor, key: int | Tensor) -> Batch:
        """Return the batch of some items: device operations only, of static shapes."""
        inputs = self.inputs.index_select(0, items)
        if self._nhwc:
            inputs = inputs.permute(0, 3, 1, 2)
        elif not self._ready:
            inputs = self.prepare(inputs, items, key)
        return Batch(inputs, self.targets.index_select(0, items))

    def batch(self, epoch: int, step: int) -> Batch:
        """Return a batch."""
        return self.gather(self.items(epoch, step), self.key(epoch) if self.prepare.draws else 0)


class DatasetFeed:
    """A map-style data set read item by item, with workers or without; items get their randomness from their number.

    Before item `i` of epoch `e` is read, the generators of torch, Python and numpy are seeded from (seed, e, i), so a
    data set that transforms at random does it the same whichever worker reads it.
    """

    exact = True

    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int,
        *,
        seed: int,
        prepare: Preparation,
        shuffle: bool = True,
        name: str = "train",
        workers: int = 0,
        drop_last: bool = False,
    ):
        count = len(dataset)  # type: ignore[arg-type]
        _check(count, count, batch_size)
        self.steps = _steps(count, batch_size, drop_last)
        self.count, self.batch_size, self.seed, self.name = count, batch_size, seed, name
        self.shuffle, self.workers, self.prepare = shuffle, workers, prepare
        self.dataset = dataset
        self._next: tuple[int, int] | None = None
        self._batches: Iterator[Any] = iter(())

    def batch(self, epoch: int, step: int) -> Batch:
        """Return a batch; in order they are read ahead by the workers."""
        if self._next != (epoch, step):
            self._batches = iter(self._loader(epoch, step))
        self._next = (epoch, step + 1)
        items, inputs, targets = next(self._batches)
        device = self.prepare.device
        key = key_of(self.seed, self.name, "augmentation", epoch)
        inputs = _moved(inputs, device)
        if isinstance(inputs, Tensor):
            inputs = self.prepare(inputs, items.to(device), key)
        return Batch(inputs, _moved(targets, device))

    def _loader(self, epoch: int, step: int) -> DataLoader[Any]:
        order = torch.arange(self.count)
        if self.shuffle:
            order = permutation(key_of(self.seed, self.name, "order", epoch), self.count)
        rows = order.split(self.batch_size)[step : self.steps]
        return DataLoader(
            _SeededItems(self.dataset, key_of(self.seed, self.name, "items", epoch)),
            batch_sampler=[row.tolist() for row in rows],
            num_workers=self.workers,
            pin_memory=self.prepare.device.type == "cuda",
            generator=torch.Generator().manual_seed(0),  # worker seeds are not used; drawing them must not disturb ours
        )


class LoaderFeed:
    """A user's `DataLoader`, used as it is: its batching, its order, its workers."""

    exact = False

    def __init__(self, loader: DataLoader[Any], *, prepare: Preparation, seed: int, name: str = "train"):
        try:
            self.steps = len(loader)
        except TypeError:
            raise RequestError(
                "the DataLoader does not know its length: an epoch needs one; give its data set a __len__"
            ) from None
        if self.steps == 0:
            raise RequestError("the DataLoader gives no batches: its data set is empty or smaller than one batch")
        self.loader, self.prepare, self.seed, self.name = loader, prepare, seed, name
        self._next: tuple[int, int] | None = None
        self._batches: Iterator[Any] = iter(())

    def batch(self, epoch: int, step: int) -> Batch:
        """Return the next batch; an epoch can be started, but not entered in its middle."""
        if self._next != (epoch, step):
            if step:
                raise RequestError("a DataLoader can be resumed at the end of an epoch only")
            self._reseed(epoch)
            self._batches = iter(self.loader)
        self._next = (epoch, step + 1)
        try:
            inputs, targets = next(self._batches)
        except StopIteration:
            raise RequestError(f"the DataLoader ended at batch {step} of {self.steps} it promised") from None
        except (TypeError, ValueError) as error:
            raise RequestError(f"a DataLoader must give pairs (inputs, targets): {error}") from error
        device = self.prepare.device
        inputs, targets = _moved(inputs, device), _moved(targets, device)
        if isinstance(inputs, Tensor):
            inputs = self.prepare(inputs, torch.arange(len(inputs), device=device), self._key(epoch, step))
        return Batch(inputs, targets)

    def _reseed(self, epoch: int) -> None:
        """Make the order of an epoch a function of (seed, epoch) where the loader's generator allows it."""
        sampler = getattr(self.loader, "sampler", None)
        for owner in (self.loader, sampler, getattr(self.loader, "batch_sampler", None)):
            generator = getattr(owner, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(key_of(self.seed, self.name, "loader", epoch))

    def _key(self, epoch: int, step: int) -> int:
        return key_of(self.seed, self.name, "augmentation", epoch, step)


class _SeededItems(Dataset[Any]):
    """A data set whose items are read under generators seeded with their number."""

    def __init__(self, dataset: Dataset[Any], key: int):
        self.dataset, self.key = dataset, key

    def __getitem__(self, item: int) -> Any:
        with _seeded(key_of(self.key, item)):
            inputs, targets = self.dataset[item]
        return item, inputs, targets


class _seeded:  # noqa: N801 - used like a function
    """Seed torch, Python and numpy within the block and put their generators back after it."""

    def __init__(self, key: int):
        self.key = key

    def __enter__(self) -> None:
        import numpy

        self.states = (torch.get_rng_state(), random.getstate(), numpy.random.get_state())
        torch.default_generator.manual_seed(self.key)
        random.seed(self.key)
        numpy.random.seed(self.key % 2**32)

    def __exit__(self, *error: object) -> None:
        import numpy

        torch.set_rng_state(self.states[0])
        random.setstate(self.states[1])
        numpy.random.set_state(self.states[2])


def _augmented(
    inputs: Tensor, augmentations: Sequence[Augmentation], bits: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Apply augmentations, each with its columns of the bits; return the columns that are left too."""
    for augmentation in augmentations:
        assert bits is not None  # there are draws, so there are bits
        inputs = augmentation(inputs, bits[:, : augmentation.draws])
        bits = bits[:, augmentation.draws :]
    return inputs, bits


def _whole(change: Callable[[Tensor], Tensor], inputs: Tensor, rows: int = 4096) -> Tensor:
    """Apply an elementwise change in pieces, so that no second whole copy is needed on the way."""
    if len(inputs) <= rows:
        return change(inputs)
    result = torch.empty(inputs.shape, dtype=torch.float32, device=inputs.device)
    for piece, target in zip(inputs.split(rows), result.split(rows), strict=True):
        target.copy_(change(piece))
    return result


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, list | tuple):
        return type(value)(_moved(part, device) for part in value)
    return value


def _steps(count: int, batch_size: int, drop_last: bool) -> int:
    steps = count // batch_size if drop_last else -(-count // batch_size)
    if steps == 0:
        raise RequestError(f"{count} items make no batch of {batch_size} when a smaller last batch is dropped")
    return steps


def _check(inputs: int, targets: int, batch_size: int) -> None:
    if inputs == 0:
        raise RequestError("there are no data to train on: the part is empty")
    if inputs != targets:
        raise RequestError(f"there are {inputs} inputs and {targets} targets; each input needs its target")
    if batch_size < 1:
        raise RequestError(f"a batch needs at least one item, not {batch_size}")


__all__ = ["Batch", "DatasetFeed", "Feed", "LoaderFeed", "Preparation", "ResidentFeed"]
