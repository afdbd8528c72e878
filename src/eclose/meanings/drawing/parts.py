"""What of a term is drawn: its parts from the outside in, what repeats once by name, the rest folded.

A term may stand for 2^64 occurrences or be 100,000 deep; a drawing has at most `LIMIT` parts. Parts are taken breadth
first, so that it is the innermost ones that are folded. Nothing here knows shapes on paper.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from eclose.algebra.registry import Registry
from eclose.algebra.terms import Term, distinct
from eclose.meanings.drawing.kinds import style_of

LIMIT = 600  # parts of a whole drawing
FRAMES = 8  # frames inside each other
ROW = 60  # children of one wiring
FREE = 2_000  # nodes of a cell between it and its operations
PANEL_SIZE = 6  # nodes of a subterm that is worth a panel of its own when it repeats
ALTERNATIVES = 3  # of a decision that is worth a panel when others decide between the same


@dataclass
class Part:
    """One box of a drawing.

    Attributes:
        term: what it stands for.
        style: `operation`, `reference`, `fold`, or how a wiring is drawn (`kinds.style_of`).
        children: of a wiring, the parts inside; the operations of a cell, however deep its nodes wrap them.
        name: of the panel that a reference points to.
        hidden: how many nodes a fold stands for, or how many children a wiring does not show.
        level: the number of frames around it.
    """

    term: Term
    style: str
    level: int
    children: list[Part] = field(default_factory=list)
    name: str = ""
    hidden: int = 0


@dataclass
class Panel:
    """A subterm that is drawn once and referred to by its name."""

    name: str
    part: Part


class Plan:
    """The parts of a drawing of one term.

    Attributes:
        root: the term itself.
        panels: what repeats, in the order in which it is met.
    """

    def __init__(self, term: Term, registry: Registry):
        self.registry = registry
        self.panels: list[Panel] = []
        self.free: dict[Term, bool] = {}
        self.wanted: dict[Term, int] = {}
        self._left = LIMIT
        self._names = names()
        self._named: dict[Term, str] = {}
        self._queue: deque[Part] = deque()
        order = list(distinct(term))
        for node in order:
            self._look(node)
        self._uses = self._count_uses(order)
        self.root = self._part(term, 0, root=True)
        while self._queue:
            self._expand(self._queue.popleft())

    def _look(self, node: Term) -> None:
        """Note whether a term picks inputs of a cell around it, and how many inputs it takes."""
        operator = self.registry.operator(node.name)
        picks = "src" in operator.attributes
        open_inside = operator.inputs is None and any(self.free[child] for child in node.children)
        self.free[node] = picks or open_inside
        if operator.inputs is not None:
            self.wanted[node] = operator.inputs
        elif picks:
            self.wanted[node] = int(node.get("src", 0)) + 1
        else:
            offered = node.children[:1] if operator.result == "child" else node.children
            self.wanted[node] = max((self.wanted[child] for child in offered), default=1)

    def _count_uses(self, order: list[Term]) -> dict[Term, int]:
        uses: dict[Term, int] = {}
        for node in reversed(order):  # parents before their children
            wraps = style_of(self.registry.operator(node.name)) == "wrap"  # not worth a panel: its child is
            for child in node.children:
                uses[child] = uses.get(child, 0) + (max(1, uses.get(node, 0)) if wraps else 1)
        decisions = [node for node in order if self._decides(node)]
        for node in decisions:
            plain = node.replace(attributes={})
            uses[plain] = uses.get(plain, 0) + (plain is not node)
        return uses

    def _decides(self, node: Term) -> bool:
        style = style_of(self.registry.operator(node.name))
        return style == "stack" and len(node.children) >= ALTERNATIVES and not self.free[node]

    def _part(self, term: Term, level: int, root: bool = False) -> Part:
        """Return the part of a term; a wiring waits to be expanded."""
        self._left -= 1
        if not term.children:
            return Part(term, "operation", level)
        shown = term
        if not root and self._decides(term):
            plain = term.replace(attributes={})
            shown = plain if self._uses.get(plain, 0) > 1 else term
        style = style_of(self.registry.operator(term.name))
        worth = style != "wrap" and (shown.size >= PANEL_SIZE or shown is not term)
        if not root and worth and self._uses.get(shown, 0) > 1 and not self.free[term]:
            return self._reference(term, shown, level)
        part = Part(term, style, level)
        self._queue.append(part)
        return part

    def _reference(self, term: Term, shown: Term, level: int) -> Part:
        name = self._named.get(shown)
        if name is None:
            if self._left <= 0:
                return folded(term, level)
            self.free.setdefault(shown, False)
            name = self._named[shown] = next(self._names)
            self.panels.append(Panel(name, self._part(shown, 0, root=True)))
        return Part(term, "reference", level, name=name)

    def _expand(self, part: Part) -> None:
        """Give a wiring its children, or fold it where there is no room for them."""
        if part.style == "chain":
            below = part.level
            terms, hidden = self._chained(part.term)
            part.hidden = hidden
        else:
            below = part.level + 1
            terms, part.hidden = self._inside(part.term)
        if self._left < len(terms) or below > FRAMES or not terms:
            part.style, part.hidden, part.children = "fold", part.term.size, []
            return
        part.children = [self._part(term, below) for term in terms]
        if part.style == "chain" and part.hidden:
            part.children.append(folded(part.term, below, part.hidden))

    def _chained(self, term: Term) -> tuple[list[Term], int]:
        """Return the links of a chain, those of chains inside it spliced in, and how many nodes are left out."""
        found: list[Term] = []
        stack = list(reversed(term.children))
        while stack and len(found) < ROW:
            node = stack.pop()
            inner = node.children and style_of(self.registry.operator(node.name)) == "chain"
            if inner and not (node.size >= PANEL_SIZE and self._uses.get(node, 0) > 1):
                stack.extend(reversed(node.children))
            else:
                found.append(node)
        return found, sum(node.size for node in stack)

    def _inside(self, term: Term) -> tuple[list[Term], int]:
        """Return what stands inside a wiring: its children, or for a cell the operations that its nodes wrap."""
        found: list[Term] = []
        seen = 0
        for index, child in enumerate(term.children):
            of_child: list[Term] = []
            stack = [child]
            while stack:
                node = stack.pop()
                seen += 1
                if seen > FREE:
                    return found, len(term.children) - index
                if self.free[node] and node.children:
                    stack.extend(reversed(node.children))
                else:
                    of_child.append(node)
            if len(found) + len(of_child) > ROW:
                return found, len(term.children) - index
            found += of_child
        return found, 0


def folded(term: Term, level: int, hidden: int = 0) -> Part:
    """Return the part that stands for nodes that are not drawn."""
    return Part(term, "fold", level, hidden=hidden or term.size)


def names() -> Iterator[str]:
    """Yield A, B, ..., Z, A1, B1, ..."""
    for number in count():
        for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
            yield f"{letter}{number or ''}"


def count_text(number: int) -> str:
    """Return a number of nodes as people read it."""
    return f"{number:,}" if number < 10**12 else f"about 2^{number.bit_length() - 1}"


__all__ = ["LIMIT", "Panel", "Part", "Plan", "count_text", "folded"]
