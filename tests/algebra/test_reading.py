"""Reading and printing: round trips, lets, aliases, and messages that say where and what would be right."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclose.algebra.declarations import Attribute, Operator
from eclose.algebra.errors import EcloseError, TermError
from eclose.algebra.printing import exact_text, term_text
from eclose.algebra.reading import parse, read_exact
from eclose.algebra.registry import Registry
from eclose.algebra.terms import Term
from eclose.operators.wirings import OPERATORS as WIRINGS

KNOWN = Registry(
    [
        *WIRINGS,
        Operator(
            "conv",
            "a convolution",
            attributes={
                "kernel": Attribute("size", 3, minimum=1),
                "stride": Attribute("int", minimum=1),
                "scale": Attribute("float", 1.0),
                "bias": Attribute("bool", False),
                "mode": Attribute("string", "zeros", among=("zeros", "circular")),
            },
            aliases={"conv1x1": {"kernel": 1}},
            spellings={"nor_conv_1x1": {"kernel": 1}, "conv3x3": {"kernel": 3}},
        ),
        Operator("id", "the identity", synonyms=("skip_connect",)),
        Operator("fc", "a head", result="logits", role="head"),
        Operator("note", "a text", attributes={"text": Attribute("string")}),
    ]
)

names = st.sampled_from(["f", "g", "conv", "Residual", "x1", "let", "true"])
values = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
terms = st.recursive(
    st.builds(Term, names, st.just(()), st.dictionaries(names, values, max_size=3)),
    lambda inner: st.builds(
        lambda name, children, attributes: Term(name, tuple(children), attributes),
        names,
        st.lists(inner, min_size=1, max_size=4),
        st.dictionaries(names, values, max_size=2),
    ),
    max_leaves=30,
)


@given(terms)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_exact_texts_come_back(term):
    assert read_exact(exact_text(term)) is term


def random_term(rng: random.Random, size: int) -> str:
    if size <= 1:
        return rng.choice(
            [
                "conv",
                "id",
                "conv1x1",
                "skip_connect",
                f"conv(kernel={rng.choice([1, 3, 5])}, stride={rng.choice([1, 2])})",
            ]
        )
    if size < 4 or rng.random() < 0.3:
        return f"Linear2({random_term(rng, size // 2)}, {random_term(rng, size - size // 2)})"
    parts = [random_term(rng, size // 3) for _ in range(3)]
    if rng.random() < 0.3:
        parts[2] = parts[0]
    return f"Residual({', '.join(parts)})"


def test_printing_then_parsing_is_the_identity():
    rng = random.Random(5)
    for _ in range(200):
        term = parse(random_term(rng, rng.randint(1, 120)), KNOWN)
        text = term_text(term, KNOWN)
        assert parse(text, KNOWN) is term
        assert term_text(parse(text, KNOWN), KNOWN) == text


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("conv(kernel=3)", "conv"),
        ("conv3x3", "conv"),
        ("nor_conv_1x1", "conv1x1"),
        ("conv(kernel=1)", "conv1x1"),
        ("conv1x1(stride=2)", "conv(kernel=1, stride=2)"),
        ("conv(stride=2, kernel=1)", "conv(kernel=1, stride=2)"),
        ("conv(scale=1)", "conv"),
        ("conv(scale=2)", "conv(scale=2.0)"),
        ("conv(kernel=(3, 5))", "conv(kernel=(3, 5))"),
        ("conv(kernel=(3,))", "conv(kernel=(3,))"),
        ("conv(bias=true)", "conv(bias=true)"),
        ('conv(mode="circular")', 'conv(mode="circular")'),
        ("Linear(conv, id)", "Sequential(conv, id)"),
        ("Residual2(skip_connect, id, id)", "Residual(id, id, id)"),
        ("Repeat(n=3, conv)", "Repeat(conv, n=3)"),
        ("  conv ( \n kernel = 5 # five\n )\n", "conv(kernel=5)"),
        ("let x = conv1x1\nResidual(x, id, x)", "Residual(conv1x1, id, conv1x1)"),
        (
            "let x = conv1x1 let y = Linear(x, x)\nLinear(y, y)",
            "Sequential(Sequential(conv1x1, conv1x1), Sequential(conv1x1, conv1x1))",
        ),
        ('note(text="a\\"b\\\\c\\n\\u00e9")', 'note(text="a\\"b\\\\c\\n\\u00e9")'),
    ],
)
def test_normal_form(written, normal):
    assert term_text(parse(written, KNOWN), KNOWN) == normal


def test_subterms_that_repeat_are_written_once():
    block = "Residual(conv, Residual(conv1x1, id, conv1x1), conv)"  # seven nodes: written out
    assert term_text(parse(f"Sequential({block}, {block})", KNOWN), KNOWN) == f"Sequential({block}, {block})"
    large = f"Sequential({block}, conv)"
    text = term_text(parse(f"Sequential({large}, {large}, fc)", KNOWN), KNOWN)
    assert text == f"let x1 = {large}\nSequential(x1, x1, fc)"


WRONG = [
    ("", 1, 1, "an empty text is no term"),
    ("  # only a comment", 1, 1, "an empty text is no term"),
    ("covn", 1, 1, "unknown operator 'covn'; did you mean 'conv'?"),
    ("Residual(conv, covn(kernel=3), id)", 1, 16, "did you mean 'conv'"),
    ("Residual(conv,\n  id,\n  covn)", 3, 3, "did you mean 'conv'"),
    ("conv(kernl=3)", 1, 6, "did you mean 'kernel'? (attributes: bias, kernel, mode, scale, stride)"),
    ("conv(kernel=3, kernel=5)", 1, 16, "given kernel= twice"),
    ("conv(kernel=0)", 1, 6, "must be at least 1, not 0"),
    ("conv(kernel=true)", 1, 6, "a whole number or a tuple"),
    ('conv(mode="same")', 1, 6, "must be one of 'zeros', 'circular'"),
    ("conv(mode=zeros)", 1, 11, 'a string is written "zeros"'),
    ("conv(bias=tru)", 1, 11, "did you mean 'true'"),
    ("conv1x1(kernel=3)", 1, 9, "already means kernel=1"),
    ("Residual(conv, id)", 1, 1, "Residual takes 3 children, not 2"),
    ("Linear3(conv, id)", 1, 1, "Linear3 takes 3 children, not 2"),
    ("Repeat(conv)", 1, 1, "needs n="),
    ("Sequential(fc, conv)", 1, 1, "it gives logits where feature"),
    ("conv(", 1, 6, "the text ends where a term is expected in conv(...)"),
    ("Residual(conv, id, conv", 1, 1, "the '(' of Residual is never closed"),
    ("Residual(conv id, conv)", 1, 15, "',' or ')' is missing"),
    ("conv)", 1, 5, "this ')' closes nothing"),
    ("conv, id", 1, 5, "a term ends here and something follows"),
    ("Residual(conv,, id)", 1, 15, "where a term is expected"),
    ("Residual(conv, id, )", 1, 20, "is there a ',' too many"),
    ("conv(3)", 1, 6, "write name=3"),
    ('"conv"', 1, 1, "where a term is expected"),
    ("conv(kernel=)", 1, 13, "is no value"),
    ("conv(kernel=1e999)", 1, 13, "must be finite"),
    ("conv(kernel=" + "9" * 400 + ")", 1, 13, "a number of 400 digits"),
    ("conv(kernel=" + "(" * 40, 1, 33, "tuples nest more than 20 deep"),
    ("conv(mode='zeros')", 1, 11, "double quotes"),
    ('conv(mode="zeros)', 1, 11, "no closing"),
    ('conv(mode="\\q")', 1, 11, "bad escape"),
    ("cönv", 1, 2, "unexpected character"),
    ("let x = conv", 1, 13, "the term itself is missing"),
    ("let x conv", 1, 7, "needs '=' and a term"),
    ("let x = conv let x = id x", 1, 18, "bound twice"),
    ("let conv = id conv", 1, 5, "is an operator"),
    ("let block = conv\nSequential(blok, id)", 2, 12, "did you mean 'block'"),
    ("let x = conv\nx(id)", 2, 1, "bound by let and takes no children"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG)
def test_errors_say_where_and_what_would_be_right(text, line, column, message):
    with pytest.raises(TermError) as caught:
        parse(text, KNOWN)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"line {line}, column {column}: ")


def test_other_than_text_is_refused():
    with pytest.raises(TermError, match="not from int"):
        parse(3)


SEEDS = [
    "Sequential(Residual(conv(kernel=3), id, conv(stride=2)), Repeat(conv1x1, n=4), fc)",
    'let x = Residual(conv, id, conv)\nlet y = Sequential(x, x)\nParallel(y, note(text="a, (b)"), merge="concat")',
    "conv(kernel=(3, 5), scale=-1.5e-3, bias=true)",
]
PIECES = [
    "(",
    ")",
    ",",
    "=",
    '"',
    "\\",
    "let ",
    "\n",
    "#",
    "->",
    "{",
    "[",
    "1e9",
    "-",
    "true",
    "é",
    "\0",
    "conv",
    "(" * 50,
]


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 5)):
        at, to = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + text[min(to, at + 3) :]
        elif kind == 1:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind == 2:
            text = text[:at] + text[at:to] * 2 + text[to:]
        else:
            text = text[:at] + chr(rng.randrange(1, 0x3000)) + text[at + 1 :]
    return text


def assail(count: int, seed: int) -> int:
    """Parse `count` bad inputs; only the library's own errors may come out. Return how many were valid after all."""
    rng, valid = random.Random(seed), 0
    for number in range(count):
        if number % 10 == 0:
            text = "".join(chr(rng.randrange(256)) for _ in range(rng.randint(0, 60)))
        elif number % 500 == 1:
            text = "Sequential(" * rng.randint(1, 20_000) + rng.choice(["conv", ""]) + ")" * rng.randint(0, 20_000)
        elif number % 500 == 2:
            levels = rng.randint(1, 200)
            lines = ["let a0 = conv", *(f"let a{i} = Residual(a{i - 1}, a{i - 1}, a{i - 1})" for i in range(1, levels))]
            text = mutated(rng, "\n".join([*lines, f"a{levels - 1}"]))
        else:
            text = mutated(rng, rng.choice(SEEDS))
        try:
            term = parse(text, KNOWN)
        except EcloseError as error:
            assert str(error)
        else:
            valid += 1
            assert parse(term_text(term, KNOWN), KNOWN) is term
    return valid


def test_bad_input_gives_only_our_errors():
    valid = assail(20_000, seed=1)
    assert 100 < valid < 15_000  # the mutations reach both sides


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_million_bad_inputs():
    assert assail(1_000_000, seed=2) > 1_000


def test_texts_of_other_formats_are_refused():
    for text in (json.dumps({"op": "conv"}), "<conv/>", "conv: 3", "[conv]"):
        with pytest.raises(TermError):
            parse(text, KNOWN)
