"""What cells in the manner of NAS-Bench-101 need: a cell of one input, and blocks that fill parts of its output.

Ying et al. (2019); as a search space NAS-Bench-1Shot1 (Zela et al., 2020). Plain data; nothing here knows a layer.
"""

from __future__ import annotations

from eclose.algebra.declarations import ANYTHING, Attribute, Operator

FEATURE = frozenset({"feature"})

OPERATORS: tuple[Operator, ...] = (
    Operator(
        "dag_cell",
        "a cell of one input, number 0: node after node, each seeing the input and all nodes before it; "
        "the last node is the output",
        children=(1, None),
        inputs=1,
        accepts=(ANYTHING,),
        meanings={
            "program": "eclose.meanings.program.nasbench101:dag_cell",
            "graph": "eclose.meanings.graph.nasbench101:dag_cell",
        },
    ),
    Operator(
        "slot",
        "its input in one of `count` equal parts of the channels, zeros in the others",
        attributes={
            "index": Attribute("int", required=True, minimum=0, description="the part that the input fills"),
            "count": Attribute("int", required=True, minimum=1, description="the number of parts"),
        },
        meanings={"program": "eclose.meanings.program.nasbench101:slot"},
    ),
)
