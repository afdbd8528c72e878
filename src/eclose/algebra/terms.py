"""Terms: immutable, hash-consed expressions that stand for architectures.

Equal terms are one object, so equality is identity and sharing is visible. This module knows nothing of operators'
declarations, texts or grammars. Every walk is iterative: a term may be 100,000 deep, and a term of 65 distinct nodes
may stand for 3^64 occurrences.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar

from eclose.algebra.errors import LimitError, TermError

Value: TypeAlias = "int | float | bool | str | tuple[Value, ...]"
Attributes: TypeAlias = tuple[tuple[str, Value], ...]
Result = TypeVar("Result")

OCCURRENCE_LIMIT = 1_000_000
SIZE_BITS = 4096  # sizes are exact integers; a tower of lets beyond 2^4096 occurrences is nobody's architecture


class Term:
    """An operator applied to terms.

    Attributes:
        name: the operator.
        children: the terms it is applied to.
        attributes: `(key, value)` pairs sorted by key.
        size: the number of occurrences of nodes (not of distinct nodes).
        depth: the number of nodes on the longest path to a leaf.
    """

    __slots__ = ("__weakref__", "_digest", "attributes", "children", "depth", "name", "size")

    name: str
    children: tuple[Term, ...]
    attributes: Attributes
    size: int
    depth: int
    _digest: int

    def __new__(
        cls, name: str, children: tuple[Term, ...] = (), attributes: Attributes | Mapping[str, Value] = ()
    ) -> Term:
        """Return the one term with these parts."""
        pairs = attributes.items() if isinstance(attributes, Mapping) else attributes
        given = tuple(sorted((key, plain(value)) for key, value in pairs))
        for written in (name, *(key for key, _ in given)):
            if not (isinstance(written, str) and written.isascii() and written.isidentifier()):
                raise TermError(f"{written!r} cannot be a name in a term: use letters, digits and underscores")
        return intern(name, tuple(children), given)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"a term is immutable; build a new one instead of setting {key!r}")

    def __delattr__(self, key: str) -> None:
        raise AttributeError("a term is immutable")

    def __copy__(self) -> Term:
        return self

    def __deepcopy__(self, memo: object) -> Term:
        return self

    def __reduce__(self) -> tuple[Callable[[str], Term], tuple[str]]:
        from eclose.algebra.printing import exact_text
        from eclose.algebra.reading import read_exact

        return read_exact, (exact_text(self),)

    def __str__(self) -> str:
        from eclose.algebra.printing import term_text

        return term_text(self)

    def __repr__(self) -> str:
        text = str(self)
        return text if len(text) <= 400 else f"<term {self.name} of {self.size} nodes, digest {self.digest:016x}>"

    def __hash__(self) -> int:
        return self.digest

    def __lt__(self, other: Term) -> bool:
        return compare(self, other) < 0

    def __le__(self, other: Term) -> bool:
        return compare(self, other) <= 0

    def __gt__(self, other: Term) -> bool:
        return compare(self, other) > 0

    def __ge__(self, other: Term) -> bool:
        return compare(self, other) >= 0

    @property
    def digest(self) -> int:
        """A 64-bit number that is the same in every process and version of Python."""
        if self._digest < 0:
            for node in distinct(self, known=lambda term: term._digest >= 0):
                _set(node, "_digest", _digest_of(node))
        return self._digest

    def get(self, key: str, default: Any = None) -> Any:
        """Return an attribute's value, or the default where the term does not set it."""
        for name, value in self.attributes:
            if name == key:
                return value
        return default

    def replace(
        self, *, children: tuple[Term, ...] | None = None, attributes: Mapping[str, Value] | None = None
    ) -> Term:
        """Return this term with other children or attributes."""
        return Term(
            self.name,
            self.children if children is None else children,
            self.attributes if attributes is None else attributes,
        )


_set = object.__setattr__
_terms: weakref.WeakValueDictionary[tuple[Any, ...], Term] = weakref.WeakValueDictionary()
_lock = threading.RLock()  # re-entrant: a garbage collection inside may drop terms


