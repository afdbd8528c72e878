"""What data must be before it is trained on: every message names the part, the item and what would be right."""

from __future__ import annotations

import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError, shortened
from eclose.algebra.shapes import Classes, Input, Map, Output, Tokens, Values

if TYPE_CHECKING:
    from torch import Tensor

LOWEST = {"binary-cross-entropy": 0, "frame-negative-log-likelihood": -1}  # -1: behind a sequence's end
IGNORED = -100  # torch's own mark for a label that does not count
CHUNK = 1 << 24  # numbers looked at in one go, so that memory-mapped data is not copied whole


def as_tensor(values: Any, what: str) -> Tensor:
    """Return numbers as a tensor that shares memory where it can: bool and wide floats become float32.

    Args:
        values: a tensor, an array, or nested lists of numbers.
        what: `"train inputs"`, for messages.
    """
    import numpy as np
    import torch

    if not isinstance(values, torch.Tensor):
        mapped = isinstance(values, np.memmap)
        try:
            array = np.asarray(values)
        except ValueError:
            raise RequestError(f"the {what} are not one array: the items differ in shape") from None
        if array.dtype == object:
            raise RequestError(f"the {what} are not one array of numbers: the items differ in shape or are objects")
        if array.dtype.kind not in "buif":
            raise RequestError(f"the {what} must be numbers, not {array.dtype} (first: {_first(array)})")
        if array.dtype.kind == "u" and array.dtype != np.uint8:
            array = array.astype(np.int64)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if array.dtype.kind == "f" and array.dtype.itemsize > 8:
            array = array.astype(np.float32)
        if any(stride < 0 for stride in array.strides) or not (array.flags.writeable or mapped):
            array = array.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a read-only memory map stays one: nothing here writes to data
            values = torch.from_numpy(array)
    if values.layout != torch.strided or values.is_quantized:
        raise RequestError(f"the {what} must be a dense tensor, not {values.layout}")
    if values.is_complex():
        raise RequestError(f"the {what} must be real numbers, not {values.dtype}")
    if values.requires_grad:
        values = values.detach()
    if values.device.type != "cpu":
        values = values.cpu()  # training moves data to its device itself
    if values.dtype in (torch.uint16, torch.uint32, torch.uint64):
        values = values.to(torch.int64)
    column = values.dim() == 0 or (values.dim() == 1 and what.endswith("targets"))
    if values.dtype == torch.bool and column:
        return values.long()  # no and yes are two classes
    if values.dtype == torch.bool or (values.is_floating_point() and values.dtype != torch.float32):
        values = values.to(torch.float32)
    return values


def _first(array: Any) -> str:
    return shortened(str(array.reshape(-1)[0])) if array.size else "none"


def check_pair(inputs: Tensor, targets: Tensor, part: str) -> None:
    """Refuse a part that is empty, whose inputs and targets differ in number, or that holds NaN or infinity."""
    if inputs.dim() == 0 or targets.dim() == 0:
        raise RequestError(f"the {part} part needs one input and one target an item, not single numbers")
    if len(inputs) != len(targets):
        raise RequestError(f"the {part} part has {len(inputs)} inputs but {len(targets)} targets")
    if len(inputs) == 0 or inputs.numel() == 0:
        raise RequestError(f"the {part} part is empty")
    for values, what in ((inputs, "inputs"), (targets, "targets")):
        check_finite(values, f"{part} {what}")


