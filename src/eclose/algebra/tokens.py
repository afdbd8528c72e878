"""Tokens of the two small languages: terms and grammars.

A text is cut once, by one expression, into tokens that remember where they stand, so every later message can point at
a line and a column. Nothing here knows what the tokens mean together.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, TypeVar

from eclose.algebra.errors import TermError, shortened

LONGEST_NUMBER = 300  # digits; a longer one is a slip or an attack, never an attribute

Located = TypeVar("Located", bound=TermError)

_PATTERN = r"""(?:
    (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<punct>->|[(),=|{}\[\]:])
  | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<newline>\n)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<blank>[ \t\r\f\v]+|\#[^\n]*)
    )[ \t]*"""
_TOKEN = re.compile(_PATTERN, re.VERBOSE)
# An application without parentheses, strings or comments inside: most of a long term, and mostly the same few texts.
_FLAT = r"(?P<flat>[A-Za-z_][A-Za-z0-9_]*\([A-Za-z0-9_=,.+\ -]*\))"
_TOKEN_OR_FLAT = re.compile(_PATTERN.replace("(?:", f"(?:{_FLAT} |", 1), re.VERBOSE)
_PLAIN = ("flat", "name", "punct")


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: `"name"`, `"number"`, `"string"`, `"punct"`, `"newline"` and `"flat"` (only where asked for) or
            `"end"`.
        text: as written.
        value: the number or string that it stands for; the text for all other kinds.
        offset: where it begins.
    """

    kind: str
    text: str
    value: Any
    offset: int


def tokenize(
    text: str,
    newlines: bool = False,
    error: type[TermError] = TermError,
    *,
    flat: bool = False,
    span: tuple[int, int] | None = None,
) -> list[Token]:
    """Return the tokens of a text, with an `"end"` token last; blanks and `# comments` are skipped.

    Args:
        text: what to cut.
        newlines: whether line ends are tokens.
        error: the class of the errors raised.
        flat: whether an application without parentheses inside, such as `conv(kernel=3)`, is one token `"flat"`.
        span: the part of the text to cut; offsets stay those in the whole text.
    """
    tokens: list[Token] = []
    offset, stop = span or (0, len(text))
    append, make = tokens.append, Token._make
    numbers: dict[str, int | float] = {}
    expression = _TOKEN_OR_FLAT if flat else _TOKEN
    for found in expression.finditer(text, offset, stop):
        start, end = found.span()
        if start != offset:
            break
        offset = end
        kind: str = found.lastgroup  # type: ignore[assignment]  # every alternative is a group
        written = found[kind]
        if kind in _PLAIN:
            append(make((kind, written, written, start)))
        elif kind == "number":
            if written not in numbers:
                numbers[written] = _number(text, written, start, error)
            append(make((kind, written, numbers[written], start)))
        elif kind == "string":
            append(make((kind, written, _string(text, written, start, error), start)))
        elif kind == "newline" and newlines:
            append(make((kind, written, written, start)))
    if offset < stop:
        raise _stray(text, offset, error)
    append(Token("end", "", "", offset))
    return tokens


def locate(text: str, offset: int) -> tuple[int, int]:
    """Return the line and the column, both from 1, of an offset."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def located(error: type[Located], message: str, text: str, offset: int, offending: str = "") -> Located:
    """Return an error that points at a place in a text."""
    line, column = locate(text, offset)
    return error(message, line=line, column=column, text=offending)


def _number(text: str, written: str, offset: int, error: type[TermError]) -> int | float:
    if len(written) > LONGEST_NUMBER:
        raise located(error, f"a number of {len(written)} digits; at most {LONGEST_NUMBER} are read", text, offset, "")
    if written.lstrip("+-").isdigit():
        return int(written)
    value = float(written)
    if value - value != 0.0:
        raise located(error, f"{written} is too large; a number must be finite", text, offset, written)
    return value


def _string(text: str, written: str, offset: int, error: type[TermError]) -> str:
    try:
        value: str = json.loads(written, strict=False)
    except ValueError:
        raise located(
            error, f'{shortened(written)} has a bad escape; use \\" \\\\ \\n \\t or \\u0041', text, offset, written
        ) from None
    return value


def _stray(text: str, offset: int, error: type[TermError]) -> TermError:
    character = text[offset]
    if character == '"':
        return located(error, 'this string has no closing " on its line', text, offset, text[offset : offset + 20])
    if character == "'":
        return located(error, "strings are written in double quotes", text, offset, character)
    return located(error, f"unexpected character {character!r}", text, offset, character)


__all__ = ["Token", "locate", "located", "tokenize"]
