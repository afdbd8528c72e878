"""A space: a grammar, and what a search must know about it - the network around its terms, sizes, defaults.

A space's terms are what is searched (a cell, two cells, a macro structure, a whole network); its *skeleton* is a plain
function that puts such a term in its place and gives the whole network, again as a term. Nothing here knows a
particular space or a tensor library.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from eclose.algebra.errors import MissingExtra, RequestError, did_you_mean, shortened
from eclose.algebra.grammar import Grammar
from eclose.algebra.shapes import Classes, Input, Output, as_input, as_output
from eclose.algebra.terms import Term, Value

Skeleton: TypeAlias = Callable[..., Term]
Options: TypeAlias = Mapping[str, Any]

RELAXED_LIMIT = 100_000


class Space:
    """A named set of architectures with the network that each of them stands for.

    Args:
        name: what the command line and messages call it.
        description: one line for people.
        grammar: its text, or the grammar itself.
        skeleton: `skeleton(term, **options) -> Term`, all options with defaults; without one a term is the whole
            network (a stem and a head are added where it has none). Options called `input` and `output` receive the
            network's.
        sizes: `size -> options` of the skeleton, at least `"search"` and `"evaluation"`.
        cells: what the children of the term's `motifs(...)` are, e.g. `("normal", "reduction")`.
        relaxed: gives the term with every decision open, with the names that the literature gives its alphas; without
            it the grammar's own relaxation is used.
        supernet: options of the skeleton that a supernet has on top of its size.
        input: the input that the space is made for.
        output: the output that the space is made for.
    """

    def __init__(
        self,
        name: str,
        description: str,
        grammar: str | Grammar,
        *,
        skeleton: Skeleton | None = None,
        sizes: Mapping[str, Options] | None = None,
        cells: tuple[str, ...] = (),
        relaxed: Callable[[], Term] | None = None,
        supernet: Options | None = None,
        input: Input = (3, 32, 32),
        output: Output = Classes(10),  # noqa: B008 - frozen
    ):
        self.name, self.description = name, description
        self.input, self.output = as_input(input), output
        self.cells = cells
        self.sizes: dict[str, Options] = {"search": {}, "evaluation": {}, **(sizes or {})}
        self._given = grammar
        self._grammar = grammar if isinstance(grammar, Grammar) else None
        self._skeleton, self._relaxed, self._supernet = skeleton, relaxed, dict(supernet or {})

    @classmethod
    def from_grammar(
        cls, grammar: str | Grammar, *, name: str = "grammar", description: str = "", **settings: Any
    ) -> Space:
        """Return the space of a user's grammar; its terms are whole networks unless a `skeleton` is given."""
        space = cls(name, description or "a grammar given by the user", grammar, **settings)
        _ = space.grammar  # what is wrong with it is said here and now
        return space

    @property
    def grammar(self) -> Grammar:
        """The grammar, read when it is first needed."""
        if self._grammar is None:
            self._grammar = Grammar.parse(str(self._given))
        return self._grammar

    @property
    def options(self) -> dict[str, Any]:
        """The options of the skeleton with their defaults at search size."""
        return {**self._defaults(), **self.sizes["search"]}

    @property
    def supernet_options(self) -> dict[str, Any]:
        """The options of the skeleton around a supernet, beside those that it has anyway."""
        return {**self.sizes["search"], **self._supernet}

    def __repr__(self) -> str:
        return f"<space {self.name}: {self.description}>"

    def __reduce__(self) -> Any:
        from eclose.spaces import SPACES, space

        if self.name in SPACES and SPACES.get(self.name) is self:
            return space, (self.name,)
        return super().__reduce__()

    # The grammar's operations

    def __contains__(self, term: object) -> bool:
        return term in self.grammar

    def __iter__(self) -> Iterator[Term]:
        return iter(self.grammar.enumerate())

    def count(self, of: str = "terms") -> int:
        """Return the exact number of terms, or of `"derivations"`."""
        return self.grammar.count(of)

    def rank(self, term: Term) -> int:
        """Return a term's number."""
        return self.grammar.rank(term)

    def unrank(self, number: int) -> Term:
        """Return the term with a number."""
        return self.grammar.unrank(number)

    def enumerate(self, limit: int | None = None) -> Iterator[Term]:
        """Yield the terms one after the other."""
        return iter(self.grammar.enumerate(limit))

    def sample(self, rng: Any) -> Term:
        """Return a term drawn rule by rule, by the rules' weights."""
        return self.grammar.sample(rng)

    def sample_uniform(self, rng: Any) -> Term:
        """Return a term drawn uniformly over derivations."""
        return self.grammar.sample_uniform(rng)

    def mutate(self, term: Term, rng: Any) -> Term:
        """Return a term of the space that differs from the given one in one place."""
        return self.grammar.mutate(term, rng)

    def crossover(self, first: Term, second: Term, rng: Any) -> tuple[Term, Term]:
        """Return two terms that have exchanged a part."""
        return self.grammar.crossover(first, second, rng)

    def neighbours(self, term: Term) -> Iterator[Term]:
        """Yield the terms that differ in one decision."""
        return iter(self.grammar.neighbours(term))

    def suggest(self, trial: Any) -> Term:
        """Return the term that an Optuna trial decides, so that any of Optuna's samplers can walk a small space.

        Every decision of the grammar is a categorical parameter of the trial. A trial whose decisions break a
        constraint of the grammar is pruned (`optuna.TrialPruned`).
        """
        try:
            from optuna import TrialPruned
        except ImportError:
            raise MissingExtra("install Optuna (pip install optuna) to let its samplers decide about terms") from None
        term = self.grammar.decide(lambda name, answers: answers.index(trial.suggest_categorical(name, answers)))
        if term is None:
            raise TrialPruned(f"these decisions break a constraint of {self.name}")
        return term

    # What a term means here

    def network(
        self,
        term: Term,
        *,
        input: Input | None = None,
        output: Output | None = None,
        size: str = "search",
        **options: Any,
    ) -> Term:
        """Return the whole network of a term, as a term.

        Args:
            term: of this space, or its relaxation.
            input: what the network is fed, where that differs from what the space is made for.
            output: what it gives, likewise.
            size: `"search"`, `"evaluation"` or another of `sizes`.
            options: the skeleton's own, e.g. `channels=36`; `options` lists them.
        """
        fed = self.input if input is None else as_input(input)
        asked = self.output if output is None else as_output(output, None)
        if self._skeleton is None:
            self._refuse(options, {})
            self._size(size)
            from eclose.meanings.program.completion import completed

            return completed(term, fed, asked, self.grammar.registry)
        if self.cells and (term.name != "motifs" or len(term.children) != len(self.cells)):
            raise RequestError(f"a term of {self.name} is motifs({', '.join(self.cells)}), not {shortened(str(term))}")
        defaults = self._defaults()
        self._refuse(options, defaults)
        given = {**self._size(size), **options}
        for key, value in (("input", fed), ("output", asked)):
            if key in inspect.signature(self._skeleton).parameters:
                given[key] = value
        return self._skeleton(term, **given)

    def relaxed(self, limit: int = RELAXED_LIMIT) -> Term:
        """Return the term of the space with every decision left open as a `choice` or `pick`.

        A supernet is the network of this term, and a selection turns it back into a term of the space.
        """
        if self._relaxed is not None:
            return self._relaxed()
        return self.grammar.relaxed(limit=limit)

    def supernet(
        self, *, whole: bool = True, size: str = "search", limit: int = RELAXED_LIMIT, **settings: Any
    ) -> Term:
        """Return the whole network of the relaxed term, or with `whole=False` that term alone.

        Args:
            whole: whether the skeleton stands around it.
            size: of the skeleton.
            limit: the largest number of nodes a relaxation may have.
            settings: further arguments of `network`.
        """
        relaxed = self.relaxed(limit)
        return self.network(relaxed, size=size, **{**self._supernet, **settings}) if whole else relaxed

    def duplicate_key(self, term: Term) -> Any:
        """Return a key that terms share only if they are the same network; a search need not evaluate both."""
        from eclose.meanings.graph import duplicate_key

        return duplicate_key(term, self.grammar.registry)

    def _defaults(self) -> dict[str, Any]:
        if self._skeleton is None:
            return {}
        parameters = list(inspect.signature(self._skeleton).parameters.values())[1:]
        return {
            parameter.name: parameter.default for parameter in parameters if parameter.name not in ("input", "output")
        }

    def _size(self, size: str) -> Options:
        if size not in self.sizes:
            hint = did_you_mean(size, self.sizes) or f" (sizes: {', '.join(self.sizes)})"
            raise RequestError(f"{self.name} has no size {size!r}{hint}")
        return self.sizes[size]

    def _refuse(self, options: Options, known: Mapping[str, Value]) -> None:
        for option in options:
            if option not in known:
                hint = did_you_mean(option, known) or f" (options: {', '.join(known) or 'none'})"
                raise RequestError(f"the skeleton of {self.name} has no option {option!r}{hint}")


__all__ = ["Space"]
