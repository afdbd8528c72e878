"""What a supernet has learned, handed to a wider one: channels replicated as in Net2Wider, without rescaling.

DrNAS (Chen et al., 2021) searches with C/K channels in its mixtures, then with more. Both nets are of one term with
different `partial(k=...)`, so their parameters have the same names. Of a tensor that is larger in the new net the old
entries stay in their places and the others are copies of channels drawn at random. Net2Wider (Chen et al., 2016) would
divide by the number of copies to keep the function; DrNAS's reference does not, and neither does this.

The channels drawn are a function of (seed, operation, old size, new size): the tensors of one operation agree about
them (a convolution and the statistics of its normalisation), and so does the momentum of a tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.randomness import derived
from eclose.meanings.torch.net import Net

Indices: TypeAlias = tuple[Tensor | None, ...]
"""For each dimension which old entry each new one is; None where the size stays."""

ALPHAS = "alphas."
CHANNEL_AXES = 2  # output channels, input channels; what lies behind is a window, which never grows


def widen(old: Net, new: Net, seed: int) -> None:
    """Copy all parameters and buffers of a net into a wider one; alphas are copied as they are.

    Args:
        old: the net that was trained.
        new: of the same term with more channels in its `partial(...)`, changed in place.
        seed: of the channels that are replicated; nothing is drawn from the global generator.
    """
    sources, indices = _tensors(old), indices_between(old, new, seed)
    with torch.no_grad():
        for name, target in _tensors(new).items():
            target.copy_(widened(sources[name], indices[name]))


def widen_state(state: Mapping[str, Mapping[str, Any]], old: Net, new: Net, seed: int) -> dict[str, dict[str, Any]]:
    """Return an optimiser's state for the wider net, replicated as the parameters were.

    What has the shape of its parameter (`momentum_buffer`, Adam's moments) is widened, anything else is copied.

    Args:
        state: for each parameter's name in `old` what its optimiser keeps for it; parameters may be left out.
        old: the net that was trained.
        new: the net that it was widened to.
        seed: the one that `widen` was given.
    """
    tensors, indices = _tensors(old), indices_between(old, new, seed)
    result: dict[str, dict[str, Any]] = {}
    for name, entries in state.items():
        if name not in tensors:
            raise RequestError(f"the old network has no parameter {name!r}{did_you_mean(name, tensors)}")
        result[name] = {key: _carried(name, key, value, tensors[name], indices[name]) for key, value in entries.items()}
    return result


def _carried(name: str, key: str, value: Any, parameter: Tensor, indices: Indices) -> Any:
    if not isinstance(value, Tensor):
        return value
    if value.shape == parameter.shape:
        return widened(value, indices)
    if value.dim() == 0:  # a count of steps
        return value.detach().clone()
    raise RequestError(f"{key} of {name} has shape {tuple(value.shape)}, its parameter {tuple(parameter.shape)}")


def indices_between(old: Net, new: Net, seed: int) -> dict[str, Indices]:
    """Return for each parameter and buffer which old entries the new ones are, or raise where a net is not wider."""
    sources, targets = _tensors(old), _tensors(new)
    for names, others, which in ((sources, targets, "new"), (targets, sources, "old")):
        missing = [name for name in names if name not in others]
        if missing:
            raise RequestError(
                f"the {which} network has no {missing[0]!r}{did_you_mean(missing[0], others)}: only the k of partial "
                f"may differ between the two ({len(missing)} of {len(names)} tensors are missing)"
            )
    return {
        name: _indices(name, tuple(sources[name].shape), tuple(target.shape), seed) for name, target in targets.items()
    }


def _indices(name: str, before: tuple[int, ...], after: tuple[int, ...], seed: int) -> Indices:
    if before == after:
        return (None,) * len(before)
    shapes = f"{name} has shape {before} in the old network and {after} in the new one"
    if name.startswith(ALPHAS):
        raise RequestError(f"{shapes}: alphas are copied as they are, so the choices must stay the same")
    if len(before) != len(after) or any(new < old for old, new in zip(before, after, strict=True)):
        raise RequestError(f"{shapes}: widening gives more channels, never fewer; k must fall from stage to stage")
    if before[CHANNEL_AXES:] != after[CHANNEL_AXES:]:
        raise RequestError(f"{shapes}: only channels can be widened, not the size of a window or an input")
    return tuple(None if m == n else replicated(name, n, m, seed) for n, m in zip(before, after, strict=True))


def replicated(name: str, before: int, after: int, seed: int) -> Tensor:  # shape: (after,)
    """Return the old channels in order, then random ones of them; the same for all tensors of an operation."""
    operation = name.rpartition(".")[0].rpartition("/")[0]  # layers.<operation>/<layer>.weight
    rng = derived(seed, "widening", operation, before, after)
    return torch.tensor([*range(before), *(rng.randrange(before) for _ in range(after - before))])


def widened(tensor: Tensor, indices: Indices) -> Tensor:
    """Return a copy of a tensor with its channels replicated."""
    result = tensor.detach().clone()
    for axis, index in enumerate(indices):
        if index is not None:
            result = result.index_select(axis, index.to(result.device))
    return result


def _tensors(net: Net) -> dict[str, Tensor]:
    return {**dict(net.named_parameters()), **dict(net.named_buffers())}


__all__ = ["indices_between", "replicated", "widen", "widen_state", "widened"]
