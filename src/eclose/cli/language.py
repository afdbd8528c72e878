"""Commands over terms and spaces: draw, cost, count, sample, build."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from eclose.algebra.errors import RequestError
from eclose.algebra.terms import Term
from eclose.cli.main import app
from eclose.cli.output import as_json, big, note, table, text, write_file

TermArgument = Annotated[
    str, typer.Argument(metavar="TERM", help="A term, a file with one, a run's folder or a space.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
InputOption = Annotated[
    str | None, typer.Option("--input", help="What goes in: 3,32,32 or tokens:128,vocab=50.", metavar="SHAPE")
]
OutputOption = Annotated[
    str | None, typer.Option("--output", help="What comes out: classes:10, map:1, values:3, tokens:50.")
]
ClassesOption = Annotated[int | None, typer.Option("--classes", help="Short for --output classes:N.")]
SpaceOption = Annotated[str | None, typer.Option("--space", help="The space whose network goes around the term.")]
SizeOption = Annotated[str | None, typer.Option("--size", help="Of the space's network: search, evaluation, ...")]
OutOption = Annotated[Path | None, typer.Option("--out", help="Write to this file.")]


def resolved(given: str, space: str | None) -> tuple[Term, str | None]:
    """Return the term that a text, file, run or space stands for, with the space it belongs to."""
    from eclose._api.requests import space_or_file, term_or_file
    from eclose.spaces import SPACES

    if given in SPACES:
        return space_or_file(given).supernet(whole=False), space or given
    return term_or_file(given), space


def network_arguments(
    given: str, input: str | None, output: str | None, classes: int | None, space: str | None, size: str | None
) -> dict[str, Any]:
    """Return the keyword arguments of `build` that the options stand for; a run's folder knows its own."""
    from eclose._api.requests import input_of, output_of, run_of, space_or_file

    found = run_of(given)
    place: Any = None if space is None else space_or_file(space)
    if found is not None:
        input = input or found.input
        output = output or (found.output if classes is None else None)
        place = place or found.space
    if place is None and input is None:
        raise RequestError("say what goes in, with --input 3,32,32 or --input tokens:128,vocab=50, or give a --space")
    return {
        "input": None if input is None else input_of(input),
        "output": None if output is None else output_of(output),
        "classes": classes,
        "space": place,
        "size": size,
    }


@app.command()
def draw(
    term: TermArgument,
    out: OutOption = None,
    space: SpaceOption = None,
    width: Annotated[int, typer.Option(help="Columns of the drawing on a terminal.", min=40)] = 100,
    json: JsonOption = False,
) -> None:
    """Draw a term: on the terminal, or as SVG with --out cell.svg."""
    from eclose.meanings.drawing import draw as svg
    from eclose.meanings.drawing import text_drawing

    found, _ = resolved(term, space)
    if out is not None:
        write_file(out, svg(found))
        note(f"wrote {out}")
    if json:
        as_json({"term": str(found), "svg": svg(found) if out is None else None, "file": out and str(out)})
    elif out is None:
        text(text_drawing(found, width=width))


@app.command()
def cost(
    term: TermArgument,
    input: InputOption = None,
    output: OutputOption = None,
    classes: ClassesOption = None,
    space: SpaceOption = None,
    size: SizeOption = None,
    layers: Annotated[bool, typer.Option("--layers", help="One line a layer.")] = False,
    json: JsonOption = False,
) -> None:
    """Say what a network costs, without building it: parameters, multiply-adds, memory."""
    import eclose

    found, space = resolved(term, space)
    result = eclose.cost(found, **network_arguments(term, input, output, classes, space, size))
    if json:
        as_json(_plain(result, layers))
        return
    text(result.layers_text() if layers else str(result))


def _plain(result: Any, layers: bool) -> dict[str, Any]:
    values: dict[str, Any] = asdict(result) if is_dataclass(result) and not isinstance(result, type) else dict(result)
    if not layers:
        values.pop("layers", None)
    return values


@app.command()
def count(
    space: Annotated[str, typer.Argument(metavar="SPACE", help="A space, a grammar's file, or a term with choices.")],
    of: Annotated[str, typer.Option(help="What is counted: terms or derivations.")] = "terms",
    json: JsonOption = False,
) -> None:
    """Count a space exactly."""
    if of not in ("terms", "derivations"):
        raise RequestError(f"--of is terms or derivations, not {of!r}")
    found, name = _countable(space)
    number = found.count(of)
    if json:
        as_json({"space": name, "of": of, "count": str(int(number)), "digits": len(big_digits(int(number)))})
    else:
        text(big(int(number)))


def big_digits(number: int) -> str:
    """Return the decimal digits of a number of any length."""
    import sys

    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return str(number)
    finally:
        sys.set_int_max_str_digits(limit)


def _countable(given: str) -> tuple[Any, str]:
    """Return a space, or a term's own grammar."""
    from eclose._api.requests import space_or_file, term_or_file
    from eclose.algebra.grammar import Grammar
    from eclose.spaces import SPACES

    if given in SPACES or "->" in given or Path(given).suffix == ".grammar":
        return space_or_file(given), given
    if "(" in given or given.endswith(".term"):
        return Grammar.of_term(term_or_file(given)), given
    return space_or_file(given), given


@app.command()
def sample(
    space: Annotated[str, typer.Argument(metavar="SPACE", help="A space, a grammar's file, or a term with choices.")],
    number: Annotated[int, typer.Option("-n", "--number", help="How many terms.", min=1, max=1_000_000)] = 1,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
    uniform: Annotated[bool, typer.Option("--uniform", help="Uniformly over derivations, not rule by rule.")] = False,
    json: JsonOption = False,
) -> None:
    """Draw terms of a space, one a line."""
    from eclose.algebra.randomness import derived

    found, _ = _countable(space)
    draw_one = found.sample_uniform if uniform else found.sample
    terms = [str(draw_one(derived(seed, index))) for index in range(number)]
    if json:
        as_json({"space": space, "seed": seed, "terms": terms})
    else:
        for term in terms:
            text(term if number == 1 or "\n" not in term else term + "\n")


@app.command()
def build(
    term: TermArgument,
    input: InputOption = None,
    output: OutputOption = None,
    classes: ClassesOption = None,
    space: SpaceOption = None,
    size: SizeOption = None,
    source: Annotated[bool, typer.Option("--source", help="Print plain PyTorch source that needs no eclose.")] = False,
    out: OutOption = None,
    json: JsonOption = False,
) -> None:
    """Build a network: check it, show its layers, or print it as PyTorch source."""
    import eclose

    found, space = resolved(term, space)
    arguments = network_arguments(term, input, output, classes, space, size)
    if source:
        written = eclose.source(found, **arguments)
        if out is not None:
            write_file(out, written)
            note(f"wrote {out}")
        if json:
            as_json({"source": written if out is None else None, "file": out and str(out)})
        elif out is None:
            text(written)
        return
    if out is not None:
        raise RequestError("--out goes with --source")
    net = eclose.build(found, **arguments)
    steps = net.program.steps
    if json:
        as_json(
            {
                "input": list(net.program.input_shape),
                "output": list(net.program.output_shape),
                "layers": [{"name": step.name, "kind": step.layer, "shape": list(step.shape)} for step in steps],
                "parameters": sum(parameter.numel() for parameter in net.parameters()),
            }
        )
        return
    shown = [(step.name, step.layer, "x".join(map(str, step.shape))) for step in steps]
    table(shown if len(shown) <= 400 else shown[:400], ("layer", "kind", "shape"))
    if len(shown) > 400:
        text(f"... and {len(shown) - 400} more")
