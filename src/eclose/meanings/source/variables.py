"""Which variable holds which value of a program: a name is used again once its value is needed no more.

A chain of layers reads `x = ...(x)` all the way, and a long network keeps no more values alive than it must.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from eclose.meanings.program.ir import Program


def needed_values(program: Program, results: set[int], inputs: Callable[[int], tuple[int, ...]]) -> set[int]:
    """Return the values that lead to the results; `inputs` gives those of a step."""
    needed: set[int] = set()
    pending = list(results)
    while pending:
        value = pending.pop()
        if value not in needed:
            needed.add(value)
            if value:
                pending.extend(inputs(value - 1))
    return needed


def variables(
    program: Program, needed: set[int], results: set[int], inputs: Callable[[int], tuple[int, ...]]
) -> Mapping[int, str]:
    """Return the name of the variable for each value that is needed.

    Args:
        program: the network; value 0 is its input and is called `x`.
        needed: the values that are computed.
        results: the values that must be there in the end.
        inputs: gives the values that a step takes.
    """
    last: dict[int, int] = {}
    for index in range(len(program.steps)):
        if index + 1 in needed:
            for value in inputs(index):
                last[value] = index
    free: list[int] = []
    numbers = {0: 0}
    count = 1
    for index in range(len(program.steps)):
        if index + 1 not in needed:
            continue
        for value in set(inputs(index)):
            if last[value] == index and value not in results:
                heapq.heappush(free, numbers[value])
        if free:
            numbers[index + 1] = heapq.heappop(free)
        else:
            numbers[index + 1] = count
            count += 1
    return {value: f"x{number}" if number else "x" for value, number in numbers.items()}


__all__ = ["needed_values", "variables"]
