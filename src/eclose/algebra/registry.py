"""The registry: which operators exist, what a name means, and whether a term obeys the declarations.

One registry is a value; `eclose.operators.standard()` returns the one that ships. A user's operators are added to a
copy or to the standard one. Normalising a term (`normal`) expands synonyms and aliases, gives attributes their declared
kind, drops defaults and checks arity, attributes and types, without any tensor library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from eclose.algebra.declarations import TYPES, Operator, resolve
from eclose.algebra.errors import RequestError, TermError, did_you_mean
from eclose.algebra.terms import Attributes, Term, Value, distinct, intern, tagged

Types = frozenset[str]


@dataclass(frozen=True)
class Meant:
    """What a written name stands for: an operator and the attributes that an alias fixes."""

    operator: Operator
    fixed: Mapping[str, Value] = field(default_factory=dict)


class Registry:
    """Operators by name, with their synonyms and literature aliases."""

    def __init__(self, operators: Iterable[Operator] = ()):
        self._operators: dict[str, Operator] = {}
        self._meant: dict[str, Meant] = {}
        self._aliases: dict[str, list[tuple[str, dict[str, Value]]]] = {}
        self._types: dict[Term, Types] = {}
        for operator in operators:
            self.add(operator)

    def __contains__(self, name: str) -> bool:
        return name in self._meant

    def __iter__(self) -> Iterator[Operator]:
        return iter(sorted(self._operators.values(), key=lambda operator: operator.name))

    def __len__(self) -> int:
        return len(self._operators)

    def names(self) -> list[str]:
        """Return every name that a term may use: operators, synonyms and aliases."""
        return sorted(self._meant)

    def copy(self) -> Registry:
        """Return a registry that can grow on its own."""
        return Registry(self._operators.values())

    def add(self, operator: Operator) -> Operator:
        """Add an operator; a name that is taken is refused."""
        names = [operator.name, *operator.synonyms, *operator.aliases, *operator.spellings]
        for name in names:
            if name in self._meant:
                taken = self._meant[name].operator.name
                raise RequestError(f"the name {name!r} is already taken by the operator {taken!r}")
            if not (name.isidentifier() and name.isascii()):
                raise RequestError(f"{name!r} cannot name an operator: use letters, digits and underscores")
        if operator.result not in (*TYPES, "child", "children"):
            hint = did_you_mean(operator.result, TYPES)
            raise RequestError(f"operator {operator.name!r}: {operator.result!r} is no result type{hint}")
        self._operators[operator.name] = operator
        for name in (operator.name, *operator.synonyms):
            self._meant[name] = Meant(operator)
        for alias, fixed in {**operator.aliases, **operator.spellings}.items():
            given = {key: operator.attributes[key].checked(value) for key, value in fixed.items()}
            self._meant[alias] = Meant(operator, given)
            if alias in operator.spellings:
                continue
            written = {key: value for key, value in given.items() if tagged(value) != _default(operator, key)}
            self._aliases.setdefault(operator.name, []).append((alias, written))
        return operator

    def meant(self, name: str) -> Meant:
        """Return what a written name stands for."""
        found = self._meant.get(name)
        if found is None:
            raise TermError(f"unknown operator {name!r}{did_you_mean(name, self._meant)}", text=name)
        return found

    def operator(self, name: str) -> Operator:
        """Return the operator of a normalised term."""
        found = self._operators.get(name)
        return found if found is not None else self.meant(name).operator

    def alias_of(self, term: Term) -> tuple[str, Attributes] | None:
        """Return the literature alias that prints the term, with the attributes still to be written.

        An alias is used where its fixed attributes match exactly those the term sets, so that no alias hides or
        repeats an attribute.
        """
        set_here = {key: tagged(value) for key, value in term.attributes}
        for alias, written in self._aliases.get(term.name, ()):
            if {key: tagged(value) for key, value in written.items()} == set_here:
                return alias, ()
        return None

    def applied(self, name: str, count: int, attributes: Mapping[str, Value]) -> tuple[Operator, Attributes]:
        """Return the operator that a written name applies to `count` children, with its normalised attributes."""
        meant = self.meant(name)
        operator = meant.operator
        if attributes or meant.fixed:
            given = self._checked_attributes(name, operator, {**attributes}, meant.fixed)
        else:
            given = ()
        for key, attribute in operator.attributes.items():
            if attribute.required and key not in attributes and key not in meant.fixed:
                raise TermError(f"{name} needs {key}= ({attribute.description or attribute.kind})", text=name)
        least, most = operator.children
        if name in operator.counted:
            least = most = operator.counted[name]
        if count < least or (most is not None and count > most):
            raise TermError(f"{name} takes {_counted(least, most)}, not {count}", text=name)
        return operator, given

    def normal(self, name: str, children: tuple[Term, ...], attributes: Mapping[str, Value]) -> Term:
        """Return the normalised, checked term for a written name applied to normalised children."""
        operator, given = self.applied(name, len(children), attributes)
        for index, child in enumerate(children):
            accepted = operator.accepted(index, len(children))
            found = self.types(child)
            if not found <= accepted:
                wrong = " and ".join(sorted(found - accepted))
                right = " or ".join(sorted(accepted))
                raise TermError(
                    f"{name} cannot take {child.name!r} as child {index + 1}: it gives {wrong} where {right} is needed",
                    text=name,
                )
        return intern(operator.name, children, given)

    def _checked_attributes(
        self, name: str, operator: Operator, given: dict[str, Value], fixed: Mapping[str, Value]
    ) -> Attributes:
        result = []
        for key, value in {**fixed, **given}.items():
            attribute = operator.attributes.get(key)
            if attribute is None:
                known = ", ".join(sorted(operator.attributes)) or "none"
                hint = did_you_mean(key, operator.attributes)
                raise TermError(f"{name} has no attribute {key!r}{hint} (attributes: {known})", text=key)
            try:
                value = attribute.checked(value)
            except TermError as error:
                raise TermError(f"{name}: {key} {error}", text=key) from None
            if key in fixed and tagged(fixed[key]) != tagged(value):
                raise TermError(
                    f"{name} already means {key}={fixed[key]}; write {operator.name} to set another", text=key
                )
            if attribute.default is None or tagged(value) != tagged(attribute.default):
                result.append((key, value))
        return tuple(sorted(result))

    def types(self, term: Term) -> Types:
        """Return the types that a normalised term gives; more than one is a bundle."""
        found = self._types.get(term)
        if found is None:
            known = self._types
            for node in distinct(term, known=known.__contains__):
                operator = self.operator(node.name)
                if operator.result == "child":
                    types = known[node.children[-1]]
                elif operator.result == "children":
                    types = frozenset().union(*(known[child] for child in node.children))
                else:
                    types = frozenset({operator.result})
                known[node] = types
            found = known[term]
            if len(known) > 200_000:
                known.clear()
        return found

    def value(self, term: Term, key: str) -> Value | None:
        """Return an attribute's value in a normalised term, the default where it is not set."""
        given = term.get(key)
        return given if given is not None else self.operator(term.name).attributes[key].default


def default_registry() -> Registry:
    """Return the shared registry of the operators that ship and those a user has registered.

    The layer above is found by name: the language itself knows no operator.
    """
    registry: Registry = resolve("eclose.operators:standard")()
    return registry


def _default(operator: Operator, key: str) -> tuple[object, ...] | None:
    default = operator.attributes[key].default
    return None if default is None else tagged(default)


def _counted(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least} {'child' if least == 1 else 'children'}"
    if least == most:
        return f"{least or 'no'} {'child' if least == 1 else 'children'}"
    return f"{least} to {most} children"
