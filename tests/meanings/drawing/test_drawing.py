"""Drawings: well-formed, complete for small terms, of bounded size for any term."""

import re
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import eclose.spaces
from eclose.algebra.declarations import ANYTHING, Attribute, Operator
from eclose.algebra.errors import EcloseError, RequestError
from eclose.algebra.reading import parse
from eclose.algebra.registry import default_registry
from eclose.algebra.terms import Term, nodes
from eclose.meanings.drawing import draw, text_drawing
from eclose.meanings.drawing.kinds import KINDS, kind_of
from eclose.meanings.drawing.layered import GAP, nearest
from eclose.meanings.drawing.parts import LIMIT
from eclose.meanings.drawing.picture import COLOURS
from support.random_terms import random_cases

SVG = "{http://www.w3.org/2000/svg}"
REGISTRY = default_registry()


def conv() -> Term:
    return REGISTRY.normal("conv", (), {})


def labels(svg: str) -> list[str]:
    """Return the texts of a drawing, which must be well-formed."""
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def boxes(svg: str) -> list[tuple[float, float, float, float, str]]:
    found = []
    for box in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        x, y, width, height = (float(box.get(key)) for key in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height, box.get("class")))
    return found


def test_every_operation_of_a_small_term_is_drawn_as_often_as_it_stands_there():
    found = labels(draw(parse("Diamond(conv, sep_conv_3x3, Residual(max_pool_3x3, id, conv5x5), zero)")))
    for operation in ("conv", "sep_conv_3x3", "max_pool_3x3", "id", "conv5x5", "zero", "Diamond", "Residual"):
        assert found.count(operation) == 1, operation
    assert found.count("+") == 2


def test_attributes_stand_in_the_box():
    found = labels(draw(parse("conv(channels=48, kernel=(3, 5), stride=2)")))
    assert "conv" in found and {"channels=48", "stride=2"} <= set(" ".join(found).split())
    assert "kernel=(3, 5)" in " ".join(found)


def test_a_darts_cell_has_numbered_nodes_and_edges_from_their_sources():
    cell = parse(
        "darts_cell(node(on(sep_conv_3x3, src=0), on(max_pool_3x3, src=1)), "
        "node(on(dil_conv_3x3, src=2), on(id, src=0)))"
    )
    found = labels(draw(cell))
    for expected in ("0", "1", "2", "3", "concat", "sep_conv_3x3", "max_pool_3x3", "dil_conv_3x3", "id"):
        assert found.count(expected) == 1, expected
    text = text_drawing(parse(f"motifs({cell}, {cell.replace(children=cell.children[:1])})"), width=60)
    for edge in ("0→2: sep_conv_3x3", "1→2: max_pool_3x3", "2→3: dil_conv_3x3", "0→3: id"):
        assert edge in text


def test_alternatives_that_many_decisions_share_are_listed_once():
    relaxed = eclose.spaces.space("darts").relaxed()
    found = labels(draw(relaxed))
    assert found.count("sep_conv_3x3") == found.count("dil_conv_5x5") == 1
    assert sum(text == "choice A" for text in found) == 28
    assert "A = choice" in found
    assert any("normal/2_0" in text for text in found)
    assert text_drawing(relaxed).count("sep_conv_3x3") == 1


def test_what_repeats_is_drawn_once():
    block = "Residual(conv, Parallel(id, zero), sep_conv_5x5)"
    term = parse(f"Sequential({block}, down, {block}, {block})")
    found = labels(draw(term))
    assert found.count("sep_conv_5x5") == 1 and found.count("A") == 3 and "A = Residual" in found
    text = text_drawing(term)
    assert text.count("sep_conv_5x5") == 1 and "A = " in text


@pytest.mark.parametrize("name", [space.name for space in eclose.spaces.SPACES])
def test_samples_of_every_space_are_drawn_without_overlaps(name):
    space = eclose.spaces.space(name)
    for seed in range(3):
        for term in (space.sample(seed), space.network(space.sample(seed))):
            check_layout(draw(term))
            check_text(text_drawing(term, width=70), 70)


def test_random_terms_are_drawn_without_overlaps():
    for case in random_cases(3, 120):
        check_layout(draw(case.term))
        check_text(text_drawing(case.term, width=50), 50)


