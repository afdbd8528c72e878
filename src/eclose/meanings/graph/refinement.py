"""Canonical numbering of operations: colour refinement, then separate parts on their own, then single ones told apart.

Colours are refined by sweeping along and against the edges until no more colours appear; equal colours then have
neighbours of equal colours. An operation whose colour is its own needs no more. What is left falls into parts that
touch each other only through such operations, so each part is numbered on its own, and equal parts may stand in any
order. Within a part where every colour occurs twice, one operation is told apart from its like; all candidates are
tried up to the symmetries found on the way (McKay, 1981), and the smallest certificate wins. Knows labels and numbers
only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from typing import TypeAlias

from eclose.algebra.terms import compare
from eclose.meanings.graph.operation_graph import OperationGraph

BUDGET = 2_000_000  # operations visited; beyond it isomorphic graphs may be numbered differently, nothing worse
NESTING = 100  # parts within parts; likewise

Part: TypeAlias = list[int]
Colours: TypeAlias = dict[int, int]
Certificate: TypeAlias = list[tuple[int, tuple[tuple[int, int], ...]]]


def canonical_order(graph: OperationGraph) -> list[int]:
    """Return the operations in canonical order, which is also a topological order."""
    return _Numbering(graph).order()


class _Numbering:
    def __init__(self, graph: OperationGraph):
        self.graph = graph
        self.size = len(graph)
        self.operands: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]  # (operation, code of the use)
        self.consumers: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        self.level = [0] * self.size
        for operation, consumer, slot, multiplicity in graph.links():
            code = _mixed(slot + 1, multiplicity % _PRIME)
            self.operands[consumer].append((operation, code))
            self.consumers[operation].append((consumer, code))
            self.level[consumer] = max(self.level[consumer], self.level[operation] + 1)
        self.work = 0

    def order(self) -> list[int]:
        labels = sorted(set(self.graph.labels), key=cmp_to_key(compare))
        rank = {label: number for number, label in enumerate(labels, 1)}
        everything = list(range(self.size))
        colours = {
            operation: _mixed(rank[label], len(operands))
            for operation, (label, operands) in enumerate(zip(self.graph.labels, self.graph.operands, strict=True))
        }
        colours = self._refined(everything, colours)
        colours = self._without_twins(everything, colours)
        place = {operation: number for number, operation in enumerate(self._numbered(everything, colours, 0)[0])}
        return sorted(everything, key=lambda operation: (self.level[operation], place[operation]))

    def _refined(self, part: Part, colours: Colours) -> Colours:
        """Sweep along and against the edges until the number of colours in the part stays; those outside are fixed.

        `part` lists its operations in topological order.
        """
        colours = dict(colours)
        count = len({colours[operation] for operation in part})
        while count < len(part):
            for order, neighbours in ((part, self.operands), (part[::-1], self.consumers)):
                for operation in order:
                    seen = 0
                    for other, code in neighbours[operation]:
                        seen += _mixed(colours[other], code)
                    colours[operation] = _mixed(colours[operation], seen & _MASK)
            self.work += 2 * len(part)
            now = len({colours[operation] for operation in part})
            if now == count:
                break
            count = now
        return colours

    def _without_twins(self, part: Part, colours: Colours) -> Colours:
        """Tell apart operations with the same operands and the same consumers: exchanging them changes nothing."""
        if len(set(colours.values())) == len(part):
            return colours
        twins: dict[object, int] = {}
        changed = dict(colours)
        for operation in part:
            key = (colours[operation], self.graph.operands[operation], tuple(self.consumers[operation]))
            number = twins[key] = twins.get(key, -1) + 1
            if number:
                changed[operation] = _mixed(colours[operation], number)
        return self._refined(part, changed)

    def _numbered(self, part: Part, colours: Colours, nesting: int) -> tuple[list[int], Certificate]:
        """Return a part's operations in canonical order and what they look like in that order."""
        self.work += len(part)
        members: dict[int, list[int]] = {}
        for operation in part:
            members.setdefault(colours[operation], []).append(operation)
        order = [members[colour][0] for colour in sorted(members) if len(members[colour]) == 1]
        rest = [operation for operation in part if len(members[colours[operation]]) > 1]
        if rest and (self.work > BUDGET or nesting > NESTING):
            order += sorted(rest, key=lambda operation: (colours[operation], operation))
        elif rest:
            pieces = self._pieces(rest)
            if len(pieces) == 1 and len(rest) == len(part):
                return self._told_apart(part, members, colours, nesting)
            found = [self._numbered(piece, colours, nesting + 1) for piece in pieces]
            for numbered, _ in sorted(found, key=lambda piece: piece[1]):
                order += numbered
        return order, self._certificate(order, colours)

    def _pieces(self, part: Part) -> list[Part]:
        """Return the connected pieces of the graph that some operations make."""
        piece_of = dict.fromkeys(part, -1)
        pieces: list[Part] = []
        for start in part:
            if piece_of[start] >= 0:
                continue
            piece_of[start] = len(pieces)
            piece = [start]
            for operation in piece:  # grows while it is walked
                for neighbours in (self.operands[operation], self.consumers[operation]):
                    for other, _ in neighbours:
                        if piece_of.get(other) == -1:
                            piece_of[other] = len(pieces)
                            piece.append(other)
            pieces.append(sorted(piece))
        return pieces

    def _certificate(self, order: Sequence[int], colours: Colours) -> Certificate:
        place = {operation: number for number, operation in enumerate(order)}
        return [
            (
                colours[operation],
                tuple(sorted((place[other], code) for other, code in self.operands[operation] if other in place)),
            )
            for operation in order
        ]

    def _told_apart(
        self, part: Part, members: dict[int, list[int]], colours: Colours, nesting: int
    ) -> tuple[list[int], Certificate]:
        """Return the smallest numbering among those that telling one operation apart from its like leads to."""
        candidates = min(members.values(), key=lambda like: (len(like), colours[like[0]]))
        best: tuple[list[int], Certificate] | None = None
        orbits = _Orbits(part)
        for number, operation in enumerate(candidates):
            if number and (self.work > BUDGET or orbits.same(operation, candidates[:number])):
                continue
            changed = dict(colours)
            changed[operation] = _mixed(colours[operation], _SINGLE)
            found = self._numbered(part, self._refined(part, changed), nesting + 1)
            if best is not None and found[1] == best[1]:
                orbits.join(found[0], best[0])  # a symmetry: what it exchanges need not be tried
            elif best is None or found[1] < best[1]:
                best = found
        assert best is not None
        return best


class _Orbits:
    """Operations that known symmetries exchange."""

    def __init__(self, operations: Iterable[int]):
        self._parent = {operation: operation for operation in operations}

    def _root(self, item: int) -> int:
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def same(self, operation: int, others: Iterable[int]) -> bool:
        root = self._root(operation)
        return any(self._root(other) == root for other in others)

    def join(self, before: Sequence[int], after: Sequence[int]) -> None:
        for a, b in zip(before, after, strict=True):
            self._parent[self._root(a)] = self._root(b)


_MASK = (1 << 64) - 1
_PRIME = (1 << 61) - 1
_SINGLE = 0x5851F42D4C957F2D


def _mixed(a: int, b: int) -> int:
    """Return 64 bits made of two numbers, the same in every process; equal results by accident do no harm."""
    x = (a * 0x9E3779B97F4A7C15 + b) & _MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)
