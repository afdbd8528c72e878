"""The table of the numpy meaning: a rule for each kind of layer, in float64 and evaluation mode.

The rules are written from the descriptions in `program.layers` and share nothing with the torch meaning, so that one
can be tested against the other.
"""

from __future__ import annotations

import numpy as np

from eclose.algebra.errors import RequestError
from eclose.meanings.numpy import functions, windows
from eclose.meanings.numpy.layer import Array, Layer, Rule

EPSILON = 1e-5


def scaled(layer: Layer, x: Array) -> Array:
    """Apply the scale and shift of a normalisation, one of each a channel."""
    if not layer.settings["affine"]:
        return x
    weight, bias = (windows.over_positions(layer.parameters[name], x) for name in ("weight", "bias"))
    return x * weight + bias


def normalised(x: Array, axes: tuple[int, ...]) -> Array:
    """Return x minus its mean over its standard deviation, taken over some axes."""
    mean = x.mean(axis=axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPSILON)


def batch_norm(layer: Layer, x: Array) -> Array:
    """Normalise by the running statistics."""
    mean = windows.over_positions(layer.parameters["running_mean"], x)
    variance = windows.over_positions(layer.parameters["running_var"], x)
    return scaled(layer, (x - mean) / np.sqrt(variance + layer.settings["eps"]))


def instance_norm(layer: Layer, x: Array) -> Array:
    """Normalise each channel over its positions."""
    return scaled(layer, normalised(x, tuple(range(2, x.ndim))))


def layer_norm(layer: Layer, x: Array) -> Array:
    """Normalise each example over everything, with a scale and shift for every entry."""
    x = normalised(x, tuple(range(1, x.ndim)))
    if not layer.settings["affine"]:
        return x
    return x * layer.parameters["weight"] + layer.parameters["bias"]


def channel_norm(layer: Layer, x: Array) -> Array:
    """Normalise each position over its channels."""
    return scaled(layer, normalised(x, (1,)))


def group_norm(layer: Layer, x: Array) -> Array:
    """Normalise groups of channels."""
    grouped = x.reshape(x.shape[0], layer.settings["groups"], -1)
    return scaled(layer, normalised(grouped, (2,)).reshape(x.shape))


def linear(layer: Layer, x: Array) -> Array:
    """Return W x + b."""
    result = x @ layer.parameters["weight"].T
    return result + layer.parameters["bias"] if layer.settings["bias"] else result


def total(layer: Layer, *inputs: Array) -> Array:
    """Return the sum; axes of size 1 repeat."""
    result = np.zeros((inputs[0].shape[0], *layer.shape))
    for x in inputs:
        result = result + x
    return result


def shuffle(layer: Layer, x: Array) -> Array:
    """Take channel i of every group, for each i in turn."""
    groups = layer.settings["groups"]
    each = x.shape[1] // groups
    return x[:, [group * each + i for i in range(each) for group in range(groups)]]


def noise(layer: Layer, x: Array) -> Array:
    """Return independent N(0, 1)."""
    return layer.random.standard_normal((x.shape[0], *layer.shape))


def embedding(layer: Layer, ids: Array) -> Array:
    """Return the row of each token id, channels first."""
    return np.moveaxis(layer.parameters["weight"][ids.astype(np.int64)], -1, 1)


def softmax(layer: Layer, x: Array) -> Array:
    """Normalise exp(x) of each channel over everything behind it."""
    flat = x.reshape(*x.shape[:2], -1)
    powers = np.exp(flat - flat.max(axis=-1, keepdims=True))
    return (powers / powers.sum(axis=-1, keepdims=True)).reshape(x.shape)


def attention(layer: Layer, q: Array, k: Array, v: Array) -> Array:
    """Let every position look at all (causal: at those up to itself), head by head and position by position."""
    heads = layer.settings["heads"]
    examples, channels = q.shape[:2]
    width = channels // heads
    q, k, v = (x.reshape(examples, heads, width, -1) for x in (q, k, v))
    length = q.shape[-1]
    result = np.empty_like(q)
    for at in range(length):
        seen = at + 1 if layer.settings["causal"] else length
        scores = (q[..., at, None] * k[..., :seen]).sum(axis=2) / np.sqrt(width)  # shape: (N, heads, seen)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares = powers / powers.sum(axis=-1, keepdims=True)
        result[..., at] = (v[..., :seen] * shares[:, :, None]).sum(axis=-1)
    return result.reshape(examples, *layer.shape)


def context(layer: Layer, b: Array, m: Array) -> Array:
    """Return b m^T, summed over positions."""
    return np.stack([x.reshape(len(x), -1) @ y.reshape(len(y), -1).T for x, y in zip(b, m, strict=True)])


def mixture(layer: Layer, *inputs: Array) -> Array:
    """Return the weighted sum of the inputs that are there."""
    weights = layer.parameters["weights"]
    result = np.zeros((1, *layer.shape))
    for alternative, x in zip(layer.settings["alternatives"], inputs, strict=True):
        if x is not None:
            result = result + weights[alternative] * x
    return result


def custom(layer: Layer, *inputs: Array) -> Array:
    """Refuse: only the user knows what the layer computes."""
    raise RequestError(f"the layer {layer.settings['module']!r} is the user's own and has no numpy meaning")


RULES: dict[str, Rule] = {
    "conv": windows.conv,
    "conv_transpose": windows.conv_transpose,
    "batch_norm": batch_norm,
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "channel_norm": channel_norm,
    "group_norm": group_norm,
    "linear": linear,
    "max_pool": windows.max_pool,
    "avg_pool": windows.avg_pool,
    "global_pool": windows.global_pool,
    "flatten": lambda layer, x: x.reshape(x.shape[0], -1),
    "function": functions.function,
    "binary": functions.binary,
    "add": total,
    "concat": lambda layer, *inputs: np.concatenate(inputs, axis=1),
    "slice": lambda layer, x: x[:, layer.settings["begin"] : layer.settings["end"]],
    "shuffle": shuffle,
    "shift": windows.shift,
    "subsample": windows.subsample,
    "zero": lambda layer, x: np.zeros((x.shape[0], *layer.shape)),
    "noise": noise,
    "upsample": windows.upsample,
    "resize": windows.resize,
    "embedding": embedding,
    "positions": lambda layer, x: x + layer.parameters["weight"],
    "attention": attention,
    "softmax": softmax,
    "dropout": lambda layer, x: x,
    "context": context,
    "as_kernel": windows.as_kernel,
    "pad_kernel": windows.pad_kernel,
    "apply_kernel": windows.apply_kernel,
    "default_to": lambda layer, first, second: second if first is None else first,
    "mixture": mixture,
    "custom": custom,
}
