"""Between grammars and terms with choices: a grammar relaxed to one open term, an open term read as a grammar.

Nothing here knows how a choice is mixed; it is an operator like any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

from eclose.algebra.errors import GrammarError, LimitError
from eclose.algebra.grammar.rules import APPLY, CHOICE, PICK, RULE, Alternative, Node, Rule, Source
from eclose.algebra.registry import Registry
from eclose.algebra.terms import Term, Value, distinct

TERM_RULE = "Term"


def source_of(term: Term) -> Source:
    """Return the grammar that a term with choices is: one rule, in which `choice` and `pick` are inline alternatives.

    A named choice is one decision at all its places; an unnamed one is decided at every place anew.
    """
    places: dict[Term, int] = {}
    nodes: list[Node] = []
    for node in distinct(term):
        kind = node.name if node.name in (CHOICE, PICK) else APPLY
        attributes = tuple((key, (value,)) for key, value in node.attributes)
        if node.name == PICK and not 1 <= node.get("k", 0) <= len(node.children):
            raise GrammarError(
                f"pick keeps k of its children: k={node.get('k')} of {len(node.children)} cannot be kept"
            )
        places[node] = len(nodes)
        nodes.append(Node(kind, node.name, tuple(places[child] for child in node.children), attributes))
    text = f"{TERM_RULE} -> {str(term) if term.size <= 10_000 else '...'}"
    rule = Rule(TERM_RULE, (Alternative(tuple(nodes), 1, text, 0),), shared=False, offset=0)
    return Source(text, (TERM_RULE, 0), {TERM_RULE: rule}, {}, ())


def relaxed(source: Source, registry: Registry, limit: int) -> Term:
    """Return the term in which every decision of a grammar is left open as a `choice` or `pick`.

    A choice is named by its position inside its shared rule, or inside the start's term; what a grammar names itself
    keeps its name. Alternatives that only refer to another rule are taken in, so a choice has one layer.

    Args:
        source: the rules.
        registry: the operators.
        limit: the largest number of nodes; a larger relaxation is refused with its size.
    """
    sizes = _sizes(source)
    size = sizes[source.start[0]]
    if size == math.inf:
        raise LimitError(
            "a recursive grammar cannot be relaxed, not even a bounded one: its choices would stand inside themselves "
            "infinitely many times; write the depth out as rules of their own"
        )
    if size > limit:
        shown = f"{size:,}" if size < 10**30 else f"about 10^{len(str(size)) - 1}"
        raise LimitError(
            f"the relaxation of this grammar has {shown} nodes, more than the limit of {limit:,}: a choice would stand "
            "for each derivation; search a part of it, share motifs, or raise limit="
        )
    return _Relaxer(source, registry).relax()


def _sizes(source: Source) -> dict[str, int | float]:
    """Return how many nodes the relaxation of each rule has; infinitely many for a recursive one."""
    sizes: dict[str, int | float] = {}
    open_now: set[str] = set()
    stack: list[tuple[str, bool]] = [(source.start[0], False)]
    while stack:
        name, ready = stack.pop()
        if ready:
            open_now.discard(name)
            total: int | float = 1
            for alternative in source.rules[name].alternatives:
                places: list[int | float] = []
                for node in alternative.nodes:
                    if node.kind == RULE:
                        places.append(sizes.get(node.name, math.inf))
                    else:
                        variants = math.prod(len(values) for _, values in node.attributes)
                        inner = 1 + sum(places[child] for child in node.children)
                        places.append(inner if variants == 1 else 1 + variants * inner)
                total += places[-1]
            sizes[name] = total
        elif name in open_now:
            sizes[name] = math.inf
        elif name not in sizes:
            open_now.add(name)
            stack.append((name, True))
            below = {node.name for a in source.rules[name].alternatives for node in a.nodes if node.kind == RULE}
            stack += [(other, False) for other in sorted(below) if sizes.get(other) != math.inf]
    return sizes


class _Relaxer:
    def __init__(self, source: Source, registry: Registry):
        self.source, self.registry = source, registry
        self.shared: dict[str, Term] = {}

    def relax(self) -> Term:
        """Return the open term of the start."""
        return self._rule(self.source.start[0], self.source.start[0], ())

    def _rule(self, name: str, prefix: str, path: tuple[int, ...]) -> Term:
        """Return the open term of a rule at a position; recursion is as deep as rules nest."""
        rule = self.source.rules[name]
        if rule.shared and prefix != name:
            if name not in self.shared:
                self.shared[name] = self._rule(name, name, ())
            return self.shared[name]
        alternatives = self._alternatives(rule)
        if len(alternatives) == 1:
            return self._pattern(alternatives[0], len(alternatives[0]) - 1, prefix, path)
        found: list[Term] = []
        for alternative in alternatives:
            at = (*path, len(found))
            term = self._pattern(alternative, len(alternative) - 1, prefix, at)
            if term not in found:
                found.append(term)
        return self._choice(found, prefix, path)

    def _alternatives(self, rule: Rule) -> list[tuple[Node, ...]]:
        """Return the patterns of a rule; a reference to an unshared rule with alternatives is replaced by those."""
        found: list[tuple[Node, ...]] = []
        for alternative in rule.alternatives:
            root = alternative.nodes[-1]
            if root.kind == RULE and not self.source.rules[root.name].shared:
                found += self._alternatives(self.source.rules[root.name])
            elif root.kind == CHOICE and root.get("name") is None:
                found += [(*alternative.nodes[:child], alternative.nodes[child]) for child in root.children]
            else:
                found += [(*alternative.nodes[:-1], variant) for variant in _variants(root)]
        return found

    def _pattern(self, nodes: tuple[Node, ...], at: int, prefix: str, path: tuple[int, ...]) -> Term:
        node = nodes[at]
        if node.kind == RULE:
            return self._rule(node.name, prefix, path)
        variants = _variants(node)
        if len(variants) > 1:
            terms = [self._applied(nodes, variant, prefix, (*path, index)) for index, variant in enumerate(variants)]
            return self._choice(terms, prefix, path)
        return self._applied(nodes, node, prefix, path)

    def _applied(self, nodes: tuple[Node, ...], node: Node, prefix: str, path: tuple[int, ...]) -> Term:
        children = tuple(
            self._pattern(nodes, child, prefix, (*path, index)) for index, child in enumerate(node.children)
        )
        attributes: dict[str, Value] = {key: values[0] for key, values in node.attributes}
        if node.kind == CHOICE:
            return self._choice(list(dict.fromkeys(children)), prefix, path, attributes)
        if node.kind == PICK:
            attributes.setdefault("name", _position(prefix, path))
        return self.registry.normal(node.name, children, attributes)

    def _choice(
        self, terms: list[Term], prefix: str, path: tuple[int, ...], attributes: Mapping[str, Value] | None = None
    ) -> Term:
        if len(terms) == 1 and not attributes:
            return terms[0]
        return self.registry.normal(CHOICE, tuple(terms), {"name": _position(prefix, path), **(attributes or {})})


def _variants(node: Node) -> list[Node]:
    """Return a node once for every combination of its attributes' alternatives."""
    keys = [key for key, _ in node.attributes]
    if node.kind != APPLY or math.prod(len(values) for _, values in node.attributes) == 1:
        return [node]
    return [
        Node(APPLY, node.name, node.children, tuple((key, (value,)) for key, value in zip(keys, values, strict=True)))
        for values in product(*(values for _, values in node.attributes))
    ]


def _position(prefix: str, path: tuple[int, ...]) -> str:
    return "/".join([prefix, *map(str, path)])
