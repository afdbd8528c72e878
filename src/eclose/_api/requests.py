"""What a caller may write for a term, a space, an input and an output, turned into the thing itself.

Every public function and every command resolves its arguments here, so all of them accept the same.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.grammar import Grammar
from eclose.algebra.reading import parse
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.shapes import Classes, Input, Map, Output, Tokens, Values, as_input, as_output
from eclose.algebra.terms import Term
from eclose.spaces import SPACES, Space
from eclose.spaces import space as named_space

LARGEST_FILE = 64 * 2**20  # bytes of a term or grammar file


@dataclass(frozen=True)
class NetworkRequest:
    """A whole network as a term, with what goes in and out."""

    term: Term
    input: Input
    output: Output | None
    registry: Registry


def as_term(given: Term | str, registry: Registry | None = None) -> Term:
    """Return a term, read from its text where it is one."""
    if isinstance(given, Term):
        return given
    if isinstance(given, str):
        return parse(given, registry)
    raise RequestError(f"a term or its text is needed, not {type(given).__name__}")


def as_space(given: Space | Grammar | str) -> Space:
    """Return a space: itself, by its name, or around a grammar or a grammar's text."""
    if isinstance(given, Space):
        return given
    if isinstance(given, Grammar) or (isinstance(given, str) and "->" in given):
        return Space.from_grammar(given)
    if isinstance(given, str):
        return named_space(given)
    raise RequestError(f"a space is given by its name, a Space, a Grammar or a grammar's text, not {given!r}")


def network_request(
    term: Term | str,
    *,
    input: Any = None,
    output: Output | None = None,
    classes: int | None = None,
    space: Any = None,
    task: Any = None,
    size: str | None = None,
    registry: Registry | None = None,
    **options: Any,
) -> NetworkRequest:
    """Return the whole network that a term stands for.

    Args:
        term: a term or its text; with `space`, one of that space.
        input: a shape (channels first) or `Tokens(length, vocab)`; that of the task or the space without.
        output: what the network gives; that of the task or the space without.
        classes: short for `output=Classes(classes)`.
        space: the space whose skeleton goes around the term.
        task: where input and output come from.
        size: of the space's network: `"search"` (the default), `"evaluation"`, ...
        registry: the operators.
        options: further options of the space's skeleton.
    """
    registry = default_registry() if registry is None else registry
    whole = as_term(term, registry)
    asked = as_output(output, classes)
    if task is not None:
        if isinstance(task, str):
            from eclose.tasks import task as named_task

            task = named_task(task)
        input = task.input if input is None else input
        asked = task.output if asked is None else asked
    if space is not None:
        space = as_space(space)
        input = space.input if input is None else as_input(input)
        asked = space.output if asked is None else asked
        whole = space.network(whole, input=input, output=asked, size=size or "search", **options)
    elif size is not None or options:
        name = "size" if size is not None else next(iter(options))
        raise RequestError(f"{name}= is an option of a space's network; say which with space=")
    if input is None:
        raise RequestError(
            "the input is missing: give input=(3, 32, 32), input=Tokens(length, vocab), a task or a space"
        )
    return NetworkRequest(whole, as_input(input), asked, registry)


