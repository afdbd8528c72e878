"""The text of a grammar, read into rules.

The reader keeps an explicit stack, so patterns may nest as deep as memory allows. What the names mean is not its
business: it knows rules, `start`, `shared`, `level` and `constrain` lines and how a pattern is written.
"""

from __future__ import annotations

from typing import NoReturn

from eclose.algebra.errors import GrammarError, did_you_mean, shortened
from eclose.algebra.grammar.rules import APPLY, CHOICE, PICK, RULE, Alternative, Constraint, Node, Rule, Source
from eclose.algebra.terms import Value, tagged
from eclose.algebra.tokens import Token, located, tokenize

KEYWORDS = ("start", "shared", "level", "constrain")
NUMBERED = ("halvings", "depth", "size")  # constraints on the whole term, with a number
LONGEST_TUPLE_NESTING = 20
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-9, 1e9


def read(text: str) -> Source:
    """Return the rules that a grammar's text writes down."""
    if not isinstance(text, str):
        raise GrammarError(f"a grammar is read from a text, not from {type(text).__name__}")
    return _Reader(text).read()


class _Frame:
    """An application whose closing parenthesis has not come yet."""

    __slots__ = ("attributes", "children", "places", "token")

    def __init__(self, token: Token):
        self.token = token
        self.children: list[int] = []
        self.attributes: dict[str, tuple[Value, ...]] = {}
        self.places: dict[str, int] = {}


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.tokens = tokenize(text, newlines=True, error=GrammarError)
        self.tokens += self.tokens[-1:] * 2  # the reader looks up to two tokens ahead
        self.at = 0
        self.rules: dict[str, Rule] = {}
        self.start: tuple[str, int] | None = None
        self.levels: dict[str, tuple[tuple[str, int], ...]] = {}
        self.constraints: list[Constraint] = []

    def read(self) -> Source:
        while True:
            self._skip_newlines()
            token = self.tokens[self.at]
            if token.kind == "end":
                break
            self._line(token)
        if not self.rules:
            raise located(
                GrammarError, "a grammar needs a rule, for example: Cell -> conv | id", self.text, len(self.text)
            )
        for name, rule in self.rules.items():
            for alternative in rule.alternatives:
                self._refuse_keywords(name, alternative)
        first = next(iter(self.rules.values()))
        start = self.start or (first.name, first.offset)
        return Source(self.text, start, self._resolved(), self.levels, tuple(self.constraints))

    # Lines

    def _line(self, token: Token) -> None:
        following = self.tokens[self.at + 1] if token.kind == "name" else token
        if token.kind == "name" and following.text == "->":
            self._rule(shared=False)
        elif token.text == "shared" and following.kind == "name":
            self.at += 1
            self._rule(shared=True)
        elif token.text == "start" and following.kind == "name":
            if self.start is not None:
                self._fail(token, f"the start is already {self.start[0]!r}")
            self.start = (following.text, following.offset)
            self.at += 2
            self._line_ends("start names one nonterminal")
        elif token.text == "level" and following.kind == "name":
            self._level()
        elif token.text == "constrain" and following.kind == "name":
            self._constraint()
        elif token.text == "|":
            self._fail(token, "'|' goes on with a rule, and no rule stands before it")
        else:
            hint = did_you_mean(token.text, KEYWORDS) if token.kind == "name" else ""
            self._fail(
                token,
                f"{self._shown(token)} begins no line of a grammar{hint}; write a rule `Name -> conv | id`, "
                "`shared Name -> ...`, `start Name`, `level name: Name ...` or `constrain Operator connected`",
            )

    def _rule(self, shared: bool) -> None:
        name = self.tokens[self.at]
        if self.tokens[self.at + 1].text != "->":
            self._fail(self.tokens[self.at + 1], f"after 'shared {name.text}' comes '->'")
        before = self.rules.get(name.text)
        if before is not None:
            line = self.text.count("\n", 0, before.offset) + 1
            self._fail(name, f"{name.text} has a rule already, in line {line}; join both with '|'")
        self.at += 2
        alternatives = [self._alternative(name.text)]
        while self._next_is_bar():
            alternatives.append(self._alternative(name.text))
        token = self.tokens[self.at]
        if token.kind not in ("newline", "end"):
            self._fail(token, f"{self._shown(token)} after an alternative of {name.text}; go on with '|' or a new line")
        self.rules[name.text] = Rule(name.text, tuple(alternatives), shared, name.offset)

    def _next_is_bar(self) -> bool:
        """Skip to the next alternative, on this line or at the beginning of one that follows."""
        at = self.at
        while self.tokens[at].kind == "newline":
            at += 1
        if self.tokens[at].text != "|" or self.tokens[at].kind != "punct":
            return False
        self.at = at + 1
        return True

    def _alternative(self, rule: str) -> Alternative:
        self._skip_newlines()
        begin = self.tokens[self.at]
        nodes = self._pattern(f"an alternative of {rule}")
        last = self.tokens[self.at - 1]
        weight: int | float = 1
        if self.tokens[self.at].text == "[":
            weight = self._weight()
        return Alternative(nodes, weight, self.text[begin.offset : last.offset + len(last.text)], begin.offset)

    def _weight(self) -> int | float:
        number = self.tokens[self.at + 1]
        if number.kind != "number" or not SMALLEST_WEIGHT <= number.value <= LARGEST_WEIGHT:
            limits = f"{SMALLEST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
            self._fail(number, f"a weight is a number from {limits}, as in [2] or [0.5], not {self._shown(number)}")
        if self.tokens[self.at + 2].text != "]":
            self._fail(self.tokens[self.at + 2], "a weight ends with ']'")
        self.at += 3
        weight: int | float = number.value
        return weight

    def _level(self) -> None:
        name = self.tokens[self.at + 1]
        if self.tokens[self.at + 2].text != ":":
            self._fail(
                self.tokens[self.at + 2], f"write the level's nonterminals after a colon: level {name.text}: Cell"
            )
        if name.text in self.levels:
            self._fail(name, f"the level {name.text!r} is defined twice")
        self.at += 3
        members = []
        while self.tokens[self.at].kind == "name":
            token = self.tokens[self.at]
            members.append((token.text, token.offset))
            self.at += 2 if self.tokens[self.at + 1].text == "," else 1
        if not members:
            self._fail(self.tokens[self.at], f"the level {name.text!r} names no nonterminal")
        self._line_ends("a level is a list of nonterminals")
        self.levels[name.text] = tuple(members)

    def _constraint(self) -> None:
        first, second = self.tokens[self.at + 1], self.tokens[self.at + 2]
        self.at += 2
        operator = ""
        if second.kind == "name":
            operator, first = first.text, second
            self.at += 1
        argument: str | int | None = None
        opening = self.tokens[self.at]
        if opening.text == "(":
            given, closing = self.tokens[self.at + 1], self.tokens[self.at + 2]
            if given.kind not in ("name", "number") or closing.text != ")":
                self._fail(given, f"{first.text} takes one name or number in its parentheses")
            argument = given.value
            self.at += 3
        self._check_constraint(first, operator, argument)
        self._line_ends("a constraint is one line")
        self.constraints.append(Constraint(first.text, operator, argument, first.offset))

    def _check_constraint(self, kind: Token, operator: str, argument: object) -> None:
        """Refuse a constraint of a known kind that is not written as that kind is."""
        name = kind.text
        if name in NUMBERED:
            least = 0 if name == "halvings" else 1
            if operator or not isinstance(argument, int) or argument < least:
                self._fail(kind, f"write `constrain {name}(n)` with a whole number n of at least {least}")
        elif name == "connected" and (not operator or argument is not None):
            self._fail(kind, "write `constrain Operator connected`, for example: constrain Cell connected")
        elif name == "distinct" and (not operator or not isinstance(argument, str)):
            self._fail(
                kind, "write `constrain Operator distinct(attribute)`, for example: constrain node distinct(src)"
            )
        elif operator and name not in ("connected", "distinct"):
            hint = did_you_mean(name, ("connected", "distinct"))
            self._fail(
                kind, f"an operator can be constrained to be connected or distinct(attribute), not {name!r}{hint}"
            )

    def _line_ends(self, reason: str) -> None:
        token = self.tokens[self.at]
        if token.kind not in ("newline", "end"):
            self._fail(token, f"unexpected {self._shown(token)}: {reason}")

    # Patterns

    def _pattern(self, where: str) -> tuple[Node, ...]:
        """Return the nodes of the pattern that begins here, children before parents."""
        nodes: list[Node] = []
        frames: list[_Frame] = []
        while True:
            if frames:
                self._skip_newlines()
            token = self.tokens[self.at]
            if token.kind != "name":
                inside = f"in {frames[-1].token.text}(...)" if frames else f"in {where}"
                self._fail(token, f"{self._shown(token)} {inside} where a nonterminal or an operator belongs")
            following = self.tokens[self.at + 1]
            done: int | None
            if following.text == "(":
                frames.append(_Frame(token))
                self.at += 2
                self._skip_newlines()
                if self.tokens[self.at].text != ")":
                    continue
                self.at += 1
                done = self._close(frames.pop(), nodes)
            elif following.text == "=" and frames:
                self._attribute(frames[-1], token)
                done = None
            else:
                self.at += 1
                nodes.append(Node("name", token.text, offset=token.offset))
                done = len(nodes) - 1
            while True:
                if not frames:
                    return tuple(nodes)
                if done is not None:
                    frames[-1].children.append(done)
                self._skip_newlines()
                separator = self.tokens[self.at]
                self.at += 1
                if separator.text == ",":
                    break
                if separator.text != ")":
                    opening = frames[-1].token
                    line = self.text.count("\n", 0, opening.offset) + 1
                    self._fail(
                        separator,
                        f"{self._shown(separator)} in {opening.text}(...), which begins in line {line}; "
                        "go on with ',' or ')'",
                    )
                done = self._close(frames.pop(), nodes)

    def _close(self, frame: _Frame, nodes: list[Node]) -> int:
        name = frame.token.text
        kind = name if name in (CHOICE, PICK) else APPLY
        if kind != APPLY:
            self._check_inline(frame)
        nodes.append(
            Node(kind, name, tuple(frame.children), tuple(frame.attributes.items()), frame.token.offset, frame.places)
        )
        return len(nodes) - 1

    def _check_inline(self, frame: _Frame) -> None:
        token, count = frame.token, len(frame.children)
        if not count:
            self._fail(token, f"{token.text} needs at least one alternative")
        allowed = ("name",) if token.text == CHOICE else ("k", "name", "logits")
        for key, values in frame.attributes.items():
            if key not in allowed:
                hint = did_you_mean(key, allowed)
                self._fail_at(frame.places[key], key, f"{token.text} has no attribute {key!r}{hint}")
            expected = {"name": str, "k": int, "logits": bool}[key]
            if len(values) != 1 or type(values[0]) is not expected or values[0] == "":
                spoken = {"name": "a quoted string", "k": "one whole number", "logits": "true or false"}[key]
                self._fail_at(frame.places[key], key, f"{key} of {token.text} is {spoken}")
        if token.text == PICK:
            keep = frame.attributes.get("k", (0,))[0]
            if not isinstance(keep, int) or not 1 <= keep <= count:
                self._fail(token, f"pick keeps k of its children: give k between 1 and {count}, as in k={count}")

    def _attribute(self, frame: _Frame, key: Token) -> None:
        if key.text in frame.attributes:
            self._fail(key, f"{frame.token.text} is given {key.text}= twice")
        self.at += 2
        opening = self.tokens[self.at]
        values: list[Value] = []
        if opening.text != "{":
            values.append(self._value())
        else:
            self.at += 1
            while True:
                self._skip_newlines()
                values.append(self._value())
                self._skip_newlines()
                token = self.tokens[self.at]
                self.at += 1
                if token.text == "}":
                    break
                if token.text != ",":
                    self._fail(token, f"{self._shown(token)} in the alternatives of {key.text}; go on with ',' or '}}'")
            if len({tagged(value) for value in values}) < len(values):
                self._fail(opening, f"an alternative of {key.text} is written twice")
        frame.attributes[key.text] = tuple(values)
        frame.places[key.text] = key.offset

    def _value(self, depth: int = 0) -> Value:  # noqa: RET503 - what is no value raises
        token = self.tokens[self.at]
        self.at += 1
        if token.kind in ("number", "string"):
            value: Value = token.value
            return value
        if token.kind == "name" and token.text in ("true", "false"):
            return token.text == "true"
        if token.text == "(" and depth < LONGEST_TUPLE_NESTING:
            items: list[Value] = []
            while self.tokens[self.at].text != ")":
                items.append(self._value(depth + 1))
                if self.tokens[self.at].text == ",":
                    self.at += 1
                elif self.tokens[self.at].text != ")":
                    self._fail(self.tokens[self.at], "a tuple goes on with ',' or ')'")
            self.at += 1
            return tuple(items)
        self._fail(
            token,
            f"{self._shown(token)} is no value: write a number, true, false, a quoted string, a tuple, "
            "or alternatives {1, 3, 5}",
        )

    # Names

    def _resolved(self) -> dict[str, Rule]:
        """Return the rules with every bare name as the nonterminal or operator that it is."""
        result = {}
        for rule in self.rules.values():
            alternatives = []
            for alternative in rule.alternatives:
                nodes = tuple(
                    Node(RULE if node.name in self.rules else APPLY, node.name, offset=node.offset)
                    if node.kind == "name"
                    else node
                    for node in alternative.nodes
                )
                alternatives.append(Alternative(nodes, alternative.weight, alternative.text, alternative.offset))
            result[rule.name] = Rule(rule.name, tuple(alternatives), rule.shared, rule.offset)
        return result

    def _refuse_keywords(self, rule: str, alternative: Alternative) -> None:
        for node in alternative.nodes:
            if node.kind == "name" and node.name in (CHOICE, PICK) and node.name not in self.rules:
                self._fail_at(node.offset, node.name, f"{node.name} in a rule of {rule} needs its alternatives in ()")

    # Small things

    def _skip_newlines(self) -> None:
        while self.tokens[self.at].kind == "newline":
            self.at += 1

    def _shown(self, token: Token) -> str:
        if token.kind == "end":
            return "the end of the text"
        return "the end of the line" if token.kind == "newline" else shortened(token.text)

    def _fail(self, token: Token, message: str) -> NoReturn:
        self._fail_at(token.offset, token.text.strip(), message)

    def _fail_at(self, offset: int, offending: str, message: str) -> NoReturn:
        raise located(GrammarError, message, self.text, offset, offending)
