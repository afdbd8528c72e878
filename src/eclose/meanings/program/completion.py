"""What a bare term needs to be a network: a stem in front and a head behind, where it has none.

Every meaning that computes something completes a term in this one way, so that they speak of the same network.
"""

from __future__ import annotations

from eclose.algebra.registry import Registry
from eclose.algebra.shapes import Input, Output
from eclose.algebra.terms import Term, distinct


def completed(term: Term, input: Input, output: Output | None, registry: Registry) -> Term:
    """Return the term with the default stem and head where it has no operator of that role.

    A term of which no output is asked and which has no head is a part of a network, and stays as it is.

    Args:
        term: a normalised term.
        input: what goes in; the default stem takes the form that it needs.
        output: what the default head gives, None where nothing is asked.
        registry: the operators.
    """
    roles = {registry.operator(node.name).role for node in distinct(term)}
    if output is None and "head" not in roles:
        return term
    parts = [term]
    if "stem" not in roles:
        parts.insert(0, registry.normal("stem", (), {}))
    if "head" not in roles and registry.types(term) != {"logits"}:
        parts.append(registry.normal("head", (), {}))
    return registry.normal("Sequential", tuple(parts), {}) if len(parts) > 1 else term


__all__ = ["completed"]
