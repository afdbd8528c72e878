"""The convolution family as programs.

Every strided operation pads explicitly, so a size n becomes ceil(n / stride) for all of them, odd sizes included.
"""

from __future__ import annotations

from eclose.meanings.program.blocks import activate, axes, convolve, normalise, pool
from eclose.meanings.program.emitter import Site
from eclose.meanings.program.ir import Tensor


def conv(site: Site, x: Tensor) -> Tensor:
    """A convolution, its activation and its normalisation in the order that the term gives."""
    channels = site.channels(x)
    order = site.value("order").split("-")
    bias = site.value("bias")
    if bias is None:  # the inherited bias is for what a normalisation without shift follows
        bias = site.context.conv_bias and "norm" in order
    for part in order:
        if part == "act":
            x = activate(site, x, site.value("activation"))
        elif part == "norm":
            x = normalise(site, x, site.value("norm"))
        else:
            x = convolve(
                site,
                x,
                channels,
                site.value("kernel"),
                stride=site.stride,
                dilation=site.value("dilation"),
                padding=site.value("padding"),
                groups=x.shape[0] if site.value("depthwise") else site.value("groups"),
                bias=bias,
            )
    return x


def separable(site: Site, x: Tensor, channels: int, kernel: int, stride: int, dilation: int = 1) -> Tensor:
    """ReLU, depthwise convolution, 1x1 convolution, BN."""
    x = activate(site, x)
    x = convolve(site, x, x.shape[0], kernel, stride=stride, dilation=dilation, groups=x.shape[0], local="depthwise")
    x = convolve(site, x, channels, bias=site.context.conv_bias, local="pointwise")
    return normalise(site, x)


def sep_conv(site: Site, x: Tensor) -> Tensor:
    """Two depthwise-separable convolutions; the first has the stride, the second the output channels."""
    channels, kernel = site.channels(x), site.value("kernel")
    return separable(site, separable(site, x, x.shape[0], kernel, site.stride), channels, kernel, 1)


def dil_conv(site: Site, x: Tensor) -> Tensor:
    """One depthwise-separable convolution with dilation."""
    return separable(site, x, site.channels(x), site.value("kernel"), site.stride, site.value("dilation"))


def axial_conv(site: Site, x: Tensor) -> Tensor:
    """One convolution along each axis, the last axis first."""
    channels, stride = site.channels(x), site.stride
    x = activate(site, x)
    for axis in reversed(range(axes(x))):
        kernel = tuple(site.value("kernel") if other == axis else 1 for other in range(axes(x)))
        steps = tuple(stride if other == axis else 1 for other in range(axes(x)))
        x = convolve(site, x, channels, kernel, stride=steps)
    return normalise(site, x)


def max_pool(site: Site, x: Tensor) -> Tensor:
    """The maximum of each window."""
    return pooled(site, x, "max_pool")


def avg_pool(site: Site, x: Tensor) -> Tensor:
    """The mean of each window."""
    return pooled(site, x, "avg_pool")


def pooled(site: Site, x: Tensor, kind: str) -> Tensor:
    """A pooling, with the BN that follows it in supernets."""
    x = pool(site, x, kind, site.value("kernel"), site.stride, site.value("padding"))
    return normalise(site, x, affine=False) if site.context.pool_norm else x


def identity(site: Site, x: Tensor) -> Tensor:
    """The input, or a FactorizedReduce where a stride is asked."""
    if site.stride == 1:
        return x
    if site.stride != 2:
        site.fail(f"id can have a stride of 1 or 2, not {site.stride}")
    return reduced(site, x)


def factorized_reduce(site: Site, x: Tensor) -> Tensor:
    """Half the resolution without a pooling; an inherited stride is used up."""
    site.stride_read = True
    return reduced(site, x)


def reduced(site: Site, x: Tensor) -> Tensor:
    """ReLU; 1x1 convolutions of stride 2 on x and on x shifted by one position; concatenated; BN."""
    channels = site.channels(x)
    if channels < 2:
        site.fail("a FactorizedReduce needs at least 2 output channels, one for each of its convolutions")
    x = activate(site, x)
    moved = site.layer("shift", x, padding=tuple(size % 2 for size in x.shape[1:]))
    bias = site.context.conv_bias
    halves = [
        convolve(site, x, channels // 2, stride=2, bias=bias, local="even"),
        convolve(site, moved, channels - channels // 2, stride=2, bias=bias, local="odd"),
    ]
    return normalise(site, site.layer("concat", *halves))


def zero(site: Site, x: Tensor) -> Tensor:
    """Zeros of the subsampled shape."""
    return site.layer("zero", x, stride=(site.stride,) * axes(x))


def noise(site: Site, x: Tensor) -> Tensor:
    """Noise of the subsampled shape."""
    return site.layer("noise", x, stride=(site.stride,) * axes(x))


def down(site: Site, x: Tensor) -> Tensor:
    """Two ReLU-Conv-BN, the first with stride 2, plus a 2x2 mean and a 1x1 convolution as shortcut.

    On an axis of odd size the shortcut's windows begin one position earlier, so that both paths give ceil(n / 2).
    """
    site.stride_read = True
    channels = site.term.get("channels", 2 * x.shape[0])
    residual = x
    for stride in (2, 1):
        residual = convolve(site, activate(site, residual), channels, 3, stride=stride)
        residual = normalise(site, residual)
    shortcut = pool(site, x, "avg_pool", 2, 2, tuple(size % 2 for size in x.shape[1:]))
    return site.layer("add", convolve(site, shortcut, channels, local="shortcut"), residual)


def up(site: Site, x: Tensor) -> Tensor:
    """A finer grid with half the channels."""
    channels, factor = site.term.get("channels", max(1, x.shape[0] // 2)), site.value("factor")
    ones = (1,) * axes(x)
    if site.value("transposed"):
        size = tuple(factor * one for one in ones)
        none = (0,) * axes(x)
        x = site.layer(
            "conv_transpose", x, channels=channels, kernel=size, stride=size, padding=none, output_padding=none
        )
    else:
        x = convolve(site, upsample(site, x), channels, 3)
    return activate(site, normalise(site, x))


def upsample(site: Site, x: Tensor) -> Tensor:
    """Every position repeated."""
    return site.layer("upsample", x, factor=(site.value("factor"),) * axes(x))
