"""Canonical numbering of operations: colour refinement, then individualisation where colours do not suffice.

Colours are refined by sweeping along and against the edges until no more colours appear. Operations that still share a
colour are told apart one at a time, which tries all of them up to the symmetries found on the way (McKay, 1981), and
the numbering with the smallest certificate is the canonical one. Knows labels and numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from hashlib import blake2b
from typing import TypeAlias

from eclose.algebra.terms import compare
from eclose.meanings.graph.operation_graph import OperationGraph

BUDGET = 20_000_000  # operations visited; beyond it the best numbering so far serves, and isomorphic graphs may differ

Colours: TypeAlias = list[int]
Certificate: TypeAlias = list[tuple[tuple[tuple[int, int], ...], ...]]


def canonical_order(graph: OperationGraph) -> list[int]:
    """Return the operations in canonical order, which is also a topological order."""
    return _Numbering(graph).order()


class _Numbering:
    def __init__(self, graph: OperationGraph):
        self.graph = graph
        self.size = len(graph)
        self.consumers: list[list[tuple[int, int, int]]] = [[] for _ in range(self.size)]
        for operation, consumer, slot, multiplicity in graph.links():
            self.consumers[operation].append((consumer, slot, multiplicity))
        self.level = [0] * self.size
        for operation, operands in enumerate(graph.operands):
            for operand in operands:
                for other, _ in operand:
                    self.level[operation] = max(self.level[operation], self.level[other] + 1)
        self.work = 0

    def order(self) -> list[int]:
        labels = sorted(set(self.graph.labels), key=cmp_to_key(compare))
        rank = {label: number for number, label in enumerate(labels)}
        colours = [_mixed((rank[label],)) for label in self.graph.labels]
        colours = self._without_twins(self._refined(colours))
        order, _ = self._best(colours)
        return order

    def _refined(self, colours: Colours) -> Colours:
        """Sweep along and against the edges until the number of colours stays."""
        count = len(set(colours))
        while count < self.size:
            colours = self._backward(self._forward(colours))
            self.work += 2 * self.size
            now = len(set(colours))
            if now == count:
                break
            count = now
        return colours

    def _forward(self, colours: Colours) -> Colours:
        result: Colours = []
        for colour, operands in zip(colours, self.graph.operands, strict=True):
            seen = [sorted((result[other], multiplicity) for other, multiplicity in operand) for operand in operands]
            result.append(_mixed((colour, seen)))
        return result

    def _backward(self, colours: Colours) -> Colours:
        result = [0] * self.size
        for operation in range(self.size - 1, -1, -1):
            seen = sorted((result[consumer], slot, many) for consumer, slot, many in self.consumers[operation])
            result[operation] = _mixed((colours[operation], seen))
        return result

    def _classes(self, colours: Colours) -> list[list[int]]:
        """Return the colours shared by several operations, as lists of these, smallest first."""
        found: dict[int, list[int]] = {}
        for operation, colour in enumerate(colours):
            found.setdefault(colour, []).append(operation)
        shared = [(len(members), self.level[members[0]], colour) for colour, members in found.items() if members[1:]]
        return [found[colour] for _, _, colour in sorted(shared)]

    def _without_twins(self, colours: Colours) -> Colours:
        """Tell apart operations with the same operands and the same consumers: exchanging them changes nothing."""
        colours = list(colours)
        for members in self._classes(colours):
            twins: dict[object, int] = {}
            for operation in members:
                key = (self.graph.operands[operation], tuple(self.consumers[operation]))
                number = twins[key] = twins.get(key, -1) + 1
                if number:
                    colours[operation] = _mixed((colours[operation], number))
        return self._refined(colours)

    def _numbered(self, colours: Colours) -> tuple[list[int], Certificate]:
        order = sorted(range(self.size), key=lambda operation: (self.level[operation], colours[operation]))
        self.work += self.size
        position = [0] * self.size
        for number, operation in enumerate(order):
            position[operation] = number
        certificate = [
            tuple(
                tuple(sorted((position[other], multiplicity) for other, multiplicity in operand))
                for operand in self.graph.operands[operation]
            )
            for operation in order
        ]
        return order, certificate

    def _single(self, colours: Colours, operation: int) -> Colours:
        changed = list(colours)
        changed[operation] = _mixed((colours[operation], "single"))
        return self._refined(changed)

    def _first(self, colours: Colours) -> tuple[list[int], Certificate]:
        """Return the numbering that taking the first operation of each shared colour leads to."""
        while classes := self._classes(colours):
            colours = self._single(colours, classes[0][0])
        return self._numbered(colours)

    def _best(self, colours: Colours) -> tuple[list[int], Certificate]:
        """Return the numbering with the smallest certificate among all ways to tell operations apart."""
        choices: list[tuple[Colours, list[int]]] = []
        while classes := self._classes(colours):
            choices.append((colours, classes[0]))
            colours = self._single(colours, classes[0][0])
        best = first = self._numbered(colours)
        orbits = _Orbits(self.size)
        for colours, members in reversed(choices):
            tried = [members[0]]
            for operation in members[1:]:
                if self.work > BUDGET:
                    return best
                if any(orbits.same(operation, other) for other in tried):
                    continue
                refined = self._single(colours, operation)
                found = self._first(refined)
                if found[1] not in (best[1], first[1]):
                    found = self._best(refined)
                for known in (best, first):
                    if found[1] == known[1]:  # an automorphism: what it exchanges need not be tried
                        orbits.join(found[0], known[0])
                if found[1] < best[1]:
                    best = found
                tried.append(operation)
        return best


class _Orbits:
    """Operations that known symmetries exchange."""

    def __init__(self, size: int):
        self._parent = list(range(size))

    def _root(self, item: int) -> int:
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def same(self, a: int, b: int) -> bool:
        return self._root(a) == self._root(b)

    def join(self, before: Sequence[int], after: Sequence[int]) -> None:
        for a, b in zip(before, after, strict=True):
            self._parent[self._root(a)] = self._root(b)


def _mixed(parts: object) -> int:
    """Return a number for some numbers, the same in every process; equal numbers by accident do no harm."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "big")


