"""Attention, MLP and positions as programs; they work on any grid of positions."""

from __future__ import annotations

from eclose.meanings.program.blocks import activate, axes, drop, normalise, pointwise
from eclose.meanings.program.emitter import Site
from eclose.meanings.program.ir import Tensor


def attention(site: Site, x: Tensor) -> Tensor:
    """Queries, keys and values of the channels, attention in each head, output projection."""
    if axes(x) < 1:
        site.fail(f"attention needs channels and positions, but the input has shape {x.shape}")
    parts = [pointwise(site, x, x.shape[0], local=local) for local in ("query", "key", "value")]
    mixed = site.layer("attention", *parts, heads=site.value("heads"), causal=site.value("causal"))
    return drop(site, pointwise(site, mixed, x.shape[0], local="output"), site.value("dropout"))


def mlp(site: Site, x: Tensor) -> Tensor:
    """The channels widened, an activation, the channels as before."""
    hidden = pointwise(site, x, site.value("ratio") * x.shape[0], local="widen")
    hidden = activate(site, hidden, site.value("activation"))
    return drop(site, pointwise(site, hidden, x.shape[0], local="narrow"), site.value("dropout"))


def encoder_block(site: Site, x: Tensor) -> Tensor:
    """The pre-norm layer of a transformer encoder."""
    x = site.layer("add", x, attention(site, normalise(site, x, "channel")))
    return site.layer("add", x, mlp(site, normalise(site, x, "channel")))


def positions(site: Site, x: Tensor) -> Tensor:
    """A learned table added to the input."""
    return site.layer("positions", x)
