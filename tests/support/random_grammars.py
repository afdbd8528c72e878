"""Random small grammars, and everything they derive found by exhaustion: an independent reference for all of counting.

The reference reads the rules as written and threads what has been decided (shared rules, named choices) through a plain
generator; it shares no code with the automata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from random import Random

from eclose.algebra.grammar import Grammar
from eclose.algebra.grammar.rules import CHOICE, PICK, RULE
from eclose.algebra.registry import default_registry
from eclose.algebra.terms import Term, fold

LEAVES = ("id", "zero", "relu", "conv(kernel={1, 3})", "avg_pool")
WIRINGS = {"Residual": 3, "Diamond": 4, "Sequential": 2, "Parallel": 2, "UnaryTopo": 1, "Repeat": 1}


def random_grammar(rng: Random, shared: bool = False, constrained: bool = False, named: bool = False) -> str:
    """Return the text of a grammar without recursion, with at most a few thousand derivations."""
    rules = rng.randint(2, 4)
    lines = []
    shared_rules = [name for name in range(1, rules) if shared and rng.random() < 0.6]
    for number in range(rules):
        later = [f"R{other}" for other in range(number + 1, rules)]
        alternatives = _distinct(lambda: _alternative(rng, later, named), rng.randint(1, 3))  # noqa: B023
        if number + 1 < rules:
            alternatives.append(f"Sequential({', '.join(rng.sample(later, len(later)))}, {rng.choice(later)})")
        weights = [rng.choice(("", "", " [2]", " [3]", " [0.5]")) for _ in alternatives]
        written = " | ".join(a + w for a, w in zip(alternatives, weights, strict=True))
        lines.append(f"{'shared ' if number in shared_rules else ''}R{number} -> {written}")
    text = "\n".join(lines)
    if constrained:
        for wiring in WIRINGS:
            if wiring in text and wiring != "Repeat" and rng.random() < 0.7:
                lines.append(f"constrain {wiring} connected")
        if rng.random() < 0.4:
            lines.append(f"constrain size({rng.randint(4, 14)})")
        if rng.random() < 0.3:
            lines.append(f"constrain depth({rng.randint(2, 5)})")
    return "\n".join(lines)


def _distinct(make, count: int) -> list[str]:
    return list(dict.fromkeys(make() for _ in range(count)))


def _alternative(rng: Random, later: list[str], named: bool) -> str:
    items = [*later, *later, "id", "zero", "relu", "conv"]
    draw = rng.random()
    if not later and draw < 0.7:
        return rng.choice(LEAVES)
    if draw < 0.15:
        return rng.choice(items)
    if draw < 0.3:
        chosen = _distinct(lambda: rng.choice(items), 3)
        name = f', name="n{rng.randint(0, 1)}_{len(chosen)}"' if named and rng.random() < 0.7 else ""
        return f"UnaryTopo(choice({', '.join(chosen)}{name}))"
    if draw < 0.4:
        chosen = _distinct(lambda: rng.choice(items), 3)
        return f"pick({', '.join(f'on({item}, src={index})' for index, item in enumerate(chosen))}, k=1)"
    wiring = rng.choice(list(WIRINGS))
    children = [rng.choice(items) for _ in range(WIRINGS[wiring])]
    return f"{wiring}({', '.join(children)}{', n=2' if wiring == 'Repeat' else ''})"


def derivations(grammar: Grammar) -> list[tuple[Term, int, float]]:
    """Return every derivation's term, how many derivations it stands for and its prior probability."""
    source, registry = grammar.source, default_registry()

    def rule(name: str, settled: dict) -> Iterator[tuple[Term, int, float, dict]]:
        found = source.rules[name]
        remembered = found.shared and name != source.start[0]
        if remembered and name in settled:
            yield settled[name], 1, 1.0, settled
            return
        total = sum(alternative.weight for alternative in found.alternatives)
        for alternative in found.alternatives:
            weight = alternative.weight
            times = weight if isinstance(weight, int) else 1
            for term, count, share, after in pattern(alternative.nodes, len(alternative.nodes) - 1, settled):
                yield term, times * count, weight / total * share, {**after, name: term} if remembered else after

    def pattern(nodes, at: int, settled: dict) -> Iterator[tuple[Term, int, float, dict]]:
        node = nodes[at]
        if node.kind == RULE:
            yield from rule(node.name, settled)
        elif node.kind in (CHOICE, PICK):
            keep = node.get("k") if node.kind == PICK else 1
            options = list(combinations(node.children, keep))
            name = node.get("name")
            for number, chosen in enumerate(options):
                if name is not None and settled.get(("name", name), number) != number:
                    continue
                first = 1 / len(options) if name is None or ("name", name) not in settled else 1.0
                tied = settled if name is None else {**settled, ("name", name): number}
                for children, count, share, after in row(nodes, chosen, tied):
                    term = children[0] if node.kind == CHOICE else registry.normal("node", children, {})
                    yield term, count, first * share, after
        else:
            variants = list(product(*(values for _, values in node.attributes)))
            for values in variants:
                given = {key: value for (key, _), value in zip(node.attributes, values, strict=True)}
                for children, count, share, after in row(nodes, node.children, settled):
                    yield registry.normal(node.name, children, given), count, share / len(variants), after

    def row(nodes, children, settled: dict) -> Iterator[tuple[tuple[Term, ...], int, float, dict]]:
        if not children:
            yield (), 1, 1.0, settled
            return
        for first, count, share, after in pattern(nodes, children[0], settled):
            for rest, more, other, last in row(nodes, children[1:], after):
                yield (first, *rest), count * more, share * other, last

    found = rule(source.start[0], {})
    return [(term, count, share) for term, count, share, _ in found if allowed(grammar, term)]


def allowed(grammar: Grammar, term: Term) -> bool:
    """Return whether a term obeys the constraints, each written down here once more in the simplest way."""
    registry = default_registry()
    broken = False
    connected = {
        registry.meant(line.operator).operator.name for line in grammar.source.constraints if line.kind == "connected"
    }

    def present(node: Term, children: list[bool]) -> bool:
        nonlocal broken
        if node.name == "zero":
            return False
        edges = registry.operator(node.name).edges
        if not children:
            return True
        if edges:
            paths = [[0]]
            target = max(head for _, head in edges)
            result = False
            while paths:
                path = paths.pop()
                result |= path[-1] == target
                paths += [[*path, b] for (a, b), there in zip(edges, children, strict=True) if there and a == path[-1]]
        else:
            result = all(children) if node.name == "Sequential" else any(children)
        broken |= node.name in connected and not result
        return result

    fold(term, present)
    for line in grammar.source.constraints:
        broken |= line.kind == "size" and term.size > line.argument
        broken |= line.kind == "depth" and term.depth > line.argument
    return not broken


def summary(grammar: Grammar) -> tuple[Counter[Term], dict[Term, float]]:
    """Return the number of derivations and the prior probability of every term, the latter among allowed terms."""
    counts: Counter[Term] = Counter()
    shares: dict[Term, float] = {}
    for term, count, share in derivations(grammar):
        counts[term] += count
        shares[term] = shares.get(term, 0.0) + share
    total = sum(shares.values())
    return counts, {term: share / total for term, share in shares.items()}
