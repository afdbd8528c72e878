"""Stems and heads as programs.

They are no part of what a search relaxes, so their normalisations have scale and shift whatever is inherited.
"""

from __future__ import annotations

from eclose.algebra.shapes import Classes, Map, Tokens, Values
from eclose.meanings.program.blocks import activate, as_vector, axes, convolve, drop, normalise, pointwise, pool
from eclose.meanings.program.emitter import Site
from eclose.meanings.program.ir import Tensor


def stem(site: Site, x: Tensor) -> Tensor:
    """The first layer that the input needs."""
    site.stride_read = True
    if x.type == "tokens":
        return embedded(site, x, site.value("channels"))
    if axes(x) < 1:
        return pointwise(site, x, site.value("channels"), local="linear")
    x = convolve(site, x, site.value("channels"), site.value("kernel"), stride=site.value("stride"))
    return normalise(site, x, affine=True)


def embedding(site: Site, x: Tensor) -> Tensor:
    """A vector for each token."""
    return embedded(site, x, site.value("channels"), site.value("positions"))


def embedded(site: Site, x: Tensor, channels: int, positions: bool = True) -> Tensor:
    """Token ids as vectors, with positions."""
    vocab = site.term.get("vocab", site.vocab)
    if x.type != "tokens" or vocab is None:
        site.fail("an embedding needs tokens as its input: build with input=Tokens(length, vocab)")
    if site.vocab is not None and vocab < site.vocab:
        site.fail(f"an embedding of {vocab} tokens cannot read the network's input of tokens below {site.vocab}")
    x = site.layer("embedding", x, vocab=vocab, dim=channels)
    return site.layer("positions", x) if positions else x


def imagenet_stem0(site: Site, x: Tensor) -> Tensor:
    """Two convolutions of stride 2."""
    site.stride_read = True
    channels = site.value("channels")
    x = normalise(site, convolve(site, x, channels // 2, 3, stride=2), affine=True)
    return normalise(site, convolve(site, activate(site, x), channels, 3, stride=2), affine=True)


def imagenet_stem1(site: Site, x: Tensor) -> Tensor:
    """One convolution of stride 2."""
    site.stride_read = True
    x = convolve(site, activate(site, x), site.value("channels"), 3, stride=2)
    return normalise(site, x, affine=True)


def head(site: Site, x: Tensor) -> Tensor:
    """The output that the term or the network asks for."""
    output = Classes(site.value("classes")) if site.value("classes") is not None else site.output
    if output is None:
        site.fail("a head must know what it gives: build with classes= or output=, or write head(classes=10)")
    if site.value("norm"):
        x = activate(site, normalise(site, x, affine=True))
    if isinstance(output, Classes | Values):
        x = drop(site, as_vector(site, x), site.value("dropout"))
        return site.layer("linear", x, type="logits", features=output.count)
    if axes(x) < 1:
        site.fail(f"a head for {output} needs positions, but the input has shape {x.shape}")
    x = drop(site, x, site.value("dropout"))
    if isinstance(output, Tokens):
        return pointwise(site, x, output.vocab, local="linear", type="logits")
    return map_head(site, x, output)


def map_head(site: Site, x: Tensor, output: Map) -> Tensor:
    """A 1x1 convolution at the resolution of the network's input."""
    sizes = () if isinstance(site.input, Tokens) else site.input[1:]
    if len(sizes) != axes(x):
        site.fail(f"a head for {output} needs as many axes as the network's input {site.input}, not those of {x.shape}")
    if x.shape[1:] != sizes:
        x = site.layer("resize", x, size=sizes)
    return pointwise(site, x, output.channels, local="linear", type="map")


def auxiliary_head(site: Site, x: Tensor) -> Tensor:
    """The side output of DARTS; its 2x2 convolution leaves one position of the feature it was made for."""
    output = Classes(site.value("classes")) if site.value("classes") is not None else site.output
    if not isinstance(output, Classes):
        site.fail("an auxiliary head gives classes: build with classes=, or write auxiliary_head(classes=10)")
    x = pool(site, activate(site, x), "avg_pool", 5, site.value("stride"), 0)
    x = activate(site, normalise(site, convolve(site, x, 128), affine=True))
    x = convolve(site, x, 768, 2, padding=0)
    if site.value("norm"):
        x = normalise(site, x, affine=True)
    x = as_vector(site, activate(site, x))
    return site.layer("linear", x, type="logits", features=output.count)
