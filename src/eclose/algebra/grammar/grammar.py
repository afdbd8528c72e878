"""A grammar: the rules of a search space, and everything that can be done with them.

Counting, numbering, drawing, reading back, varying and relaxing are parts of their own; here they are put together and
made when they are first needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from eclose.algebra.errors import EcloseWarning, GrammarError, LimitError, RequestError, did_you_mean, shortened
from eclose.algebra.grammar import counting
from eclose.algebra.grammar.automaton import DerivationAutomaton
from eclose.algebra.grammar.constraints import UserFold, constraints_of
from eclose.algebra.grammar.deciding import Chooser, decided
from eclose.algebra.grammar.derivations import Derivation
from eclose.algebra.grammar.drawing import Drawer
from eclose.algebra.grammar.numbering import Numbering
from eclose.algebra.grammar.parsing import Parser
from eclose.algebra.grammar.productions import Symbols, compiled
from eclose.algebra.grammar.reading import read
from eclose.algebra.grammar.relaxation import relaxed, source_of
from eclose.algebra.grammar.rules import Source
from eclose.algebra.grammar.sharing import simplified
from eclose.algebra.grammar.validation import validate
from eclose.algebra.grammar.variation import Variation
from eclose.algebra.grammar.weighing import Weights
from eclose.algebra.randomness import as_random
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.terms import Term

RELAXED_LIMIT = 100_000
FEW_TERMS = 2_000  # so few are looked at one by one
TRIES = 10_000  # draws that a filter may refuse in a row

Predicate = Callable[[Term], bool]


class Grammar:
    """The rules of a search space.

    Make one with `Grammar.parse(text)` or `Grammar.of_term(term)`.

    Attributes:
        source: the rules as written.
        registry: the operators.
        levels: the nonterminals of each level of hierarchy, by the level's name.
    """

    def __init__(
        self,
        source: Source,
        registry: Registry | None = None,
        *,
        folds: Mapping[str, UserFold] | None = None,
        where: Predicate | None = None,
    ):
        self.source, self.where = source, where
        self.registry = default_registry() if registry is None else registry
        self._folds = dict(folds or {})
        self._symbols = Symbols(self.registry)
        productions = compiled(source, self._symbols)
        validate(source, productions)
        self._constraints = constraints_of(source, productions, self.registry, self._folds)
        unused = [name for name in self._folds if name not in {line.kind for line in source.constraints}]
        if unused:
            raise RequestError(f"the fold {unused[0]!r} is given, but no line says `constrain {unused[0]}`")
        self._productions = simplified(productions)

    @classmethod
    def parse(
        cls,
        text: str,
        registry: Registry | None = None,
        *,
        folds: Mapping[str, UserFold] | None = None,
        where: Predicate | None = None,
    ) -> Grammar:
        """Return the grammar that a text writes down, checked.

        Args:
            text: rules, `start`, `shared`, `level` and `constrain` lines.
            registry: the operators; those that ship and those registered by default.
            folds: constraints of your own, by the name in their `constrain NAME` line:
                `state(operator, attributes, child_states)` gives a state, or None to reject (`False` is a state like
                any other). The operator comes by its own name, never by an alias. There may be only finitely many
                states; counting, drawing and varying stay exact.
            where: any other condition on a whole term; it filters draws, and the grammar can no longer be counted.
        """
        return cls(read(text), registry, folds=folds, where=where)

    @classmethod
    def of_term(cls, term: Term, registry: Registry | None = None) -> Grammar:
        """Return the grammar that a term with choices is: its terms are those that its decisions lead to."""
        return cls(source_of(term), registry)

    def __repr__(self) -> str:
        rules = ", ".join(list(self.source.rules)[:6])
        return (
            f"<grammar {self.start}: {len(self.source.rules)} rules ({rules}{', ...' * (len(self.source.rules) > 6)})>"
        )

    def __str__(self) -> str:
        return self.source.text

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source, "registry": self.registry, "folds": self._folds, "where": self.where}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["source"], state["registry"], folds=state["folds"], where=state["where"])  # type: ignore[misc]

    @property
    def is_text_alone(self) -> bool:
        """Whether the text says everything: no folds or condition were given from Python."""
        return self.where is None and not self._folds

    @property
    def start(self) -> str:
        """The nonterminal that generates the language."""
        return self.source.start[0]

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The nonterminals of each level of hierarchy."""
        return {level: tuple(name for name, _ in members) for level, members in self.source.levels.items()}

    # Counting and numbering

    def count(self, of: str = "terms") -> int:
        """Return the exact number of distinct terms, or of `"derivations"`.

        An integer weight counts as that many derivations. Where the terms of shared rules overlap, distinct terms
        cannot be told from derivations; then the number of derivations is given and a warning says that it is an
        upper bound (`counts_exactly` is False).
        """
        if of not in ("terms", "derivations"):
            raise RequestError(f"count terms or derivations, not {of!r}{did_you_mean(of, ('terms', 'derivations'))}")
        if self.where is not None:
            raise RequestError(
                "a grammar with a where= condition cannot be counted; write it as a fold to keep it exact"
            )
        if of == "derivations":
            return self._uniform_total
        if not self.counts_exactly:
            warnings.warn(
                "shared rules of this grammar overlap: this is the number of derivations, an upper bound",
                EcloseWarning,
                stacklevel=2,
            )
        return self._numbering.total

    @property
    def counts_exactly(self) -> bool:
        """Whether `count()` is the exact number of distinct terms and not an upper bound."""
        return self._counts_exactly

    @cached_property
    def _counts_exactly(self) -> bool:
        if counting.tells_terms_apart(self._productions, self._constraints):
            return True
        total = self._numbering.total
        return total <= FEW_TERMS and len({self._numbering.unrank(number) for number in range(total)}) == total

    @cached_property
    def _numbering(self) -> Numbering:
        return Numbering(counting.of_terms(self._productions, self._constraints))

    def rank(self, term: Term) -> int:
        """Return a term's number, from 0; `unrank` gives the term back."""
        return self._numbering.rank(*self._read(term))

    def unrank(self, number: int) -> Term:
        """Return the term with a number below `count()`."""
        return self._numbering.unrank(number)

    def enumerate(self, limit: int | None = None) -> Iterator[Term]:
        """Yield every distinct term once, in the order of their numbers; `limit` says after how many to stop."""
        seen: set[Term] = set()
        made = 0
        for number in range(self._numbering.total):
            if limit is not None and made >= limit:
                return
            term = self._numbering.unrank(number)
            if not self.counts_exactly:
                if term in seen:
                    continue
                seen.add(term)
            if self.where is None or self.where(term):
                made += 1
                yield term

    # Membership

    def __contains__(self, term: object) -> bool:
        self._refuse_text(term)
        if not isinstance(term, Term) or self._parser.read(term) is None:
            return False
        return self.where is None or bool(self.where(term))

    def derivation(self, term: Term) -> Derivation:
        """Return how the rules derive a term; of several derivations, the first in rule order."""
        return Derivation(self.source, self._productions, *self._read(term))

    # Drawing

    def sample(self, rng: Any) -> Term:
        """Return a term drawn rule by rule, by the rules' weights, among those that the constraints allow."""
        return self._filtered(self._prior, rng)

    def sample_uniform(self, rng: Any, of: str = "derivations") -> Term:
        """Return a term drawn evenly over derivations, or over distinct `"terms"`."""
        if of == "derivations":
            return self._filtered(self._uniform, rng)
        if of != "terms":
            raise RequestError(f"draw evenly over terms or derivations, not {of!r}")
        generator = as_random(rng)
        for _ in range(TRIES):
            term = self.unrank(generator.randrange(self._numbering.total))
            if self.where is None or self.where(term):
                return term
        raise self._refused()

    def decide(self, chooser: Chooser) -> Term | None:
        """Return the term that a chooser decides, or None where its decisions break a constraint.

        Args:
            chooser: `chooser(name, answers) -> index` is asked for every decision on the way; a name always comes with
                the same answers.
        """
        term = decided(self._productions, chooser)
        if not self._parser.accepts(term) or (self.where is not None and not self.where(term)):
            return None
        return term

    # Variation

    def mutate(self, term: Term, rng: Any) -> Term:
        """Return a term of the grammar in which one site of the given one, drawn evenly, has been derived anew.

        A grammar with one term has nothing to change: the term itself comes back.
        """
        generator, found = as_random(rng), self._read(term)
        for _ in range(TRIES if self.where is not None else 1):
            changed = self._variation.mutate(found, generator)
            if changed is None:
                return term
            if self.where is None or self.where(changed):
                return changed
        raise self._refused()

    def crossover(self, first: Term, second: Term, rng: Any) -> tuple[Term, Term]:
        """Return two terms that have exchanged subterms derived from one nonterminal.

        Where no exchange changes anything, the terms themselves come back.
        """
        generator, ours, theirs = as_random(rng), self._read(first), self._read(second)
        for _ in range(TRIES if self.where is not None else 1):
            made = self._variation.crossover(ours, theirs, generator)
            if made is None:
                return first, second
            if self.where is None or (self.where(made[0]) and self.where(made[1])):
                return made
        raise self._refused()

    def self_crossover(self, term: Term, rng: Any, mode: str = "swap") -> Term:
        """Return a term in which two subterms of one nonterminal are exchanged (`"swap"`) or made equal (`"copy"`)."""
        if mode not in ("swap", "copy"):
            raise RequestError(f"a crossover of a term with itself swaps or copies, not {mode!r}")
        generator, found = as_random(rng), self._read(term)
        for _ in range(TRIES if self.where is not None else 1):
            made = self._variation.self_crossover(found, generator, copy=mode == "copy")
            if made is None:
                return term
            if self.where is None or self.where(made):
                return made
        raise self._refused()

    def neighbours(self, term: Term) -> Iterator[Term]:
        """Yield the terms in which one decision is another; what both alternatives have in common stays."""
        for found in self._variation.neighbours(self._read(term)):
            if self.where is None or self.where(found):
                yield found

    # Relaxation

    def relaxed(self, limit: int = RELAXED_LIMIT) -> Term:
        """Return the term in which every decision is left open as a `choice` or `pick`.

        Args:
            limit: the largest number of nodes; a larger relaxation is refused with its size.
        """
        return relaxed(self.source, self.registry, limit)

    # Parts, made when first needed

    @cached_property
    def _parser(self) -> Parser:
        return Parser(self._productions, self._constraints, self._symbols)

    @cached_property
    def _derivations(self) -> DerivationAutomaton:
        return DerivationAutomaton(self._productions, self._constraints)

    @cached_property
    def _prior(self) -> Drawer:
        return Drawer(Weights(self._derivations, lambda way: 1.0 if way is None else way.share, 1.0))

    @cached_property
    def _uniform(self) -> Drawer:
        return Drawer(Weights(self._derivations, lambda way: 1 if way is None else way.multiplicity, 1))

    @cached_property
    def _uniform_total(self) -> int:
        return sum(weight for _, weight in self._uniform.weights.assemblies())

    @cached_property
    def _variation(self) -> Variation:
        return Variation(self._parser, self._prior.weights)

    def _read(self, term: Term) -> Any:
        self._refuse_text(term)
        found = self._parser.read(term)
        if found is None:
            raise GrammarError(f"{shortened(str(term), 200)} is no term of this grammar")
        return found

    @staticmethod
    def _refuse_text(term: object) -> None:
        if isinstance(term, str):
            raise RequestError(f"a term is needed, not its text; write eclose.parse({shortened(term)})")

    def _filtered(self, drawer: Drawer, rng: Any) -> Term:
        generator = as_random(rng)
        for _ in range(TRIES):
            term = drawer.whole(generator)
            if self.where is None or self.where(term):
                return term
        raise self._refused()

    def _refused(self) -> LimitError:
        return LimitError(
            f"the where= condition has refused {TRIES:,} terms in a row; is there any term that meets it?"
        )
