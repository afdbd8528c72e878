"""NAS-Bench-201 notations: the benchmark's strings and another library's tuples, to and from terms.

The benchmark writes a cell as `|op~0|+|op~0|op~1|+|op~0|op~1|op~2|`: for each node its operations with their sources,
in the order 1<-0, 2<-0, 2<-1, 3<-0, 3<-1, 3<-2, which is the order of the children of `Cell`. Nothing here knows how a
network is built or what it scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

from eclose.algebra.errors import TermError, did_you_mean, shortened
from eclose.algebra.terms import Term
from eclose.spaces._terms import named, term

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))  # the order of a string and of the children of Cell
CODES = ("skip_connect", "none", "nor_conv_3x3", "nor_conv_1x1", "avg_pool_3x3")  # NASLib's numbers 0 to 4
CODE_EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))  # NASLib's order of edges
EXAMPLE = "|nor_conv_3x3~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|skip_connect~2|"


@cache
def _operations() -> dict[str, Term]:
    return {name: cell for cell, name in named(OPERATIONS).items()}


@cache
def _names() -> dict[Term, str]:
    return named(OPERATIONS)


def nb201_operations(cell: Term) -> tuple[str, ...]:
    """Return the benchmark's names of a cell's six operations, in the order of its string."""
    names = _names()
    if cell.name != "Cell" or not all(child in names for child in cell.children):
        raise TermError(
            f"a NAS-Bench-201 cell is Cell(...) of six operations out of {', '.join(OPERATIONS)}, "
            f"not {shortened(str(cell))}"
        )
    return tuple(names[child] for child in cell.children)


def nb201_cell(operations: Sequence[str]) -> Term:
    """Return the cell with six operations, given by the benchmark's names in the order of its string."""
    known = _operations()
    if len(operations) != len(EDGES):
        raise TermError(f"a NAS-Bench-201 cell has six operations, not {len(operations)}")
    for operation in operations:
        if operation not in known:
            hint = did_you_mean(operation, known) or f" (known: {', '.join(OPERATIONS)})"
            raise TermError(f"unknown NAS-Bench-201 operation {operation!r}{hint}")
    return term("Cell", *(known[operation] for operation in operations))


def read_nb201(text: str) -> Term:
    """Return the cell that a benchmark's string writes."""
    nodes = text.strip().split("+")
    operations = []
    for number, node in enumerate(nodes, 1):
        entries = node.strip().split("|")
        if len(entries) < 3 or entries[0] or entries[-1]:
            raise TermError(f"{shortened(text)} is no NAS-Bench-201 string; one reads {EXAMPLE}")
        found = [entry.partition("~") for entry in entries[1:-1]]
        if [source for _, _, source in found] != [str(source) for source in range(number)]:
            raise TermError(
                f"node {number} in {shortened(text, 120)} must list the sources 0 to {number - 1} in order; "
                f"a string reads {EXAMPLE}"
            )
        operations += [operation for operation, _, _ in found]
    if len(nodes) != 3:
        raise TermError(f"a NAS-Bench-201 string has three nodes joined by '+', not {len(nodes)}; one reads {EXAMPLE}")
    return nb201_cell(operations)


def nb201_string(cell: Term) -> str:
    """Return the benchmark's string of a cell."""
    operations = iter(nb201_operations(cell))
    return "+".join(
        "".join(f"|{next(operations)}~{source}" for source in range(number)) + "|" for number in range(1, 4)
    )


def read_nb201_codes(codes: Sequence[int]) -> Term:
    """Return the cell that NASLib's tuple of six numbers writes."""
    if len(codes) != len(EDGES) or not all(type(code) is int and 0 <= code < len(CODES) for code in codes):
        raise TermError(
            f"a cell as numbers has six of 0 to 4 ({', '.join(f'{n} {op}' for n, op in enumerate(CODES))}), "
            f"not {shortened(str(tuple(codes)))}"
        )
    on_edge = dict(zip(CODE_EDGES, codes, strict=True))
    return nb201_cell([CODES[on_edge[edge]] for edge in EDGES])


def nb201_codes(cell: Term) -> tuple[int, ...]:
    """Return NASLib's tuple of six numbers for a cell."""
    on_edge = dict(zip(EDGES, nb201_operations(cell), strict=True))
    return tuple(CODES.index(on_edge[edge]) for edge in CODE_EDGES)


def nb201_unique_string(cell: Term) -> str:
    """Return the string by which the benchmark tells cells apart: 6,466 of them over the 15,625 cells.

    Skip connections are contracted and whatever follows a zero is a zero, but a zero stays visible in a sum: cells
    that compute the same function may still differ. `Space.duplicate_key` is this library's own answer.
    """
    operations = iter(nb201_operations(cell))
    values = ["0"]
    for _ in range(1, 4):
        arriving = []
        for value in tuple(values):
            operation = next(operations)
            if operation == "none" or value == "#":
                arriving.append("#")
            elif operation == "skip_connect":
                arriving.append(value)
            else:
                arriving.append(f"({value})@{operation}")
        values.append("+".join(sorted(arriving)))
    return values[-1]


def nb201_cells() -> list[Term]:
    """Return all 15,625 cells, the last edge varying fastest (this is not the benchmark's own numbering)."""
    return [nb201_cell(operations) for operations in product(OPERATIONS, repeat=len(EDGES))]


__all__ = [
    "nb201_cell",
    "nb201_cells",
    "nb201_codes",
    "nb201_operations",
    "nb201_string",
    "nb201_unique_string",
    "read_nb201",
    "read_nb201_codes",
]
