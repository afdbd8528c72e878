"""A built network as a `torch.export` program, for runtimes that know nothing of eclose."""

from __future__ import annotations

import torch
from torch.export import Dim, ExportedProgram, export

from eclose.meanings.torch.net import Net


def exported(net: Net, batch: int | None = None) -> ExportedProgram:
    """Return the network in evaluation mode as an exported program.

    Args:
        net: a built network; it is left as it was.
        batch: the only batch size that the program accepts; any from 1 on without.
    """
    example = example_input(net, 2 if batch is None else batch)
    shapes = ({0: Dim("batch", min=1)},) if batch is None else None
    training = net.training
    net.eval()
    try:
        return export(net, (example,), dynamic_shapes=shapes)
    finally:
        net.train(training)


def example_input(net: Net, batch: int) -> torch.Tensor:
    """Return a batch of zeros of the shape and kind that the network takes."""
    parameter = next(net.parameters(), None)
    device = parameter.device if parameter is not None else torch.device("cpu")
    dtype = parameter.dtype if parameter is not None else torch.get_default_dtype()
    if net.program.input_type == "tokens":
        dtype = torch.long
    return torch.zeros(batch, *net.program.input_shape, dtype=dtype, device=device)


__all__ = ["example_input", "exported"]
