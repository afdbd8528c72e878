"""One layer of every kind in several settings and numbers of axes, for tests of the backends' tables."""

from __future__ import annotations

from typing import Any

from eclose.algebra.shapes import Shape
from eclose.meanings.program.formulas import BINARY, UNARY
from eclose.meanings.program.layers import LAYERS

Single = tuple[str, dict[str, Any], tuple[Shape, ...]]


def single_layers() -> list[Single]:
    """Return `(kind, complete settings, input shapes)`; every kind but `custom` and `mixture` occurs."""
    found: list[Single] = []

    def add(kind: str, *shapes: Shape, **settings: Any) -> None:
        found.append((kind, LAYERS[kind].complete(settings), shapes))

    for axes in (1, 2, 3):
        sizes = (7, 6, 5)[:axes]
        x = (4, *sizes)

        def each(value: int, axes: int = axes) -> Shape:
            return (value,) * axes

        for stride, dilation, groups, bias in ((1, 1, 1, False), (2, 1, 2, True), (1, 2, 4, False)):
            add(
                "conv",
                x,
                channels=8,
                kernel=each(3),
                stride=each(stride),
                padding=each(dilation),
                dilation=each(dilation),
                groups=groups,
                bias=bias,
            )
        for stride, padding, extra, groups in ((2, 0, 0, 1), (2, 1, 1, 2), (3, 2, 1, 1)):
            add(
                "conv_transpose",
                x,
                channels=6,
                kernel=each(3),
                stride=each(stride),
                padding=each(padding),
                output_padding=each(extra),
                groups=groups,
                bias=groups == 2,
            )
        for affine in (True, False):
            for kind in ("batch_norm", "instance_norm", "layer_norm", "channel_norm"):
                add(kind, x, affine=affine)
            add("group_norm", x, groups=2, affine=affine)
        for stride, padding in ((1, 1), (2, 0), (2, 1)):
            add("max_pool", x, kernel=each(3), stride=each(stride), padding=each(padding))
            add("avg_pool", x, kernel=each(3), stride=each(stride), padding=each(padding))
        for stride in (1, 2):  # windows larger than the input
            small = (4, *(2, 3, 2)[:axes])
            add("avg_pool", small, kernel=each(5), stride=each(stride), padding=each(2))
        add("global_pool", x)
        add("global_pool", x, keep=True)
        add("flatten", x)
        add("add", x, x, x)
        add("add", (4, *each(1)), (1, *sizes), broadcast=True)
        add("concat", x, (2, *sizes), x)
        add("slice", x, begin=1, end=3)
        add("shuffle", x, groups=2)
        add("shuffle", (12, *sizes), groups=3)
        add("shift", x, padding=tuple(n % 2 for n in sizes))
        add("shift", x)
        for kind in ("subsample", "zero"):
            add(kind, x, stride=each(2))
        add("upsample", x, factor=(2, 3, 1)[:axes])
        add("resize", x, size=(3, 9, 5)[:axes])
        add("resize", x, size=(10, 4, 2)[:axes])
        add("positions", x)
        add("attention", x, x, x, heads=2)
        add("softmax", x, axis="positions")
        add("dropout", x, rate=0.4)
        add("context", (4, *sizes), (9, *sizes))
        for dilation in ((), (2,) * axes):
            add("as_kernel", (4, 3**axes), kernel=each(3), dilation=dilation)
        add("pad_kernel", (4, *each(3)), size=5)
        add("apply_kernel", x, (4, *each(3)))
        add("default_to", x, x)
        add("binary", x, (1, *sizes), name="multiply")
    add("attention", (6, 5), (6, 5), (6, 5), heads=3, causal=True)
    add("batch_norm", (6,))
    add("linear", (6,), features=4)
    add("linear", (6,), features=4, bias=False)
    for name in UNARY:
        add("function", (4, 5, 3), name=name)
    for name in BINARY:
        add("binary", (4, 5, 3), (4, 5, 3), name=name)
    return found


def named(single: Single) -> str:
    kind, settings, shapes = single
    return f"{kind}-{settings.get('name', '')}{len(shapes[0]) - 1}d"
