"""eclose finds the neural network a data set needs.

Public names are imported on first use, so `import eclose` loads neither torch nor numpy.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Term": "eclose.algebra.terms:Term",
    "Operator": "eclose.algebra.declarations:Operator",
    "Attribute": "eclose.algebra.declarations:Attribute",
    "Registry": "eclose.algebra.registry:Registry",
    "EcloseError": "eclose.algebra.errors:EcloseError",
    "EcloseWarning": "eclose.algebra.errors:EcloseWarning",
    "TermError": "eclose.algebra.errors:TermError",
    "GrammarError": "eclose.algebra.errors:GrammarError",
    "ShapeError": "eclose.algebra.errors:ShapeError",
    "LimitError": "eclose.algebra.errors:LimitError",
    "RequestError": "eclose.algebra.errors:RequestError",
    "MissingExtra": "eclose.algebra.errors:MissingExtra",
    "Classes": "eclose.algebra.shapes:Classes",
    "Map": "eclose.algebra.shapes:Map",
    "Values": "eclose.algebra.shapes:Values",
    "Tokens": "eclose.algebra.shapes:Tokens",
    "Grammar": "eclose.algebra.grammar:Grammar",
    "parse": "eclose.algebra.reading:parse",
    "Space": "eclose.spaces:Space",
    "space": "eclose._api.catalogues:space",
    "spaces": "eclose.spaces:",
    "Task": "eclose.tasks:Task",
    "task": "eclose.tasks:task",
    "search": "eclose._api.search:search",
    "resume": "eclose._api.search:resume",
    "evaluate": "eclose._api.search:evaluate",
    "compare": "eclose._api.comparing:compare",
    "select": "eclose._api.selecting:select",
    "diagnose": "eclose._api.diagnosing:diagnose",
    "register": "eclose._api.catalogues:register",
    "build": "eclose._api.networks:build",
    "cost": "eclose._api.networks:cost",
    "source": "eclose._api.networks:source",
    "graph": "eclose._api.networks:graph",
    "draw": "eclose._api.networks:draw",
    "exported": "eclose._api.networks:exported",
    "weights": "eclose.operations.groups:weights",
    "architecture": "eclose.operations.groups:architecture",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    reference = _PUBLIC.get(name)
    if reference is None:
        from eclose.algebra.errors import did_you_mean

        raise AttributeError(f"module 'eclose' has no attribute {name!r}{did_you_mean(name, _PUBLIC)}")
    module, _, attribute = reference.partition(":")
    found: Any = importlib.import_module(module)
    if attribute:
        found = getattr(found, attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
