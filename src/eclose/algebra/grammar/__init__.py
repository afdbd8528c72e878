"""Grammars: search spaces written as rules that generate terms."""

from eclose.algebra.grammar.derivations import Derivation, Step
from eclose.algebra.grammar.grammar import Grammar

__all__ = ["Derivation", "Grammar", "Step"]
