"""Declarations of the operators that ship, one family a module; no layers, no tensors."""

from eclose.operators._standard import standard

__all__ = ["standard"]
