"""Names of occurrences: where in a term a node stands, as a short stable text.

The path of the second child's first child reads `Residual_1/conv_0`. Paths name parameters, unnamed choices and places
in messages, so they must be the same in every process, and short even where a term is 100,000 deep.
"""

from __future__ import annotations

from hashlib import blake2b

LONGEST = 160


def label(operator: str, index: int) -> str:
    """Return the label of child `index` whose operator has this name."""
    return f"{operator}_{index}"


def below(path: str, last: str) -> str:
    """Return the path one level down; a path that would grow beyond `LONGEST` is replaced by its digest."""
    longer = f"{path}/{last}" if path else last
    if len(longer) <= LONGEST:
        return longer
    return f"deep_{blake2b(longer.encode(), digest_size=8).hexdigest()}/{last}"
