"""The operators that leave a decision open: `choice` between alternatives and `pick` of some of many.

A term with one of them is a supernet to a gradient search and a finite grammar to a sampler. Nothing here knows how a
mixture is computed.
"""

from __future__ import annotations

from eclose.algebra.declarations import ANYTHING, Attribute, Operator

_NAME = "one name is one decision; without a name every occurrence decides alone"

OPERATORS: tuple[Operator, ...] = (
    Operator(
        "choice",
        "one of its children; in a supernet, their weighted mixture",
        children=(1, None),
        inputs=None,
        result="children",
        accepts=(ANYTHING,),
        attributes={"name": Attribute("string", description=_NAME)},
        meanings={"program": "eclose.meanings.program.choices:choice", "graph": "eclose.meanings.graph.wirings:choice"},
    ),
    Operator(
        "pick",
        "the sum of k of its children; in a supernet, of all of them, weighted where it has logits",
        children=(1, None),
        inputs=None,
        result="children",
        accepts=(ANYTHING,),
        attributes={
            "k": Attribute("int", required=True, minimum=1, description="how many children are kept"),
            "name": Attribute("string", description=_NAME),
            "logits": Attribute("bool", False, description="whether the children compete by weights of their own"),
        },
        meanings={"program": "eclose.meanings.program.choices:pick", "graph": "eclose.meanings.graph.wirings:pick"},
    ),
)
