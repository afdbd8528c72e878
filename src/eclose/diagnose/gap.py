"""How much the loss should rise from a mixture to the architecture derived from it, by curvature.

At a minimum a in the direction of b, a Taylor expansion has L(b) - L(a) = 1/2 (b - a)^T H (b - a) + ... (Chen and
Hsieh, 2020). To be compared with the difference that is measured.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from eclose.algebra.errors import RequestError
from eclose.diagnose.hessian import Loss, product


def sharpness(loss: Loss, mixture: Mapping[str, Tensor], discrete: Mapping[str, Tensor]) -> float:
    """Return 1/2 (b - a)^T H(a) (b - a), with one product of the Hessian with a vector.

    Args:
        loss: twice differentiable in the tensors it is given.
        mixture: a, where the Hessian is taken.
        discrete: b, tensors of the same names and shapes.
    """
    if mixture.keys() != discrete.keys():
        apart = ", ".join(sorted(map(repr, mixture.keys() ^ discrete.keys())))
        raise RequestError(f"the two points have different names; only one has {apart}")
    for name, tensor in mixture.items():
        if tensor.shape != discrete[name].shape:
            shapes = f"{tuple(tensor.shape)} and {tuple(discrete[name].shape)}"
            raise RequestError(f"the two points have different shapes at {name!r}: {shapes}")
    with torch.no_grad():
        steps = [discrete[name].to(tensor) - tensor for name, tensor in mixture.items()]
        step = torch.cat([part.reshape(-1) for part in steps])
    return 0.5 * float(step @ product(loss, mixture)(step))


__all__ = ["sharpness"]