def check_layout(svg: str) -> None:
    """Boxes lie in the picture and are apart or inside each other; texts lie in a box of theirs."""
    root = ElementTree.fromstring(svg)
    width, height = map(float, root.get("viewBox").split()[2:])
    found = boxes(svg)
    slack = 0.2  # coordinates are rounded
    for x, y, right, bottom, _ in found:
        assert -slack <= x < right <= width + slack and -slack <= y < bottom <= height + slack
    inner = [box for box in found if not box[4].startswith(("card", "frame"))]
    for index, one in enumerate(inner):
        for other in inner[index + 1 :]:
            apart = (
                one[2] <= other[0] + slack
                or other[2] <= one[0] + slack
                or one[3] <= other[1] + slack
                or other[3] <= one[1] + slack
            )
            assert apart, (one, other)
    for path in root.iter(f"{SVG}path"):  # no line runs through a box
        straight = re.fullmatch(r"M([-\d.]+) ([-\d.]+)H([-\d.]+)", path.get("d"))
        if straight:
            start, y, end = map(float, straight.groups())
            for box in inner:
                crosses = box[1] + slack < y < box[3] - slack and min(end, box[2]) - max(start, box[0]) > 2 * slack
                assert not crosses, (path.get("d"), box)
    for frame in (box for box in found if box[4].startswith("frame")):
        for box in found:
            inside = all(
                (
                    frame[0] - slack <= box[0],
                    frame[1] - slack <= box[1],
                    box[2] <= frame[2] + slack,
                    box[3] <= frame[3] + slack,
                )
            )
            around = box[0] <= frame[0] and box[1] <= frame[1] and frame[2] <= box[2] and frame[3] <= box[3]
            apart = (
                box[2] <= frame[0] + slack
                or frame[2] <= box[0] + slack
                or box[3] <= frame[1] + slack
                or frame[3] <= box[1] + slack
            )
            assert inside or around or apart, (frame, box)


def check_text(text: str, width: int) -> None:
    assert text and max(map(len, text.splitlines())) <= width


def doublings(count: int) -> Term:
    term = conv()
    for _ in range(count):
        term = REGISTRY.normal("Residual", (term, REGISTRY.normal("id", (), {}), term), {})
    return term


def test_a_term_of_many_doublings_is_drawn_in_linear_size():
    sizes = [len(draw(doublings(count))) for count in (16, 32, 64)]
    assert sizes[2] - sizes[1] < 2.5 * (sizes[1] - sizes[0]) and sizes[2] < 200_000
    texts = [len(text_drawing(doublings(count))) for count in (16, 32, 64)]
    assert texts[2] - texts[1] < 2.5 * (texts[1] - texts[0]) and texts[2] < 10_000
    found = labels(draw(doublings(4000)))
    assert len(found) < 6 * LIMIT and any("…" in text for text in found)


@pytest.mark.parametrize("wiring", ["Sequential", "Residual", "Parallel", "Given"])
def test_a_term_100_000_deep_is_drawn(wiring):
    relu, same = REGISTRY.normal("relu", (), {}), REGISTRY.normal("id", (), {})
    term = conv()
    for _ in range(100_000):
        children = {"Sequential": (term, relu), "Residual": (relu, same, term)}.get(wiring, (term,))
        term = REGISTRY.normal(wiring, children, {})
    found = labels(draw(term))
    assert len(found) < 6 * LIMIT
    assert any(re.fullmatch(r"… [\d,]+ nodes", text) for text in found)
    assert "nodes" in text_drawing(term)


def test_a_deep_chain_to_the_right_says_how_many_nodes_it_hides():
    term = REGISTRY.normal("relu", (), {})
    for _ in range(1000):
        term = REGISTRY.normal("Sequential", (conv(), term), {})
    svg = draw(term)
    hidden = next(text for text in labels(svg) if text.startswith("…"))
    shown = labels(svg).count("conv")
    # what is hidden: all operations that are not shown, and the chains that hold them
    assert 1001 - shown <= int(re.sub(r"\D", "", hidden)) <= term.size - shown


@pytest.mark.parametrize("wiring", ["Sequential", "Parallel", "choice", "motifs", "Cells"])
def test_a_term_with_thousands_of_children_is_drawn(wiring):
    children = tuple(REGISTRY.normal("conv", (), {"channels": number}) for number in range(1, 5000))
    term = REGISTRY.normal(wiring, children, {})
    assert len(labels(draw(term))) < 6 * LIMIT
    check_text(text_drawing(term), 100)
    assert re.search(r"… [\d,]+ nodes|and [\d,]+ more", " ".join(labels(draw(term))))


