"""What a derivation decides once: shared rules and named selections, reduced to those that matter.

A shared rule used at one place only is an ordinary rule. A named selection made at one place only needs no tie. And a
part all of whose decisions are named gives the same term at all its places, so it is as good as shared - which leaves
the names inside it with one place. After this, ties between places are rare, and counting stays cheap.
"""

from __future__ import annotations

from dataclasses import replace

from eclose.algebra.errors import GrammarError
from eclose.algebra.grammar.productions import Production, Productions
from eclose.algebra.grammar.rules import Source
from eclose.algebra.tokens import located

MANY = 2  # occurrences are counted as 0, 1 or many


def simplified(productions: Productions) -> Productions:
    """Return productions with the same language in which only shared parts with several places are shared."""
    result = Productions(
        list(productions.names),
        [list(group) for group in productions.of],
        productions.start,
        dict(productions.references),
        [],
        dict(productions.selections),
    )
    while result.selections:
        promoted = _worth_sharing(result)
        if not promoted:
            break
        for nonterminal in promoted:
            _share(result, nonterminal)
    _untie(result)
    _unshare(result)
    result.order = _order(result)
    return result


def refuse_cycles(source: Source, productions: Productions) -> None:
    """Raise where a shared rule reaches itself: it would have to contain its own term."""
    uses = {rule: _references_below(productions, rule) for rule in productions.references.values()}
    for rule in uses:
        seen, stack = set[int](), [rule]
        while stack:
            for reference in uses[stack.pop()]:
                used = productions.references[reference]
                if used == rule:
                    name = productions.names[rule]
                    offset = source.rules[name].offset
                    message = f"the shared rule {name} reaches itself; its one term would contain itself"
                    raise located(GrammarError, message, source.text, offset, name)
                if used not in seen:
                    seen.add(used)
                    stack.append(used)


def _worth_sharing(productions: Productions) -> list[int]:
    """Return the outermost parts with named selections inside that are determined by names and occur often."""
    determined = _determined(productions)
    guarded = _with_guards(productions)
    counts = _occurrences(productions, [number for number in sorted(determined) if guarded[number]])
    often = {number for number, count in counts.items() if count == MANY and number not in _shared(productions)}
    inner: set[int] = set()
    for number in often:
        inner.update(_below(productions, number) - {number})
    return sorted(often - inner)


def _shared(productions: Productions) -> set[int]:
    return {*productions.references.values(), productions.start}


def _share(productions: Productions, nonterminal: int) -> None:
    reference = productions.add_nonterminal()
    for group in productions.of:
        for index, production in enumerate(group):
            if nonterminal in production.children:
                children = tuple(reference if child == nonterminal else child for child in production.children)
                group[index] = replace(production, children=children)
    productions.references[reference] = nonterminal


def _untie(productions: Productions) -> None:
    """Drop the guards of selections that are made at no more than one place of a derivation."""
    places: dict[str, set[int]] = {name: set() for name in productions.selections}
    for production in productions:
        if production.guard is not None:
            places[production.guard[0]].add(production.left)
    counts = _occurrences(productions, sorted(set().union(*places.values())))
    for name, lefts in places.items():
        if sum(counts[left] for left in lefts) < MANY:
            del productions.selections[name]
    for group in productions.of:
        for index, production in enumerate(group):
            if production.guard is not None and production.guard[0] not in productions.selections:
                group[index] = replace(production, guard=None)


def _unshare(productions: Productions) -> None:
    """Make shared rules that are used at no more than one place ordinary ones."""
    while True:
        counts = _occurrences(productions, sorted(productions.references))
        single = [reference for reference, count in counts.items() if count < MANY]
        for reference in single:
            rule = productions.references.pop(reference)
            offset = productions.of[rule][0].offset if productions.of[rule] else 0
            productions.of[reference] = [Production(reference, None, (rule,), 1.0, 1, None, 0, offset)]
        if not single:
            return


def _occurrences(productions: Productions, wanted: list[int]) -> dict[int, int]:
    """Return how often each of some nonterminals can occur in a derivation: 0, 1 or `MANY`.

    What a shared rule contains counts once, however often the rule is used.
    """
    rows: list[dict[int, int]] = [{} for _ in productions.names]
    for nonterminal in wanted:
        rows[nonterminal] = {nonterminal: 1}
    order = children_first(productions)
    changed = bool(wanted)
    while changed:  # twice through, unless the grammar is recursive
        changed = False
        for left in order:
            row = rows[left]
            own = left in row
            for production in productions.of[left]:
                total: dict[int, int] = {left: 1} if own else {}
                for child in production.children:
                    for counted, times in rows[child].items():
                        total[counted] = min(MANY, total.get(counted, 0) + times)
                for counted, times in total.items():
                    if times > row.get(counted, 0):
                        row[counted] = times
                        changed = True
    found = dict.fromkeys(wanted, 0)
    for root in [productions.start, *sorted(set(productions.references.values()))]:
        for counted, times in rows[root].items():
            found[counted] = min(MANY, found[counted] + times)
    return found


def children_first(productions: Productions) -> list[int]:
    """Return the nonterminals in an order in which those below come first, where there is one.

    What grows from the leaves up is known after one pass in this order, unless the grammar is recursive.
    """
    order: list[int] = []
    seen: set[int] = set()
    for first in range(len(productions.names)):
        stack = [(first, False)]
        while stack:
            left, done = stack.pop()
            if done:
                order.append(left)
            elif left not in seen:
                seen.add(left)
                stack.append((left, True))
                stack += [(child, False) for production in productions.of[left] for child in production.children]
                if left in productions.references:
                    stack.append((productions.references[left], False))
    return order


def _determined(productions: Productions) -> set[int]:
    """Return the nonterminals whose term follows from the named selections alone."""
    found = set()
    for left, group in enumerate(productions.of):
        names = {production.guard and production.guard[0] for production in group}
        if left in productions.references or len(group) == 1 or (len(names) == 1 and None not in names):
            found.add(left)
    while True:
        lost = {
            left for left in found for production in productions.of[left] if not found.issuperset(production.children)
        }
        if not lost:
            return found
        found -= lost


def _with_guards(productions: Productions) -> list[bool]:
    """Return for each nonterminal whether a named selection can occur below it."""
    found = [any(production.guard for production in group) for group in productions.of]
    changed = True
    while changed:
        changed = False
        for left in children_first(productions):
            if not found[left] and any(
                found[child] for production in productions.of[left] for child in production.children
            ):
                found[left] = changed = True
    return found


def _below(productions: Productions, top: int) -> set[int]:
    """Return the nonterminals that a derivation from one can contain, itself among them."""
    seen, stack = {top}, [top]
    while stack:
        for production in productions.of[stack.pop()]:
            for child in production.children:
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
    return seen


def _references_below(productions: Productions, rule: int) -> list[int]:
    return [number for number in sorted(_below(productions, rule)) if number in productions.references]


def _order(productions: Productions) -> list[int]:
    """Return the stand-ins, each before those that its rule uses."""
    order: list[int] = []
    done: set[int] = set()
    for first in productions.references:
        stack = [(first, False)]
        while stack:
            reference, finished = stack.pop()
            if finished:
                order.append(reference)
            elif reference not in done:
                done.add(reference)
                stack.append((reference, True))
                stack += [(used, False) for used in _references_below(productions, productions.references[reference])]
    return order[::-1]
