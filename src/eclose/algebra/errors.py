"""The errors of eclose: every message says what was wrong, where, and what would be right.

A user of the library catches `EcloseError`; the command line turns any of them into one line and exit status 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EcloseError(Exception):
    """Whatever a caller did that cannot be done, in words for a person."""


class TermError(EcloseError, ValueError):
    """A text that is no term, or a term that breaks an operator's declaration."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None, text: str = ""):
        self.line, self.column, self.text = line, column, text
        where = f"line {line}, column {column}: " if line is not None else ""
        super().__init__(where + message)


class GrammarError(TermError):
    """A text that is no grammar, or a grammar that cannot generate what it promises."""


class ShapeError(EcloseError, ValueError):
    """A network whose tensors do not fit together; the message names the occurrence."""


class LimitError(EcloseError, ValueError):
    """A walk, count or search that would exceed a stated limit."""


class RequestError(EcloseError, ValueError):
    """A request that names something unknown or combines what does not go together."""


class MissingExtra(EcloseError, ImportError):  # noqa: N818 - it names what is missing
    """A feature whose optional dependency is not installed; the message names the extra."""


class EcloseWarning(UserWarning):
    """Something the user should know that does not stop the work."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names that a typo may have meant, best first."""
    lowered = {candidate.lower(): candidate for candidate in sorted(known)}
    found = difflib.get_close_matches(name.lower(), list(lowered), n=count, cutoff=0.6)
    return [lowered[match] for match in found]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'conv'?" for the nearest known name, or nothing."""
    names = nearest(name, known, count=1)
    return f"; did you mean {names[0]!r}?" if names else ""


def shortened(text: str, limit: int = 60) -> str:
    """Return the text in quotes, cut in the middle when it is long, for use in a message."""
    return repr(text if len(text) <= limit else text[: limit - 23] + " ... " + text[-18:])