def test_strings_are_escaped():
    term = parse('Sequential(tap(conv, name="<&\\"\\u0007\\u00fc</svg>"), id)')
    svg = draw(term)
    titles = ["".join(title.itertext()) for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert str(term) in titles
    assert any('<&\\"' in text for text in labels(svg)) and any(text.startswith('tap <&"') for text in labels(svg))
    assert svg.count("</svg>") == 1
    ElementTree.fromstring(draw(Term("tap", (conv(),), {"name": "\ud800 \x00 ]]>"})))


def test_titles_say_the_whole_subterm():
    term = parse("Residual(conv, Parallel(id, max_pool_3x3), sep_conv_5x5)")
    svg = draw(term)
    titles = {"".join(title.itertext()) for title in ElementTree.fromstring(svg).iter(f"{SVG}title")}
    assert {str(node) for node in nodes(term)} <= titles


def test_a_users_operators_are_drawn_by_what_they_declare():
    registry = REGISTRY.copy()
    registry.add(Operator("mine", "a primitive", attributes={"who": Attribute("string")}))
    registry.add(Operator("Fork", "edges", children=(3, 3), edges=((0, 1), (0, 2), (1, 2))))
    registry.add(Operator("Odd", "nothing said about how its children connect", children=(1, None)))
    registry.add(
        Operator(
            "Maybe",
            "a decision",
            children=(1, None),
            inputs=None,
            result="children",
            accepts=(ANYTHING,),
            attributes={"name": Attribute("string")},
        )
    )
    term = parse(
        'Sequential(mine(who="x"), Fork(mine, conv, mine), Odd(conv, Odd(mine), id), Maybe(conv, mine))', registry
    )
    svg = draw(term, registry=registry)
    check_layout(svg)
    found = labels(svg)
    assert found.count("mine") == 5 and {"Fork", "Odd", "Maybe", "+", 'who="x"'} <= set(found)
    assert found.count("+") == 1
    assert "mine" in text_drawing(term, registry=registry)


def test_an_unknown_operator_is_an_error():
    with pytest.raises(EcloseError, match="unknown operator 'nope'"):
        draw(Term("nope"))


def test_every_kind_has_a_colour():
    assert set(KINDS) <= set(COLOURS)
    kinds = {operator.name: kind_of(operator) for operator in REGISTRY if not operator.is_wiring}
    for name, kind in {
        "conv": "convolution",
        "sep_conv": "convolution",
        "max_pool": "pooling",
        "id": "identity",
        "zero": "zero",
        "head": "end",
        "relu": "function",
        "attention": "attention",
        "down": "resolution",
    }.items():
        assert kinds[name] == kind


def test_a_file_is_written_as_a_whole(tmp_path):
    file = tmp_path / "cell.svg"
    file.write_text("before")
    text = draw(parse("Residual(conv, id, conv)"), file)
    assert file.read_text(encoding="utf-8") == text
    assert [found.name for found in tmp_path.iterdir()] == ["cell.svg"]
    with pytest.raises(RequestError, match="cannot be written"):
        draw(conv(), tmp_path / "missing" / "cell.svg")
    with pytest.raises(RequestError, match="cannot be written"):
        draw(conv(), tmp_path)
    assert [found.name for found in tmp_path.iterdir()] == ["cell.svg"]


@pytest.mark.parametrize("width", [1, 20, 40, 100])
def test_no_line_of_an_outline_is_wider_than_asked(width):
    for text in ("conv(channels=48, kernel=(3, 5), stride=2)", str(eclose.spaces.space("unet").sample(0))):
        check_text(text_drawing(parse(text), width), width)


def test_positions_are_the_nearest_that_do_not_overlap():
    wishes, heights = [0.0, 0.0, 100.0, 90.0], [10.0, 20.0, 10.0, 10.0]
    found = nearest(wishes, [1.0] * 4, heights)
    for (top, height), (below, _) in pairwise(zip(found, heights, strict=True)):
        assert below - top >= height + GAP - 1e-9

    def cost(tops):
        return sum((top - wish) ** 2 for top, wish in zip(tops, wishes, strict=True))

    for index in range(4):
        for step in (-0.5, 0.5):
            moved = [top + step * (place == index) for place, top in enumerate(found)]
            fits = all(
                below - top >= height + GAP for (top, height), (below, _) in pairwise(zip(moved, heights, strict=True))
            )
            assert not fits or cost(moved) >= cost(found)


def test_importing_the_meaning_imports_neither_torch_nor_numpy():
    code = (
        "import sys; from eclose.algebra.reading import parse; from eclose.meanings.drawing import draw, text_drawing; "
        "draw(parse('Residual(conv, id, conv)')); text_drawing(parse('conv')); "
        "assert not {'torch', 'numpy', 'networkx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
