"""The wirings: operators that say how their children are connected, as plain data.

A wiring with `edges` is a small graph with one source (node 0) and one sink (the largest node); child i stands on edge
i and a node adds up what arrives. The edge lists are those of Schrodi et al. (2023), hierarchical construction of
architecture spaces. The other wirings have meanings of their own. Nothing here knows a layer or a tensor.
"""

from __future__ import annotations

from eclose.algebra.declarations import ANYTHING, SIGNAL, Attribute, Operator

FEATURE = frozenset({"feature"})

# The position of the skip differs: it is the second of three children of Residual and the third of four of Residual3.
EDGES: dict[str, tuple[tuple[int, int], ...]] = {
    "Residual": ((0, 1), (0, 2), (1, 2)),
    "Residual3": ((0, 1), (1, 2), (0, 3), (2, 3)),
    "Diamond": ((0, 1), (0, 2), (1, 3), (2, 3)),
    "Diamond3": ((0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)),
    "DiamondMid": ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3)),
    "Cell": ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)),
    "DownsampleBlock": ((0, 1), (1, 2)),
    "UnaryTopo": ((0, 1),),
    **{f"Dense{size}": tuple((i, j) for j in range(size) for i in range(j)) for size in range(2, 6)},
}

DESCRIPTIONS = {
    "Residual": "two layers with a skip: (first, skip, second)",
    "Residual3": "three layers with a skip: (first, second, skip, third)",
    "Diamond": "two branches of two layers: (a1, b1, a2, b2)",
    "Diamond3": "two branches of three layers: (a1, b1, a2, b2, a3, b3)",
    "DiamondMid": "two branches joined in the middle: (a1, b1, a to b, a2, b2)",
    "Cell": "the NAS-Bench-201 cell: edges 0-1, 0-2, 1-2, 0-3, 1-3, 2-3 of four summing nodes",
    "DownsampleBlock": "a layer, then one that halves the resolution",
    "UnaryTopo": "one unary function",
    **{f"Dense{size}": f"{size} summing nodes, each fed by all before it" for size in range(2, 6)},
}

SYNONYMS = {"Residual": ("Residual2",), "Diamond": ("Diamond2",)}


def _program(function: str) -> str:
    return f"eclose.meanings.program.wirings:{function}"


def _graph(function: str) -> str:
    return f"eclose.meanings.graph.wirings:{function}"


def _by_edges(name: str) -> Operator:
    edges = EDGES[name]
    return Operator(
        name,
        DESCRIPTIONS[name],
        children=(len(edges), len(edges)),
        accepts=(FEATURE,),
        edges=edges,
        synonyms=SYNONYMS.get(name, ()),
        meanings={"program": _program("edges"), "graph": _graph("edges")},
    )


def _own(
    name: str,
    description: str,
    children: tuple[int, int | None],
    *,
    inputs: int | None = 1,
    result: str = "feature",
    accepts: tuple[frozenset[str], ...] = (FEATURE,),
    accepts_last: frozenset[str] | None = None,
    attributes: dict[str, Attribute] | None = None,
    synonyms: tuple[str, ...] = (),
    counted: dict[str, int] | None = None,
    edges: tuple[tuple[int, int], ...] = (),
    function: str = "",
    tags: tuple[str, ...] = (),
) -> Operator:
    return Operator(
        name,
        description,
        children=children,
        inputs=inputs,
        result=result,
        accepts=accepts,
        accepts_last=accepts_last,
        attributes=attributes or {},
        synonyms=synonyms,
        counted=counted or {},
        edges=edges,
        meanings={"program": _program(function or name.lower()), "graph": _graph(function or name.lower())},
        tags=frozenset(tags),
    )


OPERATORS: tuple[Operator, ...] = (
    _own(
        "Sequential",
        "one child after the other; the last may be a head",
        (1, None),
        inputs=None,  # the first child sees all that is offered, e.g. a cell with a tap behind it
        result="child",
        accepts=(SIGNAL,),
        accepts_last=ANYTHING,
        synonyms=("Linear", *(f"Linear{count}" for count in range(1, 5))),
        counted={f"Linear{count}": count for count in range(1, 5)},
        tags=("series",),
    ),
    *(_by_edges(name) for name in EDGES),
    _own(
        "BinaryTopo",
        "a binary function of two branches: (function, first a, first b, second a, second b)",
        (5, 5),
        # Argument order of the literature: the function stands on the edge that leaves the stacking node 3.
        edges=((3, 4), (0, 1), (0, 2), (1, 3), (2, 3)),
        function="binary_topo",
    ),
    _own(
        "Parallel",
        "children side by side on the same input, added up or concatenated on channels",
        (1, None),
        attributes={
            "merge": Attribute("string", "sum", among=("sum", "concat"), description="how the branches are merged")
        },
    ),
    _own(
        "Repeat",
        "n copies of a child in sequence, each with its own weights",
        (1, 1),
        result="child",
        accepts=(SIGNAL,),
        attributes={"n": Attribute("int", required=True, minimum=1, description="the number of copies")},
        tags=("repeats",),
    ),
    _own(
        "Cells",
        "two stems in sequence, then cells that each get the outputs of the two before: (stem0, stem1, c1, c2, ...)",
        (3, None),
        tags=("series",),
    ),
    _own(
        "darts_cell",
        "a cell of two inputs: both are brought to the inherited channels, then node after node; "
        "the output concatenates the nodes",
        (1, None),
        inputs=2,
    ),
    _own(
        "node",
        "the sum of its children, each of which picks its input with on(...); values of different types stay apart",
        (1, None),
        inputs=None,
        result="children",
        accepts=(ANYTHING,),
    ),
    _own(
        "on",
        "a child applied to input number src of the cell (0 and 1 are the cell's inputs, then its nodes in turn)",
        (1, 1),
        inputs=None,
        result="child",
        accepts=(ANYTHING,),
        attributes={"src": Attribute("int", required=True, minimum=0, description="the number of the input")},
    ),
    _own(
        "hblock",
        "a heterogeneous residual block: tier 1 makes a surrogate from all inputs, tier 2 works on the surrogate",
        (2, 2),
        inputs=None,
        accepts=(ANYTHING,),
        tags=("series",),
    ),
    _own(
        "Given",
        "sets what its child inherits",
        (1, 1),
        inputs=None,
        result="child",
        accepts=(ANYTHING,),
        attributes={
            "channels": Attribute("int", minimum=1, description="output channels of the layers inside"),
            "stride": Attribute("int", minimum=1, description="stride of the layers at the child's source"),
            "affine": Attribute("bool", description="whether normalisations have scale and shift"),
            "pool_norm": Attribute("bool", description="whether a normalisation follows each pooling"),
            "conv_bias": Attribute("bool", description="whether convolutions before a normalisation have a bias"),
        },
    ),
    _own(
        "tap",
        "passes its input on and makes its child's value a side output of the network (e.g. an auxiliary head)",
        (1, 1),
        accepts=(ANYTHING,),
        attributes={"name": Attribute("string", required=True, description="the name of the side output")},
        tags=("side",),
    ),
)
