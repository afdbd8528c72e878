"""The numpy meaning: a slow reference interpreter that other backends are tested against."""

from eclose.meanings.numpy.interpreter import parameters_of, run

__all__ = ["parameters_of", "run"]
