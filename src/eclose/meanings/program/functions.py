"""Functions, normalisations and what makes vectors, as programs."""

from __future__ import annotations

from eclose.meanings.program.blocks import activate, axes, drop, normalise, pointwise
from eclose.meanings.program.emitter import Site
from eclose.meanings.program.ir import Tensor


def unary(site: Site, x: Tensor) -> Tensor:
    """The unary function of the operator's name."""
    return activate(site, x, site.operator.name)


def binary(site: Site, x: Tensor, y: Tensor) -> Tensor:
    """The binary function of the operator's name."""
    return site.layer("binary", x, y, local=site.operator.name, type=x.type, name=site.operator.name)


def batch_norm(site: Site, x: Tensor) -> Tensor:
    """Over the batch and all positions."""
    return normalise(site, x, "batch", affine=site.value("affine"))


def instance_norm(site: Site, x: Tensor) -> Tensor:
    """Over all positions of each channel."""
    return normalise(site, x, "instance", affine=site.value("affine"))


def layer_norm(site: Site, x: Tensor) -> Tensor:
    """Over channels and positions."""
    return normalise(site, x, "layer", affine=site.value("affine"))


def channel_norm(site: Site, x: Tensor) -> Tensor:
    """Over the channels of each position."""
    return normalise(site, x, "channel", affine=site.value("affine"))


def group_norm(site: Site, x: Tensor) -> Tensor:
    """Over groups of channels."""
    return normalise(site, x, "group", affine=site.value("affine"), groups=site.value("groups"))


def dropout(site: Site, x: Tensor) -> Tensor:
    """Entries zeroed while training."""
    return drop(site, x, site.value("rate"))


def global_pool(site: Site, x: Tensor) -> Tensor:
    """The mean over all positions; a vector has no positions and stays as it is."""
    return site.layer("global_pool", x) if axes(x) > 0 else x


def flatten(site: Site, x: Tensor) -> Tensor:
    """All numbers in one vector; a vector stays as it is."""
    return site.layer("flatten", x) if axes(x) > 0 else x


def linear(site: Site, x: Tensor) -> Tensor:
    """A linear map of a vector, or of the channels at every position."""
    features = site.term.get("features", x.shape[0])
    return pointwise(site, x, features, bias=site.value("bias"), local="linear")