def read_text(path: Path | str) -> str:
    """Return the text of a term or grammar file; what is no such file is refused in one line."""
    path = Path(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise RequestError(f"{path} is no file")
        if status.st_size > LARGEST_FILE:
            raise RequestError(f"{path} has {status.st_size:,} bytes; a term or grammar has at most {LARGEST_FILE:,}")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(f"{path} is not a text in UTF-8") from None
    except FileNotFoundError:
        raise RequestError(f"there is no file {path}") from None
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from None


def term_or_file(given: str) -> Term:
    """Return the term of a text, a file, the best term of a run's folder, or with `-` of what is piped in."""
    if given == "-":
        return parse(sys.stdin.read())
    path = Path(given)
    looks_like_path = os.sep in given or path.suffix in (".term", ".txt")
    if len(given) < 4096 and (looks_like_path or _exists(path)):
        if path.is_dir():
            if not (path / "best.term").exists():
                raise RequestError(f"{path} is a folder without a best.term; is it the folder of a finished run?")
            path = path / "best.term"
        return parse(read_text(path))
    return parse(given)


def space_or_file(given: str) -> Space:
    """Return the space of a name, of a grammar's file, or with `-` of a grammar that is piped in."""
    if given == "-":
        return Space.from_grammar(sys.stdin.read())
    if given in SPACES:
        return named_space(given)
    path = Path(given)
    if "->" in given:
        return Space.from_grammar(given)
    if os.sep in given or path.suffix == ".grammar" or _exists(path):
        return Space.from_grammar(read_text(path), name=path.stem)
    names = [entry.name for entry in SPACES]
    hint = did_you_mean(given, names) or f" (known: {', '.join(names)})"
    raise RequestError(f"{given!r} is neither a space nor a grammar's file{hint}")


def input_of(text: str) -> Input:
    """Return an input written as `3,32,32` or `tokens:128,vocab=50`."""
    kind, _, rest = text.partition(":")
    if kind == "tokens":
        length, _, vocab = rest.replace("vocab=", "").partition(",")
        return as_input(Tokens(*_numbers("input", text, (length, vocab), "tokens:128,vocab=50")))
    return as_input(_numbers("input", text, text.strip("() ").rstrip(",").split(","), "3,32,32"))


def output_of(text: str) -> Output:
    """Return an output written as `10` (classes), `classes:10`, `map:1`, `values:3` or `tokens:50`."""
    kind, colon, rest = text.partition(":")
    makers: dict[str, Any] = {"classes": Classes, "map": Map, "values": Values, "tokens": Tokens}
    if not colon:
        kind, rest = "classes", text
    if kind not in makers:
        raise RequestError(
            f"output {text!r} is none of {', '.join(f'{name}:N' for name in makers)}{did_you_mean(kind, makers)}"
        )
    output: Output = makers[kind](*_numbers("output", text, (rest,), "classes:10"))
    return output


def input_text(given: Input) -> str:
    """Return an input as `input_of` reads it."""
    if isinstance(given, Tokens):
        return f"tokens:{given.length},vocab={given.vocab}"
    return ",".join(map(str, given))


def output_text(given: Output) -> str:
    """Return an output as `output_of` reads it."""
    if isinstance(given, Tokens):
        return f"tokens:{given.vocab}"
    if isinstance(given, Map):
        return f"map:{given.channels}"
    return f"{'classes' if isinstance(given, Classes) else 'values'}:{given.count}"


def _numbers(what: str, text: str, parts: Any, example: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in parts)
    except ValueError:
        raise RequestError(f"{what} {text!r} is not understood; write for example {example}") from None
    if any(not 1 <= number <= 10**9 for number in numbers):
        raise RequestError(f"{what} {text!r} needs whole numbers of at least 1")
    return numbers


def as_folder(given: object) -> bool:
    """Return whether something can be the path of a folder."""
    return isinstance(given, str | os.PathLike) and str(given) != ""


def refuse_unwritable(path: Path) -> None:
    """Raise where a file cannot be written, before work is done whose result it is to hold."""
    if path.is_dir():
        raise RequestError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise RequestError(f"{path} cannot be written: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise RequestError(f"{path} cannot be written: {path.parent} is not yours to write in")


@dataclass(frozen=True)
class Found:
    """What a run's folder says of the networks it holds.

    Attributes:
        space: whose terms they are.
        input: what they take in, None for a table's.
        output: what they give, None for a table's.
    """

    space: Space
    input: str | None
    output: str | None


def run_of(given: str) -> Found | None:
    """Return what the folder of a run says, or None where a text or a file was given."""
    path = Path(given)
    if len(given) >= 4096 or not _exists(path) or not (path / "run.json").exists():
        return None
    from eclose.runs import Run

    run = Run.open(path)
    request = run.request
    if request.get("command") != "search":
        return None
    named = bool(request.get("named"))
    space = named_space(request["space"]) if named else Space.from_grammar(run.grammar, name=request["space"])
    return Found(space, request.get("input"), request.get("output"))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
