"""Terms written from Python: a small notation that the spaces share, checked like any text.

`term("Sequential", a, b)` is what `parse("Sequential(a, b)")` gives. Nothing here knows a particular space.
"""

from __future__ import annotations

from eclose.algebra.registry import default_registry
from eclose.algebra.terms import Term, Value


def term(operator: str, /, *children: Term, **attributes: Value) -> Term:
    """Return the checked, normalised term of an operator (by any of its names) applied to terms."""
    return default_registry().normal(operator, children, attributes)


def named(names: tuple[str, ...]) -> dict[Term, str]:
    """Return for each literature name the term it stands for, turned round: term to name."""
    return {term(name): name for name in names}


__all__ = ["named", "term"]
