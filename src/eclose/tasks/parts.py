"""The parts of a task: where their items come from and the three views a training loop may take of them.

Arrays and tensors are *resident* (they can live on the device); a `Dataset` is read item by item; a `DataLoader` is
used as the user built it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from eclose.algebra.errors import EcloseError, RequestError
from eclose.tasks.checks import as_tensor, check_pair, one_line
from eclose.tasks.splits import split

if TYPE_CHECKING:
    from torch import Tensor

PARTS = ("train", "valid", "test", "search")


class Source(Protocol):
    """Where a part's items come from."""

    def __len__(self) -> int: ...

    def resident(self) -> tuple[Tensor, Tensor] | None:
        """All inputs and targets as tensors, or None where they cannot be held."""

    def dataset(self) -> Any:
        """A map-style view of the items."""

    def loader(self) -> Any:
        """The user's own loader, or None."""

    def example(self) -> tuple[Any, Any]:
        """The first item."""


class Arrays:
    """Inputs and targets in memory (or memory-mapped), or some rows of them."""

    def __init__(self, inputs: Tensor, targets: Tensor, rows: Tensor | None = None):
        self.inputs, self.targets, self.rows = inputs, targets, rows
        self._chosen: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return len(self.inputs) if self.rows is None else len(self.rows)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_chosen": None}

    def take(self, rows: Any) -> Arrays:
        """Return some of the items."""
        import torch

        rows = torch.as_tensor(rows)
        return Arrays(self.inputs, self.targets, rows if self.rows is None else self.rows[rows])

    def resident(self) -> tuple[Tensor, Tensor]:
        """All inputs and targets as tensors."""
        if self.rows is None:
            return self.inputs, self.targets
        if self._chosen is None:
            self._chosen = self.inputs[self.rows], self.targets[self.rows]
        return self._chosen

    def dataset(self) -> Any:
        """A `TensorDataset` of the items."""
        from torch.utils.data import TensorDataset

        return TensorDataset(*self.resident())

    def loader(self) -> None:
        """No user's loader."""

    def example(self) -> tuple[Tensor, Tensor]:
        """The first item."""
        row = 0 if self.rows is None else int(self.rows[0])
        return self.inputs[row], self.targets[row]


@dataclass
class Items:
    """A map-style dataset of `(input, target)` items."""

    items: Any

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: Any) -> Items:
        """Return some of the items."""
        from torch.utils.data import Subset

        return Items(Subset(self.items, [int(row) for row in rows]))

    def resident(self) -> None:
        """Not held: an item may be different every time it is read."""

    def dataset(self) -> Any:
        """The dataset itself."""
        return self.items

    def loader(self) -> None:
        """No user's loader."""

    def example(self) -> tuple[Any, Any]:
        """The first item, without moving torch's global generator."""
        import torch

        with torch.random.fork_rng(devices=[]):
            return _numbers(_pair(self.items[0], "item"), "item")


@dataclass
class Batches:
    """A `DataLoader` as the user built it."""

    batches: Any
    first: tuple[Any, Any] | None = None

    def __len__(self) -> int:
        items = getattr(self.batches, "dataset", None)
        if hasattr(items, "__len__"):
            return len(items)  # type: ignore[arg-type]
        size = getattr(self.batches, "batch_size", None)
        if hasattr(self.batches, "__len__") and size:
            with suppress(TypeError):  # a loader over an IterableDataset has a length that fails
                return len(self.batches) * int(size)
        raise RequestError("this loader does not say how many items it gives; give its dataset a __len__")

    def resident(self) -> None:
        """Not held."""

    def dataset(self) -> Any:
        """The dataset behind the loader."""
        items = getattr(self.batches, "dataset", None)
        if items is None or not hasattr(items, "__getitem__") or not hasattr(items, "__len__"):
            raise RequestError("this loader has no map-style dataset behind it; read it with part.loader()")
        return items

    def loader(self) -> Any:
        """The loader itself."""
        return self.batches

    def example(self) -> tuple[Any, Any]:
        """The first item of the first batch, read once, without moving torch's or the loader's generator."""
        import torch

        if self.first is None:
            generator = getattr(self.batches, "generator", None)
            state = generator.get_state() if generator is not None else None
            with torch.random.fork_rng(devices=[]):
                batch = next(iter(self.batches), None)
            if generator is not None:
                generator.set_state(state)
            self.first = self._first(batch)
        return self.first

    @staticmethod
    def _first(batch: Any) -> tuple[Any, Any]:
        if batch is None:
            raise RequestError(
                "this loader gives no batch: it has fewer items than a batch and drop_last=True, or none"
            )
        inputs, targets = _numbers(_pair(batch, "batch"), "batch")
        if not getattr(inputs, "ndim", 0) or not getattr(targets, "ndim", 0):
            raise RequestError("this loader gives single items; give it a batch_size")
        if len(inputs) != len(targets):
            raise RequestError(f"the first batch has {len(inputs)} inputs but {len(targets)} targets")
        if len(inputs) == 0:
            raise RequestError("this loader's first batch is empty")
        return inputs[0], targets[0]


