"""Genotypes: the DARTS literature's record of two cells, to and from terms.

A genotype lists for each intermediate node its `(operation, source)` pairs in the order of their scores; a term puts
them in the order of their sources, so equal cells are equal terms: compare terms, not genotypes. Nothing here knows
how a network is built.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from eclose.algebra.errors import TermError, did_you_mean, shortened
from eclose.algebra.registry import default_registry
from eclose.algebra.terms import Term
from eclose.spaces._terms import named, term

Pair: TypeAlias = tuple[str, int]

INPUTS = 2  # nodes 0 and 1 are the cell's inputs
OPERATIONS = (
    "none",
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "sep_conv_7x7",
    "dil_conv_3x3",
    "dil_conv_5x5",
    "noise",
)


class Genotype(NamedTuple):
    """A normal and a reduction cell as the DARTS literature writes them.

    Attributes:
        normal: `(operation, source)` pairs, two for each intermediate node; 0 and 1 are the cell's inputs.
        normal_concat: the nodes that make the cell's output.
        reduce: the same for the reduction cell.
        reduce_concat: the same for the reduction cell.
    """

    normal: tuple[Pair, ...]
    normal_concat: tuple[int, ...]
    reduce: tuple[Pair, ...]
    reduce_concat: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"Genotype(normal={list(self.normal)}, normal_concat={list(self.normal_concat)}, "
            f"reduce={list(self.reduce)}, reduce_concat={list(self.reduce_concat)})"
        )


def read_genotype(text: str) -> Genotype:
    """Return the genotype that a text such as `Genotype(normal=[('sep_conv_3x3', 1), ...], ...)` writes.

    The text may assign it (`DARTS_V2 = Genotype(...)`) and write the concatenation as `range(2, 6)`; it is read, never
    evaluated.
    """
    try:
        tree = ast.parse(text.strip(), mode="exec").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TermError(f"{shortened(text)} is no genotype: {getattr(error, 'msg', None) or error}") from None
    if len(tree) != 1 or not isinstance(tree[0], ast.Expr | ast.Assign) or not isinstance(tree[0].value, ast.Call):
        raise TermError(f"{shortened(text)} is no genotype; write Genotype(normal=[...], normal_concat=..., ...)")
    call = tree[0].value
    given = dict(zip(Genotype._fields, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in Genotype._fields:
            raise TermError(
                f"a genotype has no part {keyword.arg!r}{did_you_mean(str(keyword.arg), Genotype._fields)} "
                f"(parts: {', '.join(Genotype._fields)})"
            )
        given[keyword.arg] = keyword.value
    missing = [field for field in Genotype._fields if field not in given]
    if missing:
        raise TermError(f"the genotype lacks its part {missing[0]!r} (parts: {', '.join(Genotype._fields)})")
    return Genotype(
        _pairs(given["normal"], "normal"),
        _numbers(given["normal_concat"], "normal_concat"),
        _pairs(given["reduce"], "reduce"),
        _numbers(given["reduce_concat"], "reduce_concat"),
    )


def genotype_term(genotype: Genotype | str) -> Term:
    """Return `motifs(normal cell, reduction cell)` for a genotype, its text, or the name of a published one."""
    if isinstance(genotype, str):
        genotype = GENOTYPES[genotype] if genotype in GENOTYPES else read_genotype(genotype)
    return term(
        "motifs",
        _cell(genotype.normal, genotype.normal_concat, "normal"),
        _cell(genotype.reduce, genotype.reduce_concat, "reduce"),
    )


def term_genotype(motifs: Term) -> Genotype:
    """Return the genotype of `motifs(normal cell, reduction cell)`, sources in ascending order."""
    if motifs.name != "motifs" or len(motifs.children) != 2:
        raise TermError(f"a genotype has two cells: write motifs(normal, reduction), not {shortened(str(motifs))}")
    (normal, normal_concat), (reduce, reduce_concat) = (_listed(cell) for cell in motifs.children)
    return Genotype(normal, normal_concat, reduce, reduce_concat)


def _cell(pairs: tuple[Pair, ...], concat: tuple[int, ...], part: str) -> Term:
    if not pairs or len(pairs) % 2:
        raise TermError(f"the {part} cell has {len(pairs)} operations; every node has two")
    count = len(pairs) // 2
    if tuple(sorted(concat)) != tuple(range(INPUTS, INPUTS + count)):
        raise TermError(
            f"the {part} cell concatenates nodes {list(concat)}; only all intermediate nodes "
            f"{list(range(INPUTS, INPUTS + count))} can be concatenated"
        )
    nodes = []
    for number in range(count):
        edges = sorted(pairs[2 * number : 2 * number + 2], key=lambda pair: (pair[1], pair[0]))
        for operation, source in edges:
            if not 0 <= source < INPUTS + number:
                raise TermError(
                    f"node {INPUTS + number} of the {part} cell takes {operation!r} from node {source}; "
                    f"nodes 0 to {INPUTS + number - 1} come before it"
                )
        nodes.append(term("node", *(term("on", term(operation), src=source) for operation, source in edges)))
    return term("darts_cell", *nodes)


def _listed(cell: Term) -> tuple[tuple[Pair, ...], tuple[int, ...]]:
    if cell.name != "darts_cell":
        raise TermError(f"a genotype's cell is darts_cell(node(...), ...), not {shortened(str(cell))}")
    names = named(OPERATIONS)
    pairs = []
    for node in cell.children:
        if node.name not in ("node", "pick") or len(node.children) != 2:
            raise TermError(f"a genotype's node has two operations, on(...) each; {shortened(str(node))} has not")
        for edge in node.children:
            if edge.name != "on" or edge.children[0] not in names:
                known = ", ".join(OPERATIONS)
                raise TermError(f"{shortened(str(edge))} has no place in a genotype (operations: {known})")
            pairs.append((names[edge.children[0]], int(edge.get("src", 0))))
    return tuple(pairs), tuple(range(INPUTS, INPUTS + len(cell.children)))


def _pairs(node: ast.expr, part: str) -> tuple[Pair, ...]:
    registry = default_registry()
    found = []
    for item in _items(node, part):
        parts = _items(item, part)
        values = [part_.value for part_ in parts if isinstance(part_, ast.Constant)]
        if len(values) != 2 or not isinstance(values[0], str) or type(values[1]) is not int:
            raise TermError(f"{part} lists pairs such as ('sep_conv_3x3', 1), not {shortened(ast.unparse(item))}")
        if values[0] not in registry:
            raise TermError(f"unknown operation {values[0]!r} in {part}{did_you_mean(values[0], registry.names())}")
        found.append((values[0], values[1]))
    return tuple(found)


def _numbers(node: ast.expr, part: str) -> tuple[int, ...]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        bounds = [bound.value for bound in node.args if isinstance(bound, ast.Constant)]
        if len(bounds) == len(node.args) == 2 and all(type(bound) is int and abs(bound) < 1000 for bound in bounds):
            return tuple(range(*bounds))  # type: ignore[arg-type]
    if isinstance(node, ast.List | ast.Tuple):
        values = [item.value for item in node.elts if isinstance(item, ast.Constant)]
        if len(values) == len(node.elts) and all(type(value) is int for value in values):
            return tuple(values)  # type: ignore[arg-type]
    raise TermError(f"{part} lists nodes such as [2, 3, 4, 5] or range(2, 6), not {shortened(ast.unparse(node))}")


def _items(node: ast.expr, part: str) -> list[ast.expr]:
    if not isinstance(node, ast.List | ast.Tuple):
        raise TermError(f"{part} is a list of pairs such as ('sep_conv_3x3', 1), not {shortened(ast.unparse(node))}")
    return node.elts


# Published cells in short: for each node its two operations with their sources, e.g. `s3@1` for sep_conv_3x3 from 1.
_SHORT: Mapping[str, str] = {
    "s3": "sep_conv_3x3",
    "s5": "sep_conv_5x5",
    "d3": "dil_conv_3x3",
    "d5": "dil_conv_5x5",
    "max": "max_pool_3x3",
    "avg": "avg_pool_3x3",
    "skip": "skip_connect",
}


def _published(normal: str, reduce: str) -> Genotype:
    def pairs(text: str) -> tuple[Pair, ...]:
        halves: Iterable[tuple[str, str, str]] = (item.partition("@") for item in text.split())
        return tuple((_SHORT[operation], int(source)) for operation, _, source in halves)

    return Genotype(pairs(normal), (2, 3, 4, 5), pairs(reduce), (2, 3, 4, 5))


GENOTYPES: Mapping[str, Genotype] = {
    # Liu, Simonyan, Yang (2019), DARTS: first and second order
    "DARTS_V1": _published(
        "s3@1 s3@0  skip@0 s3@1  skip@0 s3@1  s3@0 skip@2", "max@0 max@1  skip@2 max@0  max@0 skip@2  skip@2 avg@0"
    ),
    "DARTS_V2": _published(
        "s3@0 s3@1  s3@0 s3@1  s3@1 skip@0  skip@0 d3@2", "max@0 max@1  skip@2 max@1  max@0 skip@2  skip@2 max@1"
    ),
    # Xu et al. (2020), PC-DARTS: searched on CIFAR-10 and on ImageNet
    "PC_DARTS_cifar": _published(
        "s3@1 skip@0  s3@0 d3@1  s5@0 s3@1  avg@0 d3@1", "s5@1 max@0  s5@1 s5@2  s3@0 s3@3  s3@1 s3@2"
    ),
    "PC_DARTS_image": _published(
        "skip@1 s3@0  s3@0 skip@1  s3@1 s3@3  s3@1 d5@4", "s3@0 skip@1  d5@2 max@1  s3@2 s3@1  s5@0 s3@3"
    ),
    # Chen et al. (2021), DrNAS: searched on CIFAR-10 and on ImageNet
    "DrNAS_cifar10": _published(
        "s3@0 s5@1  s3@1 s3@2  skip@0 s3@1  s3@2 d5@3", "max@0 s5@1  d5@2 s5@1  s5@1 d5@3  skip@4 s5@1"
    ),
    "DrNAS_imagenet": _published(
        "s3@1 s3@0  s3@0 s3@1  s3@0 d3@3  skip@0 s3@1", "max@0 s3@1  s3@0 skip@2  s3@0 s3@2  s3@3 s3@1"
    ),
}
"""Published genotypes by the name their papers' code gives them."""


__all__ = ["GENOTYPES", "Genotype", "genotype_term", "read_genotype", "term_genotype"]