def check_finite(values: Tensor, what: str) -> None:
    """Refuse NaN and infinity, naming the first item that has one."""
    if not values.is_floating_point():
        return
    items = max(1, CHUNK // max(1, values[0].numel())) if values.dim() else 1
    for begin in range(0, len(values), items):
        finite = values[begin : begin + items].isfinite()
        if not bool(finite.all()):
            bad = (~finite).flatten(1).any(1) if finite.dim() > 1 else ~finite
            item = begin + int(bad.nonzero()[0])
            found = values[item].flatten()
            kind = "NaN" if bool(found.isnan().any()) else "infinite values"
            raise RequestError(f"the {what} hold {kind} (first in item {item}); remove or replace them")


def check_seed(seed: Any, what: str) -> int:
    """Return a seed, a whole number of 0 or more."""
    import numpy as np

    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise RequestError(f"{what} is a whole number of 0 or more, not {seed!r}")
    return int(seed)


def check_flag(flag: Any, what: str) -> bool:
    """Return a flag, true or false."""
    if not isinstance(flag, bool):
        raise RequestError(f"{what} is true or false, not {flag!r}")
    return flag


def one_line(error: Exception) -> str:
    """Return what an error says in one line, its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def check_output(output: Output, input: Input) -> None:
    """Refuse an output of no size, and maps over inputs that have no positions."""
    count = number_of_labels(output)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise RequestError(f"an output needs a whole number of at least 1, not {output!r}")
    if isinstance(output, Map) and (isinstance(input, Tokens) or len(input) < 2):
        hint = "Tokens(vocab=...)" if isinstance(input, Tokens) else "Values(...)"
        raise RequestError(f"{_shown(output)} needs inputs with positions, (channels, ...), not {input}; use {hint}")


def check_targets(targets: Tensor, output: Output, loss: str, part: str) -> None:
    """Refuse targets whose dtype, shape or range does not fit what the network gives."""
    import torch

    labels = isinstance(output, Classes | Tokens) or (isinstance(output, Map) and not targets.is_floating_point())
    if labels and targets.is_floating_point():
        raise RequestError(
            f"the {part} targets are {str(targets.dtype).removeprefix('torch.')}, but {_shown(output)} needs "
            "whole-number labels (int64)"
        )
    if isinstance(output, Classes) and targets.dim() != 1:
        raise RequestError(
            f"the {part} targets have shape {tuple(targets.shape)}, but {_shown(output)} needs one label an item, "
            f"shape ({len(targets)},)"
        )
    if isinstance(output, Values) and targets.shape[1:] != (output.count,):
        raise RequestError(
            f"the {part} targets have shape {tuple(targets.shape)}, but {_shown(output)} needs ({len(targets)}, "
            f"{output.count})"
        )
    if loss in LOWEST and targets.is_floating_point():
        wrong = ((targets < 0) | (targets > 1)) & (targets != LOWEST[loss])
        if bool(wrong.any()):
            item = int(wrong.flatten(1).any(1).nonzero()[0] if wrong.dim() > 1 else wrong.nonzero()[0])
            found = float(torch.masked_select(targets[item], wrong[item]).flatten()[0])
            raise RequestError(f"{loss} needs targets from 0 to 1, but the {part} part (item {item}) has {found:g}")
    if labels:
        count = number_of_labels(output)
        wrong = ((targets < 0) | (targets >= count)) & (targets != IGNORED)
        if bool(wrong.any()):
            item = int(wrong.flatten(1).any(1).nonzero()[0] if wrong.dim() > 1 else wrong.nonzero()[0])
            label = int(torch.masked_select(targets[item], wrong[item]).flatten()[0])
            raise RequestError(
                f"label {label} in the {part} part (item {item}) is out of range: {_shown(output)} has the labels "
                f"0 to {count - 1}"
            )


def number_of_labels(output: Output) -> int:
    """Return how many different labels an output tells apart."""
    if isinstance(output, Classes | Values):
        return output.count
    return output.channels if isinstance(output, Map) else output.vocab


def check_every_class(labels: Any, count: int, part: str) -> None:
    """Refuse a part in which a class has no item."""
    import numpy as np

    present = set(np.unique(np.asarray(labels)).tolist())
    missing = list(islice((label for label in range(count) if label not in present), 6))
    if missing:
        named = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        if len(labels) < count:
            raise RequestError(
                f"the {part} part has {len(labels)} items for {count} classes; give it more, or pass "
                "allow_missing_classes=True"
            )
        noun, verb = ("class", "has") if len(missing) == 1 else ("classes", "have")
        raise RequestError(
            f"{noun} {named} {verb} no item in the {part} part; give it some, split with stratify=True, or pass "
            "allow_missing_classes=True"
        )


def _shown(output: Output) -> str:
    return (
        f"Tokens(vocab={output.vocab})"
        if isinstance(output, Tokens)
        else (f"{type(output).__name__}({output.channels if isinstance(output, Map) else output.count})")
    )


__all__ = [
    "as_tensor",
    "check_every_class",
    "check_finite",
    "check_flag",
    "check_output",
    "check_pair",
    "check_seed",
    "check_targets",
    "number_of_labels",
    "one_line",
]
