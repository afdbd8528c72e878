"""A wiring as vertices and lines: the graph meaning of one level, with what stands inside as single boxes.

The wiring is rebuilt with a placeholder operator for each part inside, and its graph is read. So a picture shows what
the graph meaning says, of every operator that has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from eclose.algebra.declarations import Attribute, Operator
from eclose.algebra.errors import EcloseError
from eclose.algebra.registry import Registry
from eclose.algebra.terms import Term
from eclose.meanings.drawing.parts import Part, Plan
from eclose.meanings.graph import Edge, Graph, term_graph
from eclose.meanings.graph.graph import INPUT, SUM

STACK = "stack"
EDGES = "eclose.meanings.graph.wirings:edges"


@dataclass
class Vertex:
    """One thing with a place: an input, a sum, a numbered node, another kind of merge, or a part.

    Attributes:
        form: `input`, `out`, `sum`, `node`, `merge` or `part`.
        text: what stands on it.
        part: the number of the part inside.
    """

    form: str
    text: str = ""
    part: int = -1


@dataclass
class Diagram:
    """Vertices in topological order and lines between them.

    Attributes:
        lines: `(from, to)` pairs.
        inputs: the vertices at which values come in.
        output: the vertex whose value goes out.
    """

    vertices: list[Vertex] = field(default_factory=list)
    lines: list[tuple[int, int]] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    output: int = 0


class Diagrams:
    """Makes the diagrams of one drawing.

    Args:
        plan: what is drawn.
    """

    def __init__(self, plan: Plan):
        self.plan = plan
        self.registry = Registry(
            replace(operator, meanings={**operator.meanings, "graph": EDGES})
            if operator.edges and "graph" not in operator.meanings
            else operator
            for operator in plan.registry
        )
        self._placeholders: dict[tuple[int, str], str] = {}

    def of(self, part: Part) -> Diagram | None:
        """Return the diagram of a wiring, or None where its graph cannot be told."""
        term = self._with_placeholders(part)
        operator = self.registry.operator(term.name)
        try:
            graph = term_graph(term, self.registry)
        except EcloseError:
            return None
        numbered: dict[int, str] = {}
        if operator.inputs is not None and any(self.plan.free[child] for child in part.term.children):
            numbered = {graph.inputs[index]: str(index) for index in range(len(graph.inputs))}
            for index, child in enumerate(term.children):
                states = [edge.target for edge in graph.edges if _stands_in(edge, f"{child.name}_{index}")]
                if states:
                    numbered[max(states)] = str(operator.inputs + index)
        elif len(graph.inputs) > 1:
            numbered = {node: str(index) for index, node in enumerate(graph.inputs)}
        return _drawn(graph, numbered, set(self._placeholders.values()))

    def _with_placeholders(self, part: Part) -> Term:
        """Return the wiring with a placeholder for each part; children that are not shown are left out."""
        shown = len(part.term.children) - part.hidden
        numbers = iter(range(len(part.children)))
        free = self.plan.free
        children = []
        for child in part.term.children[:shown]:
            done: list[Term] = []
            stack: list[tuple[Term, bool]] = [(child, False)]
            while stack:
                node, ready = stack.pop()
                if ready:
                    count = len(node.children)
                    inside = tuple(done[len(done) - count :])
                    del done[len(done) - count :]
                    done.append(node.replace(children=inside))
                elif free[node] and node.children:
                    stack.append((node, True))
                    stack.extend((inner, False) for inner in reversed(node.children))
                else:
                    done.append(self._placeholder(node, next(numbers)))
            children += done
        return part.term.replace(children=tuple(children))

    def _placeholder(self, term: Term, index: int) -> Term:
        types = self.plan.registry.types(term)
        result = next(iter(types)) if len(types) == 1 else "feature"
        key = (max(1, self.plan.wanted.get(term, 1)), result)
        if key not in self._placeholders:
            name = f"drawn_part_{len(self._placeholders)}"
            while name in self.registry:
                name += "_"
            self.registry.add(
                Operator(
                    name,
                    "a part of a drawing",
                    inputs=key[0],
                    result=result,
                    attributes={"index": Attribute("int", required=True)},
                    tags=frozenset({"shape-keeping"}),
                )
            )
            self._placeholders[key] = name
        return Term(self._placeholders[key], (), {"index": index})


def _stands_in(edge: Edge, path: str) -> bool:
    return edge.path == path or edge.path.startswith(path + "/")


def _drawn(graph: Graph, numbered: dict[int, str], placeholders: set[str]) -> Diagram:
    """Return the diagram of a graph: its operations become vertices, nodes that merge nothing disappear."""
    diagram = Diagram()
    arriving = graph.incoming()
    here: list[list[int]] = []  # the vertices that stand for a node: itself, or of a stack those that it stacks
    for number, node in enumerate(graph.nodes):
        sources: list[int] = []
        for edge in arriving[number]:
            if edge.label.name in placeholders:
                diagram.vertices.append(Vertex("part", part=edge.label.get("index")))
                box = len(diagram.vertices) - 1
                diagram.lines += [(source, box) for source in here[edge.source]]
                sources.append(box)
            else:
                sources += here[edge.source]
        name = numbered.get(number)
        if node.merge == STACK or (node.merge == SUM and len(sources) == 1 and name is None):
            here.append(sources)
            continue
        text = name if name is not None else _text(node.label)
        form = INPUT if node.merge == INPUT else "sum" if node.merge == SUM else "merge"
        if node.merge == SUM and name is not None:
            form = "node"
        elif name is not None and node.merge != INPUT:
            text = f"{name}: {_text(node.label)}"
        if node.merge == INPUT and name is None:
            text = ""
        diagram.vertices.append(Vertex(form, text))
        vertex = len(diagram.vertices) - 1
        diagram.lines += [(source, vertex) for source in sources]
        here.append([vertex])
    diagram.inputs = [vertex for number in graph.inputs for vertex in here[number]]
    diagram.output = here[graph.sink][-1]
    if any(start == diagram.output for start, _ in diagram.lines):  # e.g. a tap hands its input on past what is inside
        diagram.vertices.append(Vertex("out"))
        diagram.lines.append((diagram.output, len(diagram.vertices) - 1))
        diagram.output = len(diagram.vertices) - 1
    return diagram


def _text(label: Term) -> str:
    """Return what stands on a merge: its name and the numbers and names that tell it apart."""
    if label.name == SUM:
        return "+"
    told = [str(value) for key, value in label.attributes if key in ("k", "name") and value != ""]
    return " ".join([label.name, *told])


__all__ = ["Diagram", "Diagrams", "Vertex"]
