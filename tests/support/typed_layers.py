"""Operators that give an attention and a kernel, for tests of values of several types."""

from eclose.algebra.declarations import Operator
from eclose.algebra.registry import Registry, default_registry


def registry_with_types() -> Registry:
    """Return the operators that ship with `gate`, an attention, and `window` and `point`, kernels of 3 and 1."""
    registry = default_registry().copy()
    for name, result in (("gate", "attention"), ("window", "kernel"), ("point", "kernel")):
        meanings = {"program": f"support.typed_layers:{name}"}
        registry.add(Operator(name, f"a {result} for tests", result=result, meanings=meanings))
    return registry


def gate(site, x):
    """Emit the sigmoid of each channel's mean."""
    mean = site.layer("global_pool", x, type="attention", keep=True)
    return site.layer("function", mean, type="attention", name="sigmoid")


def kernel(site, x, size):
    """Emit for each channel the products of its values with a learned code of each tap."""
    axes = len(x.shape) - 1
    ones = (1,) * axes
    taps = {"kernel": ones, "stride": ones, "padding": (0,) * axes, "dilation": ones}
    codes = site.layer("conv", x, local="codes", channels=size**axes, **taps)
    return site.layer("as_kernel", site.layer("context", x, codes), type="kernel", kernel=(size,) * axes)


def window(site, x):
    """Emit a kernel of size 3."""
    return kernel(site, x, 3)


def point(site, x):
    """Emit a kernel of size 1."""
    return kernel(site, x, 1)
