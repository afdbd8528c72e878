"""Selections: from a trained supernet to a term. Separate from the search: any of them works on any checkpoint.

One file a selection, one entry of `SELECTIONS` each: a function of a `Context` that returns a `Selection`.
"""

from __future__ import annotations

from collections.abc import Callable

from eclose.algebra.catalogue import Catalogue
from eclose.strategies.gradient.selection.context import Context, Selection

SELECTIONS: Catalogue[Callable[[Context], Selection]] = Catalogue("selection")
for _name, _reference, _description in (
    ("magnitude", "magnitude:magnitude", "the largest weights: softmax(alpha), concentration or simplex weight"),
    ("perturbation", "perturbation:perturbation", "what the supernet misses most when it is taken away (PT)"),
    ("sampled", "sampled:sampled", "the best of many architectures scored with the shared weights"),
    ("finetune", "finetune:finetune", "each operation fixed in turn and the supernet fine-tuned: for small studies"),
):
    SELECTIONS.add(_name, f"eclose.strategies.gradient.selection.{_reference}", _description)


def select(by: str, context: Context) -> Selection:
    """Return what a selection makes of a supernet."""
    return SELECTIONS.get(by)(context)


__all__ = ["SELECTIONS", "Context", "Selection", "select"]
