"""A network as the text of a plain PyTorch module that needs nothing but torch."""

from eclose.meanings.source.writing import program_source, source

__all__ = ["program_source", "source"]
