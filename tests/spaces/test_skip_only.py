"""The skip-only term: known cells of the literature, membership in every space, and spaces that have none."""

import pytest

import eclose as ec
from eclose.algebra.errors import RequestError
from eclose.algebra.terms import distinct
from eclose.spaces.nasbench_strings import nb201_string
from eclose.spaces.skip_only import skip_only


def names(term):
    return {node.name for node in distinct(term)}


def test_the_cell_that_darts_collapses_to():
    edges = nb201_string(skip_only(ec.space("nasbench201"))).replace("+", "").strip("|").split("|")
    assert {edge.split("~")[0] for edge in edges if edge} == {"skip_connect"}


@pytest.mark.parametrize("name", ["darts", "darts-with-none", "s2", "s3"])
def test_darts_cells_of_skips_alone(name):
    space = ec.space(name)
    assert names(skip_only(space)) == {"motifs", "darts_cell", "node", "on", "id"}


def test_where_some_edges_offer_a_skip_they_have_it():
    term = skip_only(ec.space("s1"))
    assert term in ec.space("s1")
    assert "id" in names(term) and "max_pool_3x3" not in names(term.children[0])


def test_picks_prefer_the_children_that_lead_to_a_skip():
    grammar = 'T -> node(pick(on(A, src=0), on(conv, src=1), on(A, src=2), k=2, name="p"))\nA -> choice(conv, id)'
    assert "conv" not in names(skip_only(ec.Space.from_grammar(grammar)))


@pytest.mark.parametrize("name", ["tiny", "layer-choice", "s4", "nasbench1shot1-1", "transformer"])
def test_a_space_without_skips_has_none(name):
    with pytest.raises(RequestError, match=f"no decision of {name} offers a skip"):
        skip_only(ec.space(name))


def test_a_constraint_that_forbids_it_is_said():
    text = "T -> Sequential(A, A)\nA -> conv | id"
    mixed = ec.Grammar.parse(text, where=lambda term: any(child.name == "conv" for child in term.children))
    space = ec.Space.from_grammar(mixed, name="mine")
    with pytest.raises(RequestError, match="mine does not allow a skip connection everywhere"):
        skip_only(space)
    with pytest.raises(RequestError, match="recursive"):
        skip_only(ec.Space.from_grammar("T -> Sequential(T, conv) | id", name="mine"))
