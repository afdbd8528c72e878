"""Spaces: grammars with what a search must know about them, one file each.

`SPACES` lists them, `space(name)` returns one. A user's own is `Space.from_grammar(text)`; added to `SPACES` it has a
name like those that ship.
"""

from __future__ import annotations

import sys
from types import ModuleType

from eclose.algebra.catalogue import Catalogue
from eclose.spaces._space import Space
from eclose.spaces.activation import ACTIVATION, ACTIVATION_3
from eclose.spaces.darts import DARTS, DARTS_WITH_NONE
from eclose.spaces.hierarchical import HIERARCHICAL
from eclose.spaces.layer_choice import LAYER_CHOICE
from eclose.spaces.nasbench1shot1 import NASBENCH1SHOT1_1, NASBENCH1SHOT1_2, NASBENCH1SHOT1_3
from eclose.spaces.nasbench201 import NASBENCH201
from eclose.spaces.s1_to_s4 import S1, S2, S3, S4
from eclose.spaces.tiny import TINY
from eclose.spaces.transformer import TRANSFORMER, TRANSFORMER_CAUSAL
from eclose.spaces.unet import UNET

SPACES: Catalogue[Space] = Catalogue("space")

for _space in (
    TINY,
    NASBENCH201,
    DARTS,
    DARTS_WITH_NONE,
    *(S1, S2, S3, S4),
    *(NASBENCH1SHOT1_1, NASBENCH1SHOT1_2, NASBENCH1SHOT1_3),
    LAYER_CHOICE,
    *HIERARCHICAL.values(),
    *(ACTIVATION, ACTIVATION_3),
    UNET,
    *(TRANSFORMER, TRANSFORMER_CAUSAL),
):
    SPACES.add(_space.name, _space, _space.description)


def space(name: str) -> Space:
    """Return a space by name."""
    return SPACES.get(name)


class _Listing(ModuleType):
    """This package as `eclose.spaces()`: the public list has the name of the package that holds what it lists."""

    def __call__(self) -> dict[str, str]:
        return {entry.name: entry.description for entry in SPACES}


sys.modules[__name__].__class__ = _Listing


__all__ = ["SPACES", "Space", "space"]
