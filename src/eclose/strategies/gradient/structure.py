"""What a search changes about its supernet, as rewriting of the open term: partial channels and edge normalisation.

PC-DARTS (Xu et al., 2020) is no mixture of its own. That only some channels go through a mixture is the operator
`partial` around each choice; that the edges of a node compete is a `pick` with weights of its own around them. Every
name stays, so what is decided here holds for the space's own relaxation. Nothing here knows tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

from eclose.algebra.errors import RequestError, shortened
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.terms import Term, distinct, fold

CHOICE, PICK, PARTIAL = "choice", "pick", "partial"
KEEPS = "shape-keeping"
RESHAPING = ("channels", "features", "stride", "padding")  # attributes by which an operation may change its shape
SUMMING = "eclose.meanings.program.wirings:edges"  # the wirings whose nodes add up what arrives
SEPARATORS = "/_"


def structured(relaxed: Term, *, partial: int = 1, edge_normalisation: bool = False) -> Term:
    """Return the open term with partial channels and with competing edges.

    Args:
        relaxed: a term with choices, e.g. `space.relaxed()`.
        partial: K; each choice between operations that keep their shape sees the first 1/K of the channels. 1 leaves
            the term as it is.
        edge_normalisation: whether the edges that meet at a node are weighted by softmax(beta) over the node's edges.
            Each `pick` gets weights of its own, and a wiring with choices on edges that meet (`Cell`, `Residual`, ...)
            becomes the equal `dag_cell` of such picks, unless it may inherit a stride, which a dag_cell refuses.
    """
    if isinstance(partial, bool) or not isinstance(partial, int) or partial < 1:
        raise RequestError(f"partial is a whole number of at least 1 (1/partial of the channels), not {partial!r}")
    registry = default_registry()
    term = _with_partial_channels(relaxed, partial, registry) if partial > 1 else relaxed
    return _with_competing_edges(term, registry) if edge_normalisation else term


# Partial channels


def _with_partial_channels(term: Term, k: int, registry: Registry) -> Term:
    def wrapped(node: Term, children: list[Term]) -> Term:
        if node.name == PARTIAL:  # as somebody wrote it
            return node
        if node.name == CHOICE and all(_keeps_shape(child, registry) for child in node.children):
            return registry.normal(PARTIAL, (node,), {"k": k})
        return node.replace(children=tuple(children))

    result = fold(term, wrapped)
    if result is term:
        offered = [node for node in distinct(term) if node.name == CHOICE]
        found = f"here is e.g. {shortened(str(offered[0]))}" if offered else "here is no choice at all"
        raise RequestError(
            "partial channels need choices between single operations that keep channels and resolution, such as "
            f"choice(conv, max_pool, id), to hand them 1/{k} of the channels; {found}. Use partial=1 for none"
        )
    return result


def _keeps_shape(term: Term, registry: Registry) -> bool:
    """Return whether an alternative is one operation that keeps channels, and all of the shape with a stride of 1."""
    operator = registry.operator(term.name)
    return (
        not operator.is_wiring
        and operator.inputs == 1
        and operator.role is None
        and operator.result == "feature"
        and KEEPS in operator.tags
        and all(term.get(key) is None for key in RESHAPING)
    )


# Edge normalisation


def _with_competing_edges(term: Term, registry: Registry) -> Term:
    edges = _Edges(term, registry)
    # Each node is rewritten as it is without and with a stride that it may inherit; the root inherits none.
    result = fold(term, edges.rewritten)[False]
    if result is term and not any(node.name == PICK and node.get("logits") for node in distinct(term)):
        raise RequestError(
            "edge normalisation needs edges that meet at a node: a pick, or a wiring such as Cell or Residual, without "
            "an inherited stride, that has choices on them; there are none here. Use edge_normalisation=False"
        )
    return result


class _Edges:
    """Rewrites nodes so that the edges that meet at them compete; new picks get names that nothing else has."""

    def __init__(self, term: Term, registry: Registry):
        self.registry = registry
        self.taken = {str(node.get("name")) for node in distinct(term) if node.name in (CHOICE, PICK)}

    def rewritten(self, node: Term, children: list[tuple[Term, Term]]) -> tuple[Term, Term]:
        """Return the node without and with a stride that it may inherit, from the same of its children."""
        plain, strided = (
            self._one(node, tuple(child[self._hands_stride(node, i, given)] for i, child in enumerate(children)), given)
            for given in (False, True)
        )
        return plain, strided

    def _hands_stride(self, node: Term, index: int, strided: bool) -> bool:
        """Return whether a child may inherit a stride other than 1."""
        if node.get("stride") is not None and node.children:
            return bool(node.get("stride") != 1)
        if node.name == "motifs":  # a skeleton puts the cells in their places
            return True
        return strided and not (self._sums(node) and self.registry.operator(node.name).edges[index][0] != 0)

    def _one(self, node: Term, children: tuple[Term, ...], strided: bool) -> Term:
        if node.name == PICK and len(children) > 1:
            return node.replace(children=children, attributes={**dict(node.attributes), "logits": True})
        if not strided and self._sums(node):
            arriving = self._arriving(node)
            compete = {end: _decides(node, edges) for end, edges in arriving.items()}
            if any(compete.values()):
                return self._cell(node, children, arriving, compete)
        return node.replace(children=children)

    def _sums(self, node: Term) -> bool:
        operator = self.registry.operator(node.name)
        return bool(operator.edges) and operator.meanings.get("program") == SUMMING

    def _arriving(self, node: Term) -> dict[int, list[int]]:
        """Return the edges that arrive at each node of a wiring, in the order in which the wiring evaluates them."""
        found: dict[int, list[int]] = {}
        for index, (_, end) in enumerate(self.registry.operator(node.name).edges):
            found.setdefault(end, []).append(index)
        return dict(sorted(found.items()))

    def _cell(
        self, node: Term, children: tuple[Term, ...], arriving: dict[int, list[int]], compete: dict[int, bool]
    ) -> Term:
        """Return the equal `dag_cell`: value number n of the cell is node n of the wiring."""
        normal, edges = self.registry.normal, self.registry.operator(node.name).edges
        names = self._names(node, {end: indices for end, indices in arriving.items() if compete[end]})
        blocks = []
        for end, indices in arriving.items():
            placed = tuple(normal("on", (children[index],), {"src": edges[index][0]}) for index in indices)
            if len(placed) == 1:
                blocks.append(placed[0])
            elif compete[end]:
                name = {"name": names[end]} if names[end] else {}
                blocks.append(normal(PICK, placed, {"k": len(placed), "logits": True, **name}))
            else:
                blocks.append(normal("node", placed, {}))
        return normal("dag_cell", tuple(blocks), {})

    def _names(self, node: Term, meeting: dict[int, list[int]]) -> dict[int, str]:
        """Return a name for the edges that meet at each node: what the names of their choices share.

        Where no choice has a name, the edges have none either, so that every occurrence decides alone as before.
        """
        labels = {}
        for end, indices in meeting.items():
            given = [
                choice.get("name") for index in indices if (choice := _choice_on(node.children[index])) is not None
            ]
            known = [str(name) for name in given if name is not None]
            labels[end] = (shared_prefix(known) or str(end)) if known else ""
        repeated = {label for label in labels.values() if list(labels.values()).count(label) > 1}
        names = {}
        for end, label in labels.items():
            name = f"edges/{label}/{end}" if label in repeated else f"edges/{label}"
            names[end] = self._unused(name) if label else ""
        return names

    def _unused(self, name: str) -> str:
        candidate, number = name, 2
        while candidate in self.taken:
            candidate, number = f"{name}_{number}", number + 1
        self.taken.add(candidate)
        return candidate


def _choice_on(edge: Term) -> Term | None:
    """Return the choice that stands on an edge, with partial channels or without."""
    inside = edge.children[0] if edge.name == PARTIAL else edge
    return inside if inside.name == CHOICE else None


def _decides(node: Term, edges: Sequence[int]) -> bool:
    """Return whether several edges meet of which at least one is open."""
    return len(edges) > 1 and any(_choice_on(node.children[index]) is not None for index in edges)


def shared_prefix(names: Sequence[str]) -> str:
    """Return what names begin with, in whole parts: `cell/2` of `cell/2_0` and `cell/2_1`."""
    common = min(names, key=len)
    while common and not all(name.startswith(common) and _ends_a_part(common, name) for name in names):
        common = common[:-1]
    return common.rstrip(SEPARATORS)


def _ends_a_part(prefix: str, name: str) -> bool:
    return len(prefix) == len(name) or prefix[-1] in SEPARATORS or name[len(prefix)] in SEPARATORS


__all__ = ["shared_prefix", "structured"]
