"""The number format of a training: float32, or mixed with bfloat16 or float16 where the device has it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from eclose.algebra.errors import RequestError, did_you_mean

REQUESTS = ("float32", "mixed", "bfloat16", "float16")


@dataclass(frozen=True)
class Precision:
    """What a request for a number format came to on a device.

    Attributes:
        dtype: the type matrix products and convolutions are done in, or None for float32 throughout.
        scaled: whether losses are scaled, because small float16 gradients would vanish.
        note: what was asked for and is not done, and why; empty when all is done.
    """

    dtype: torch.dtype | None = None
    scaled: bool = False
    note: str = ""


def resolve_precision(request: str, device: torch.device) -> Precision:
    """Return what a request means on a device: `"mixed"` takes the best there is, a named type is taken or refused."""
    if request not in REQUESTS:
        hint = did_you_mean(str(request), REQUESTS) or f" (known: {', '.join(REQUESTS)})"
        raise RequestError(f"unknown precision {request!r}{hint}")
    if request == "float32":
        return Precision()
    on_gpu = device.type == "cuda"
    if request == "mixed":
        if not on_gpu:
            return Precision(note=f"mixed precision is off on {device.type}: float32 is used")
        return Precision(torch.bfloat16) if _has_bfloat16(device) else Precision(torch.float16, scaled=True)
    if request == "float16":
        if not on_gpu:
            raise RequestError(
                f"float16 training needs a CUDA device, not {device.type}; use bfloat16, mixed or float32"
            )
        return Precision(torch.float16, scaled=True)
    if on_gpu and not _has_bfloat16(device):
        raise RequestError(f"{torch.cuda.get_device_name(device)} has no bfloat16; use float16, mixed or float32")
    return Precision(torch.bfloat16)


def _has_bfloat16(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= (8, 0)


__all__ = ["REQUESTS", "Precision", "resolve_precision"]
