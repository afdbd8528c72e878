"""Wirings that treat the channels of their input differently: `partial` hands only some of them to its child.

Partial channel connections are those of PC-DARTS (Xu et al., 2020): a supernet with them is a term like any other.
Plain data; nothing here knows a layer.
"""

from __future__ import annotations

from eclose.algebra.declarations import Attribute, Operator

FEATURE = frozenset({"feature"})

OPERATORS: tuple[Operator, ...] = (
    Operator(
        "partial",
        "its child on the first 1/k of the channels; the others pass by (a pooling gives them the child's size), "
        "and a shuffle mixes both",
        children=(1, 1),
        result="child",
        accepts=(FEATURE,),
        attributes={
            "k": Attribute("int", 4, minimum=1, description="the child sees 1/k of the channels; 1 is the child itself")
        },
        meanings={
            "program": "eclose.meanings.program.channels:partial",
            "graph": "eclose.meanings.graph.channels:partial",
        },
    ),
)
