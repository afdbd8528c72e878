"""Cells in the manner of NAS-Bench-101 as programs."""

from __future__ import annotations

from eclose.meanings.program.emitter import Meaning, Site
from eclose.meanings.program.ir import Tensor, Value


def dag_cell(site: Site, x: Value) -> Meaning:
    """Node after node on the input and all nodes before; the value of the last."""
    if site.context.stride != 1:
        site.fail("a dag_cell keeps the resolution; put the stride in front of it, e.g. max_pool(kernel=2, stride=2)")
    states: list[Value] = [x]
    for index in range(len(site.term.children)):
        states.append((yield site.child(index, *states)))
    return states[-1]


def slot(site: Site, x: Tensor) -> Tensor:
    """The input between zeros, on channels."""
    index, count = site.value("index"), site.value("count")
    if index >= count:
        site.fail(f"slot(index={index}, count={count}): the parts are numbered 0 to {count - 1}")
    if count == 1:
        return x
    empty = site.layer("zero", x, stride=(1,) * (len(x.shape) - 1))
    return site.layer("concat", *(x if part == index else empty for part in range(count)))
