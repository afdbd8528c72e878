"""Partial channel connections as graphs: two parts of the channels, one through the child, joined in order."""

from __future__ import annotations

from eclose.algebra.terms import Term
from eclose.algebra.terms import Value as AttributeValue
from eclose.meanings.graph.builder import Meaning, Site, Value


def partial(site: Site, x: Value) -> Meaning:
    """A join of the child's part and the part that passes by, which the stride pools.

    The join stands for concatenation and shuffle. Its slots keep their order, so nothing that is pruned or contracted
    on one part moves the other: `partial(zero)` is no zero and `partial(id)` no identity.
    """
    k = site.value("k")
    if k == 1:
        result: Value = yield site.child(0, x)
        return result
    sizes: dict[str, AttributeValue] = {"k": k}
    chosen = site.operation(Term("chosen_channels", (), sizes), x, local="chosen")
    channels = site.context.channels
    mixed = yield site.child(0, chosen, channels=None if channels is None else channels // k)
    if site.context.stride != 1:
        sizes["stride"] = site.context.stride
    rest = site.operation(Term("rest_of_channels", (), sizes), x, local="rest")
    return {"feature": site.join(Term("partial", (), {"k": k}), [site.one(mixed), site.one(rest)])}
