"""Text to terms: one parser for terms written by people and for those written by `exact_text`.

`parse` checks and normalises every node against a registry; `read_exact` takes the text as it stands. The parser keeps
an explicit stack, so a text may nest 100,000 deep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from eclose.algebra.errors import TermError, did_you_mean, shortened
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.terms import Term, Value, tagged
from eclose.algebra.tokens import Token, located, tokenize

DEEPEST_TUPLE = 20

Build = Callable[[str, tuple[Term, ...], Mapping[str, Value]], Term]


def parse(text: str, registry: Registry | None = None) -> Term:
    """Return the term that a text stands for, checked and in its normal form.

    Args:
        text: a term, after any number of `let name = term` lines; `# ...` is a comment.
        registry: the known operators; those that ship (and those registered) by default.
    """
    registry = default_registry() if registry is None else registry
    return _Reader(text, registry.normal, registry).read()


def read_exact(text: str) -> Term:
    """Return the term that `exact_text` wrote."""
    return _Reader(text, lambda name, children, attributes: Term(name, children, attributes), None).read()


class _Frame:
    """An application whose closing parenthesis has not come yet."""

    __slots__ = ("attributes", "children", "token")

    def __init__(self, token: Token):
        self.token = token
        self.children: list[Term] = []
        self.attributes: dict[str, tuple[Value, Token]] = {}


class _Reader:
    def __init__(self, text: str, build: Build, registry: Registry | None):
        if not isinstance(text, str):
            raise TermError(f"a term is read from a text, not from {type(text).__name__}")
        self.text, self.build, self.registry = text, build, registry
        self.tokens = tokenize(text, flat=True)
        self.at = 0
        self.lets: dict[str, Term] = {}
        self.flat: dict[str, Term] = {}
        self.built: dict[tuple[object, ...], Term] = {}

    def read(self) -> Term:
        """Return the whole text's term."""
        if self.tokens[0].kind == "end":
            raise TermError("an empty text is no term; write for example conv(kernel=3)", line=1, column=1)
        while self._is_let():
            self._let()
        term = self._term()
        rest = self.tokens[self.at]
        if rest.kind != "end":
            what = "a term ends here and something follows" if rest.text != ")" else "this ')' closes nothing"
            self._fail(rest, f"unexpected {shortened(rest.text)}: {what}")
        return term

    def _is_let(self) -> bool:
        first, second = self.tokens[self.at], self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        return first.kind == "name" and first.text == "let" and second.kind == "name"

    def _let(self) -> None:
        name, equals = self.tokens[self.at + 1], self.tokens[self.at + 2]
        if equals.text != "=":
            self._fail(equals, f"let {name.text} needs '=' and a term, as in: let {name.text} = conv(kernel=3)")
        if name.text in self.lets:
            self._fail(name, f"the name {name.text!r} is bound twice")
        if self.registry is not None and name.text in self.registry:
            self._fail(name, f"{name.text!r} is an operator; choose another name for this let")
        self.at += 3
        term = self._term()
        if self.tokens[self.at].kind == "end":
            self._fail(self.tokens[self.at], f"after let {name.text} = ... the term itself is missing")
        self.lets[name.text] = term
        self.flat.clear()

    def _term(self) -> Term:
        """Return the term that begins at the present token."""
        tokens, stack = self.tokens, list[_Frame]()
        while True:
            token = tokens[self.at]
            if token.kind != "name" and token.kind != "flat":
                self._misplaced(token, stack)
            follows = tokens[self.at + 1].text
            if token.kind == "flat":
                self.at += 1
                done: Term | None = self.flat.get(token.text) or self._flat(token)
            elif follows == "(":
                stack.append(_Frame(token))
                self.at += 2
                if tokens[self.at].text != ")":
                    continue
                self.at += 1
                done = self._close(stack.pop())
            elif follows == "=" and stack and tokens[self.at + 1].kind == "punct":
                self._attribute(stack[-1], token)
                done = None
            else:
                self.at += 1
                done = self._leaf(token)
            # What has just been read is an item of the innermost frame; close every frame that ends here.
            while True:
                if not stack:
                    assert done is not None
                    return done
                if done is not None:
                    stack[-1].children.append(done)
                separator = tokens[self.at]
                if separator.text == "," and separator.kind == "punct":
                    self.at += 1
                    break
                if separator.text != ")" or separator.kind != "punct":
                    self._unclosed(separator, stack[-1])
                self.at += 1
                done = self._close(stack.pop())

    def _leaf(self, token: Token) -> Term:
        bound = self.lets.get(token.text)
        if bound is not None:
            return bound
        return self._made(token, (), {})

    def _flat(self, token: Token) -> Term:
        """Return the term of an application that stands in one token; its text is read once."""
        outer, at = self.tokens, self.at
        self.tokens, self.at = tokenize(self.text, span=(token.offset, token.offset + len(token.text))), 0
        term = self.flat[token.text] = self._term()
        self.tokens, self.at = outer, at
        return term

    def _close(self, frame: _Frame) -> Term:
        return self._made(frame.token, tuple(frame.children), frame.attributes)

    def _made(self, token: Token, children: tuple[Term, ...], attributes: dict[str, tuple[Value, Token]]) -> Term:
        key: tuple[object, ...] = (token.text, children)  # children are compared by identity
        if attributes:
            key = (key, *[(name, tagged(value)) for name, (value, _) in attributes.items()])
        found = self.built.get(key)
        if found is None:
            if token.text in self.lets:
                self._fail(token, f"{token.text!r} is bound by let and takes no children or attributes")
            try:
                found = self.build(token.text, children, {name: value for name, (value, _) in attributes.items()})
            except TermError as error:
                if error.line is not None:
                    raise
                self._blame(token, attributes, error)
            self.built[key] = found
        return found

    def _blame(self, token: Token, attributes: dict[str, tuple[Value, Token]], error: TermError) -> NoReturn:
        guilty = attributes[error.text][1] if error.text in attributes else token
        message = str(error)
        if self.lets and self.registry is not None and token.text not in self.registry:
            message = f"unknown name {token.text!r}{did_you_mean(token.text, {*self.lets, *self.registry.names()})}"
        raise located(TermError, message, self.text, guilty.offset, guilty.text) from None

    def _attribute(self, frame: _Frame, key: Token) -> None:
        if key.text in frame.attributes:
            self._fail(key, f"{frame.token.text} is given {key.text}= twice")
        self.at += 2
        try:
            frame.attributes[key.text] = (self._value(0), key)
        except TermError as error:
            if error.line is not None:
                raise
            self._fail(key, f"{key.text}: {error}")

    def _value(self, depth: int) -> Value:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind in ("number", "string"):
            value: Value = token.value
            return value
        if token.kind == "name" and token.text in ("true", "false"):
            return token.text == "true"
        if token.text == "(" and token.kind == "punct":
            return self._tuple(token, depth + 1)
        return self._no_value(token)

    def _no_value(self, token: Token) -> NoReturn:
        written = shortened(token.text) if token.kind != "end" else "the end of the text"
        hint = did_you_mean(token.text, ("true", "false")) if token.kind == "name" else ""
        if token.kind == "name" and not hint:
            hint = f'; a string is written "{token.text}"'
        self._fail(token, f"{written} is no value: write a number, true, false, a quoted string or a tuple{hint}")

    def _tuple(self, opening: Token, depth: int) -> Value:
        if depth > DEEPEST_TUPLE:
            self._fail(opening, f"tuples nest more than {DEEPEST_TUPLE} deep")
        items: list[Value] = []
        while True:
            if self._skips(")"):
                return tuple(items)
            items.append(self._value(depth))
            if not self._skips(","):
                if self._skips(")"):
                    return tuple(items)
                self._fail(self.tokens[self.at], "a tuple goes on with ',' or ends with ')'")

    def _skips(self, punctuation: str) -> bool:
        token = self.tokens[self.at]
        if token.kind == "punct" and token.text == punctuation:
            self.at += 1
            return True
        return False

    def _misplaced(self, token: Token, stack: list[_Frame]) -> NoReturn:
        inside = f" in {stack[-1].token.text}(...)" if stack else ""
        if token.kind == "end":
            self._fail(token, f"the text ends where a term is expected{inside}")
        if token.kind in ("number", "string"):
            self._fail(
                token, f"{shortened(token.text)} stands where a term is expected{inside}; write name={token.text}"
            )
        if token.text == ")":
            self._fail(token, f"unexpected ')' where a term is expected{inside}; is there a ',' too many?")
        self._fail(token, f"unexpected {token.text!r} where a term is expected{inside}")

    def _unclosed(self, token: Token, frame: _Frame) -> NoReturn:
        if token.kind == "end":
            self._fail(frame.token, f"the '(' of {frame.token.text} is never closed")
        self._fail(
            token, f"unexpected {shortened(token.text)} in {frame.token.text}(...): ',' or ')' is missing before it"
        )

    def _fail(self, token: Token, message: str) -> NoReturn:
        raise located(TermError, message, self.text, token.offset, token.text)


__all__ = ["parse", "read_exact"]
