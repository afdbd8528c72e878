"""`choice` and `pick` as programs: mixtures of alternatives, one for each type of value.

A mixture's weights are passed in when the network runs. Alternatives are guarded, so that hard weights evaluate only
what they select.
"""

from __future__ import annotations

from eclose.meanings.program.emitter import Meaning, Site
from eclose.meanings.program.ir import ChoiceSite, Tensor, Value
from eclose.meanings.program.merging import as_value, by_type, equal_kernels, equal_shapes, total


def choice(site: Site, *inputs: Value) -> Meaning:
    """The weighted sum of the alternatives' values; values of different types make a bundle."""
    name = site.value("name") or site.position or "choice"
    site.choice(ChoiceSite(name, "choice", len(site.term.children), labels(site)))
    values = []
    for index in range(len(site.term.children)):
        values.append((yield site.alternative(index, name, *inputs)))
    return mixed(site, name, "choice", values)


def pick(site: Site, *inputs: Value) -> Meaning:
    """The sum of the edges of which a derivation keeps k; with logits each edge has a weight."""
    keep = site.value("k")
    count = len(site.term.children)
    if keep > count:
        site.fail(f"pick keeps k={keep} of its children and has {count}")
    weighted = site.value("logits")
    name = site.value("name") or site.position or "pick"
    values = []
    given = {id(value) for value in inputs}
    for index in range(count):
        value = yield (site.alternative(index, name, *inputs) if weighted else site.child(index, *inputs))
        if id(value) not in given:
            site.droppable(value)
        values.append(value)
    if not weighted:
        return total(site, values)
    site.choice(ChoiceSite(name, "pick", count, labels(site), keep))
    return mixed(site, name, "pick", values)


def labels(site: Site) -> tuple[str, ...]:
    """Return the alternatives as short texts."""
    texts = []
    for child in site.term.children:
        text = str(child) if child.size < 40 else child.name
        texts.append(text if len(text) <= 80 else child.name)
    return tuple(texts)


def mixed(site: Site, name: str, kind: str, values: list[Value]) -> Value:
    """Emit one mixture layer for each type among the values."""
    parts: dict[str, Tensor] = {}
    for type_name, found in by_type(values).items():
        tensors = [tensor for _, tensor in found]
        if type_name == "kernel":
            tensors = equal_kernels(site, tensors)
        elif type_name != "attention":
            tensors = equal_shapes(site, tensors, "mixture", channels=True)
        parts[type_name] = site.layer(
            "mixture",
            *tensors,
            local="mixture" if type_name == "feature" else f"mixture_{type_name}",
            type=type_name,
            choice=name,
            kind=kind,
            alternatives=tuple(position for position, _ in found),
            count=len(values),
            broadcast=type_name == "attention",
        )
    return as_value(parts)
