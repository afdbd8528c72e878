"""The functions and classes that a written network needs where torch has no such layer, as text.

They compute what the modules of `eclose.operations` compute; parameters have the same names. A text is written into a
network only where it is used. Nothing here is run.
"""

from __future__ import annotations

from collections.abc import Iterable

ADD_ALL = '''
def add_all(first, *others):
    """Return the sum of many values."""
    for other in others:
        first = first + other
    return first
'''

CHANNEL_NORM = '''
def channel_norm(x, weight=None, bias=None):
    """Normalise each position over its channels."""
    return F.layer_norm(x.movedim(1, -1), (x.shape[1],), weight, bias).movedim(-1, 1)
'''

CHANNEL_NORM_CLASS = '''
class ChannelNorm(nn.Module):
    """Normalises each position over its channels, with scale and shift."""

    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return channel_norm(x, self.weight, self.bias)
'''

POSITIONS = '''
class Positions(nn.Module):
    """Adds a learned table of the input's shape."""

    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(shape))

    def forward(self, x):
        return x + self.weight
'''

ATTENTION = '''
def attention(query, key, value, heads, causal=False):
    """Multi-head attention over all positions; every value is (N, C, *positions)."""

    def divided(x):  # (N, heads, positions, C / heads)
        return x.reshape(x.shape[0], heads, x.shape[1] // heads, -1).transpose(2, 3)

    mixed = F.scaled_dot_product_attention(divided(query), divided(key), divided(value), is_causal=causal)
    return mixed.transpose(2, 3).reshape(query.shape)
'''

RESIZE = '''
def resize(x, size):
    """Adaptive means on axes that shrink, the nearest position on axes that grow."""
    sizes = tuple(x.shape[2:])
    smaller = tuple(min(old, new) for old, new in zip(sizes, size))
    if smaller != sizes:
        means = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
        x = means[len(sizes)](x, smaller)
    for axis, (old, new) in enumerate(zip(smaller, size), start=2):
        if new > old:
            x = x.index_select(axis, torch.arange(new, device=x.device) * old // new)
    return x
'''

VOLUME_MEAN = '''
def volume_mean(x, kernel, stride, padding):
    """Means of windows that are larger than a volume, padding not counted: torch's own pooling refuses them."""
    margins = [margin for margin in reversed(padding) for _ in range(2)]
    sums, counts = (
        F.avg_pool3d(F.pad(values, margins), kernel, stride) for values in (x, torch.ones_like(x[:1, :1]))
    )
    return sums / counts
'''

SPREAD_TAPS = '''
def spread_taps(taps, kernel, dilation):
    """Lay (N, C, T) taps out as a kernel with zeros between them."""
    size = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    spread = taps.new_zeros(*taps.shape[:2], *size)
    spread[(..., *(slice(None, None, d) for d in dilation))] = taps.reshape(*taps.shape[:2], *kernel)
    return spread
'''

APPLY_KERNEL = '''
def apply_kernel(x, kernel):
    """Convolve every channel of every sample with a kernel of its own."""
    batch, channels, *sizes = x.shape
    convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(sizes)]
    merged = batch * channels
    result = convolve(
        x.reshape(1, merged, *sizes),
        kernel.reshape(merged, 1, *kernel.shape[2:]),
        padding=tuple(k // 2 for k in kernel.shape[2:]),
        groups=merged,
    )
    return result.reshape(x.shape)
'''

LEARNED = '''
class {name}(nn.Module):
    """{formula}, with a learned beta for each channel."""

    def __init__(self, *shape):
        super().__init__()
        self.beta = nn.Parameter(torch.ones(shape))

    def forward(self, {arguments}):
        return {expression}
'''

# name of the function: its class, its arguments, its expression, its formula for people
LEARNED_FUNCTIONS: dict[str, tuple[str, str, str, str]] = {
    "mconst": ("ScaleByBeta", "x", "self.beta * x", "beta x"),
    "aconst": ("AddBeta", "x", "self.beta + x", "beta + x"),
    "const": ("Beta", "x", "self.beta.expand_as(x).clone()", "beta"),
    "bgaussian_sq": ("GaussianOfSquare", "x, y", "torch.exp(-self.beta * torch.square(x - y))", "exp(-beta (x - y)^2)"),
    "bgaussian_abs": ("GaussianOfDistance", "x, y", "torch.exp(-self.beta * torch.abs(x - y))", "exp(-beta |x - y|)"),
    "wavg": ("WeightedMean", "x, y", "self.beta * x + (1 - self.beta) * y", "beta x + (1 - beta) y"),
}

HELPERS: dict[str, str] = {
    "add_all": ADD_ALL,
    "resize": RESIZE,
    "attention": ATTENTION,
    "volume_mean": VOLUME_MEAN,
    "spread_taps": SPREAD_TAPS,
    "apply_kernel": APPLY_KERNEL,
    "channel_norm": CHANNEL_NORM,
    "ChannelNorm": CHANNEL_NORM_CLASS,
    "Positions": POSITIONS,
    **{
        name: LEARNED.format(name=name, arguments=arguments, expression=expression, formula=formula)
        for name, arguments, expression, formula in LEARNED_FUNCTIONS.values()
    },
}
"""Name -> text, in the order in which they are written."""

NEEDS: dict[str, str] = {"ChannelNorm": "channel_norm"}


def helper_texts(used: Iterable[str]) -> list[str]:
    """Return the texts of the helpers that are used, and of those that they use."""
    wanted = set(used)
    wanted.update(NEEDS[name] for name in tuple(wanted) if name in NEEDS)
    return [text.strip("\n") for name, text in HELPERS.items() if name in wanted]


__all__ = ["HELPERS", "LEARNED_FUNCTIONS", "helper_texts"]
