"""A term as a flat program of layers with inferred shapes."""

from eclose.meanings.program.emitter import compile_term
from eclose.meanings.program.ir import Program

__all__ = ["Program", "compile_term"]