def _pair(item: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise RequestError(f"each {what} must be a pair (input, target), not {type(item).__name__}")
    return item[0], item[1]


def _numbers(pair: tuple[Any, Any], what: str) -> tuple[Any, Any]:
    import numpy as np
    import torch

    for value, name in zip(pair, ("input", "target"), strict=True):
        if not isinstance(value, torch.Tensor | np.ndarray | np.generic | int | float):
            raise RequestError(
                f"the {name} of each {what} must be a tensor or an array, not {type(value).__name__}; convert it in "
                "the dataset (for pictures: a transform to tensors)"
            )
    return pair


def as_source(data: Any, part: str) -> Arrays | Items | Batches:
    """Return the source that a user's data for one part is: a pair of arrays, a `Dataset` or a `DataLoader`."""
    from torch.utils.data import DataLoader, IterableDataset, TensorDataset

    if isinstance(data, Arrays | Items | Batches):
        return data
    if isinstance(data, DataLoader):
        source: Arrays | Items | Batches = Batches(data)
    elif isinstance(data, IterableDataset):
        raise RequestError(
            f"the {part} part is an IterableDataset; wrap it in a DataLoader, which says how to batch it"
        )
    elif isinstance(data, TensorDataset) and len(data.tensors) == 2:
        return as_source(data.tensors, part)
    elif isinstance(data, tuple | list) and len(data) == 2 and _like_arrays(data):
        inputs, targets = as_tensor(data[0], f"{part} inputs"), as_tensor(data[1], f"{part} targets")
        check_pair(inputs, targets, part)
        return Arrays(inputs, targets)
    elif _map_style(data):
        source = Items(data)
    else:
        raise RequestError(
            f"the {part} part must be a pair (inputs, targets) of arrays or tensors, a Dataset or a DataLoader, "
            f"not {type(data).__name__}"
        )
    if len(source) == 0:
        raise RequestError(f"the {part} part is empty")
    try:
        source.example()
    except EcloseError as error:
        raise type(error)(f"{part} part: {error}") from error
    except Exception as error:
        raise RequestError(
            f"the first item of the {part} part cannot be read ({type(error).__name__}: {one_line(error)})"
        ) from error
    return source


def _map_style(data: Any) -> bool:
    if _like_array(data) or isinstance(data, str | bytes | Mapping):
        return False
    return hasattr(data, "__getitem__") and hasattr(data, "__len__")


def _like_array(data: Any) -> bool:
    return hasattr(data, "shape") and hasattr(data, "dtype")


def _like_arrays(pair: Any) -> bool:
    """Tell `(inputs, targets)` from a list of two `(input, target)` items."""
    return all(_like_array(values) or isinstance(values, list) for values in pair) or not any(
        isinstance(values, tuple | list) for values in pair
    )


def joined(first: Arrays | Items | Batches, second: Arrays | Items | Batches) -> Arrays | Items:
    """Return the items of two sources together; rows of the same arrays come back in their own order."""
    import torch
    from torch.utils.data import ConcatDataset

    if isinstance(first, Batches) or isinstance(second, Batches):
        raise RequestError("two loaders cannot be joined; give arrays or datasets to train on train and valid together")
    if isinstance(first, Arrays) and isinstance(second, Arrays):
        if first.rows is not None and second.rows is not None and first.inputs is second.inputs:
            rows = torch.cat([first.rows, second.rows]).sort().values
            return Arrays(first.inputs, first.targets, None if len(rows) == len(first.inputs) else rows)
        pairs = zip(first.resident(), second.resident(), strict=True)
        return Arrays(*(torch.cat(pair) for pair in pairs))
    return Items(ConcatDataset([first.dataset(), second.dataset()]))


def known_labels(source: Arrays | Items | Batches) -> Any:
    """Return one whole-number label an item where that costs no reading of items, else None."""
    import numpy as np
    import torch

    if isinstance(source, Arrays):
        targets = source.targets if source.rows is None else source.targets[source.rows]
        return targets.numpy() if targets.dim() == 1 and not targets.is_floating_point() else None
    items = source.items if isinstance(source, Items) else getattr(source.batches, "dataset", None)
    rows = None
    while isinstance(items, torch.utils.data.Subset):
        rows = np.asarray(items.indices) if rows is None else np.asarray(items.indices)[rows]
        items = items.dataset
    if getattr(items, "target_transform", None) is not None:
        return None  # what the dataset lists is not what it gives
    labels = getattr(items, "targets", getattr(items, "labels", None))
    if isinstance(items, torch.utils.data.TensorDataset) and len(items.tensors) == 2:
        labels = items.tensors[1]
    if labels is None or not hasattr(items, "__len__") or not hasattr(labels, "__len__"):
        return None
    array, known = np.asarray(labels), cast(Sized, items)
    if array.ndim != 1 or array.dtype.kind not in "iub" or len(array) != len(known):
        return None
    return array.astype(np.int64) if rows is None else array[rows].astype(np.int64)


class Part:
    """One part of a task: `train`, `valid`, `test`, or `search` (train and valid together).

    Args:
        name: which part.
        source: where its items come from.
        allowed: called before every access; raises while the part must not be read.
    """

    def __init__(self, name: str, source: Arrays | Items | Batches, allowed: Callable[[str], None]):
        self.name = name
        self._source = source
        self._allowed = allowed

    def __len__(self) -> int:
        return len(self._source)

    def __repr__(self) -> str:
        return f"<part {self.name!r} of {len(self)} items>"

    def resident(self) -> tuple[Tensor, Tensor] | None:
        """Return all inputs and targets as tensors (uint8 images stay uint8), or None where they cannot be held."""
        self._allowed(self.name)
        return self._source.resident()

    def dataset(self) -> Any:
        """Return a map-style dataset of `(input, target)` items."""
        self._allowed(self.name)
        return self._source.dataset()

    def loader(self) -> Any:
        """Return the user's own `DataLoader`, or None."""
        self._allowed(self.name)
        return self._source.loader()

    def cut(self, share: float | int, seed: int, names: tuple[str, str]) -> tuple[Part, Part]:
        """Return what is kept and what is held out of this part, as parts with names of their own.

        Args:
            share: the share (or number) of items held out, where classes are known every class giving its own.
            seed: another seed holds out other items.
            names: of the two.
        """
        self._allowed(self.name)
        if isinstance(self._source, Batches):
            raise RequestError("a loader cannot be cut in two: its batches are its own; give arrays or a dataset")
        kept, held = split(len(self._source), share, seed, known_labels(self._source))
        first, second = (
            Part(name, self._source.take(rows), self._allowed_as(self.name))
            for name, rows in zip(names, (kept, held), strict=True)
        )
        return first, second

    def _allowed_as(self, name: str) -> Callable[[str], None]:
        """Return a guard that lets a piece be read whenever the whole may be."""
        return lambda _: self._allowed(name)

    def batches(self, size: int) -> Iterator[tuple[Any, Any]]:
        """Yield the items in order, `size` at a time: for looking at data, not for training."""
        self._allowed(self.name)
        loader = self._source.loader()
        if loader is None:
            from torch.utils.data import DataLoader

            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise RequestError(f"size is a number of items, not {size!r}")
            loader = DataLoader(self._source.dataset(), batch_size=size)
        for batch in loader:
            self._allowed(self.name)  # a search may have begun since the last batch
            yield batch


__all__ = ["PARTS", "Arrays", "Batches", "Items", "Part", "as_source", "joined", "known_labels"]