def plain(value: Any) -> Value:
    """Return an attribute's value in its one form: `-0.0` is `0.0`, a list is a tuple; anything else is refused."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if value - value != 0.0:
            raise TermError(f"an attribute must be finite, not {value}")
        return float(value) + 0.0
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    raise TermError(f"an attribute is an int, float, bool, string or tuple of these, not {type(value).__name__}")


def tagged(value: Value) -> tuple[Any, ...]:
    """Return a sortable key in which `1`, `1.0` and `true` differ."""
    if isinstance(value, tuple):
        return ("tuple", tuple(tagged(item) for item in value))
    return (type(value).__name__, value)


def intern(name: str, children: tuple[Term, ...], attributes: Attributes) -> Term:
    """Return the one term with these parts; attributes must be sorted and `plain`."""
    key: tuple[Any, ...] = (name, *map(id, children))
    if attributes:
        key = (key, tuple((label, tagged(value)) for label, value in attributes))
    found = _terms.get(key)
    if found is not None:
        return found
    size, depth = 1, 0
    for child in children:
        size += child.size
        if child.depth > depth:
            depth = child.depth
    if size.bit_length() > SIZE_BITS:
        raise LimitError(f"the term under {name!r} has more than 2^{SIZE_BITS} occurrences of nodes")
    term = object.__new__(Term)
    _set(term, "name", name)
    _set(term, "children", children)
    _set(term, "attributes", attributes)
    _set(term, "size", size)
    _set(term, "depth", depth + 1)
    _set(term, "_digest", -1)
    with _lock:
        return _terms.setdefault(key, term)


def _digest_of(term: Term) -> int:
    children = b"".join(child._digest.to_bytes(8, "big") for child in term.children)
    label = repr((term.name, [(key, tagged(value)) for key, value in term.attributes])).encode()
    return int.from_bytes(blake2b(label + b"\0" + children, digest_size=8).digest(), "big")


def compare(a: Term, b: Term) -> int:
    """Return -1, 0 or 1: the order by size, name, attributes (with type tags), then children.

    Terms are hash-consed, so two terms that differ do so at a first child that is not the same object: the comparison
    walks down one path only.
    """
    while a is not b:
        for left, right in (
            (a.size, b.size),
            (a.name, b.name),
            (
                [(key, tagged(value)) for key, value in a.attributes],
                [(key, tagged(value)) for key, value in b.attributes],
            ),
            (len(a.children), len(b.children)),
        ):
            if left != right:
                return -1 if left < right else 1  # type: ignore[operator]
        a, b = next((x, y) for x, y in zip(a.children, b.children, strict=True) if x is not y)
    return 0


def distinct(term: Term, known: Callable[[Term], bool] | None = None) -> Iterator[Term]:
    """Yield every distinct subterm once, children before parents; subterms that are `known` are left out."""
    seen: set[int] = set()
    stack: list[tuple[Term, bool]] = [(term, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
            continue
        if id(node) in seen or (known is not None and known(node)):
            continue
        seen.add(id(node))
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(node.children) if id(child) not in seen)


def fold(term: Term, combine: Callable[[Term, list[Result]], Result]) -> Result:
    """Return `combine(node, results of its children)` at the root, each distinct subterm being combined once."""
    results: dict[int, Result] = {}
    for node in distinct(term):
        results[id(node)] = combine(node, [results[id(child)] for child in node.children])
    return results[id(term)]


def occurrences(term: Term, limit: int = OCCURRENCE_LIMIT) -> Iterator[tuple[tuple[int, ...], Term]]:
    """Yield `(position, subterm)` for every occurrence, parents first; a position is the path of child indices.

    Refuses a term with more than `limit` occurrences instead of walking forever. Positions of a deep term are long:
    `nodes` walks the same occurrences without them.
    """
    refuse_beyond(term, limit)
    stack: list[tuple[tuple[int, ...], Term]] = [((), term)]
    while stack:
        position, node = stack.pop()
        yield position, node
        for index in range(len(node.children) - 1, -1, -1):
            stack.append(((*position, index), node.children[index]))


def nodes(term: Term, limit: int = OCCURRENCE_LIMIT) -> Iterator[Term]:
    """Yield every occurrence of a node, parents first."""
    refuse_beyond(term, limit)
    stack = [term]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def refuse_beyond(term: Term, limit: int = OCCURRENCE_LIMIT) -> None:
    """Raise when the term has more than `limit` occurrences of nodes."""
    if term.size > limit:
        count = str(term.size) if term.size.bit_length() < 200 else f"about 2^{term.size.bit_length() - 1}"
        raise LimitError(f"this term has {count} occurrences of nodes, more than the limit of {limit:,}")


def subterm(term: Term, position: tuple[int, ...]) -> Term:
    """Return the subterm at a position."""
    for index in position:
        term = term.children[index]
    return term


def with_subterm(term: Term, position: tuple[int, ...], new: Term) -> Term:
    """Return the term with the subterm at one position replaced."""
    spine = []
    for index in position:
        spine.append(term)
        term = term.children[index]
    for parent, index in zip(reversed(spine), reversed(position), strict=True):
        new = intern(parent.name, (*parent.children[:index], new, *parent.children[index + 1 :]), parent.attributes)
    return new
