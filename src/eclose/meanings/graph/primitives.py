"""Primitives as graphs: one labelled edge, with what it inherits written into the label.

Two occurrences get equal labels only where they are the same operation with the same inherited channels, stride and
settings of normalisation, so that a key made of labels never merges different networks.
"""

from __future__ import annotations

from eclose.algebra.declarations import Operator
from eclose.algebra.terms import Term
from eclose.meanings.graph.builder import APART, PLAIN, Site, Value, takes_stride
from eclose.meanings.graph.graph import IDENTITY, OPERATION, RANDOM, ZERO

SETTINGS = ("affine", "pool_norm", "conv_bias")  # what layers with a normalisation read without an attribute for it
CARELESS = frozenset({"unary", "binary", "identity", "zero", "random"})


def primitive(site: Site, *inputs: Value) -> Value:
    """One operation: an edge with the operator's name and its attributes, given and inherited."""
    operator = site.operator
    type_name = operator.result if operator.result in APART else PLAIN
    stride = effective_stride(site)
    if "identity" in operator.tags and stride == 1:
        return site.operation(Term(operator.name), *inputs, kind=IDENTITY, type=type_name)
    return site.operation(label_of(site, stride), *inputs, kind=kind_of(operator), type=type_name)


def kind_of(operator: Operator) -> str:
    """Return what pruning must know of an operation."""
    if "zero" in operator.tags:
        return ZERO
    return RANDOM if "random" in operator.tags else OPERATION


def effective_stride(site: Site) -> int:
    """Return the stride of an operation: its own attribute, else what it inherits and has a use for."""
    given = site.term.get("stride")
    if given is not None:
        return int(given)
    return site.context.stride if takes_stride(site.operator) else 1


def label_of(site: Site, stride: int) -> Term:
    """Return the operation as a term without children that says all that tells it from others."""
    operator = site.operator
    attributes = dict(site.term.attributes)
    if takes_stride(operator):
        attributes.pop("stride", None)  # an explicit stride of 1 is the same as none
        if stride != 1:
            attributes["stride"] = stride
    keys = () if careless(operator, stride) else SETTINGS
    if reads_channels(operator, stride):
        keys = ("channels", *keys)
    return Term(operator.name, (), {**site.inherited(*keys), **attributes}) if keys or attributes else site.term


def careless(operator: Operator, stride: int) -> bool:
    """Return whether an operation is the same however normalisations and convolutions around it are set."""
    return bool(CARELESS & operator.tags) and not ("identity" in operator.tags and stride != 1)


def reads_channels(operator: Operator, stride: int) -> bool:
    """Return whether an operation may take inherited channels.

    It does where it declares them as inherited; an operator that says neither this nor that it keeps shapes might. An
    identity with a stride is a layer of its own with channels.
    """
    attribute = operator.attributes.get("channels")
    if attribute is not None:
        return attribute.default is None
    if "identity" in operator.tags:
        return stride != 1
    return "shape-keeping" not in operator.tags
