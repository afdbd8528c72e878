"""S1 to S4: small subsets of the DARTS space on which DARTS fails (Zela et al., 2020).

S1 offers on every edge two operations that DARTS had selected before, S2 a skip connection or a separable convolution,
S3 also `none`, S4 noise or a separable convolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from eclose.algebra.terms import Term
from eclose.spaces._darts_network import CELLS, EVALUATION, IMAGENET, SEARCH, network, relaxed
from eclose.spaces._space import Space

GRAMMAR_S2 = """
Cells     -> motifs(Normal, Reduction)
Normal    -> Cell
Reduction -> Cell
Cell      -> darts_cell(Node2, Node3, Node4, Node5)
Node2     -> pick(on(Op, src=0), on(Op, src=1), k=2)
Node3     -> pick(on(Op, src=0), on(Op, src=1), on(Op, src=2), k=2)
Node4     -> pick(on(Op, src=0), on(Op, src=1), on(Op, src=2), on(Op, src=3), k=2)
Node5     -> pick(on(Op, src=0), on(Op, src=1), on(Op, src=2), on(Op, src=3), on(Op, src=4), k=2)
Op        -> skip_connect | sep_conv_3x3
level cell: Cell
level op: Op
"""
GRAMMAR_S3 = GRAMMAR_S2.replace("skip_connect | sep_conv_3x3", "none | skip_connect | sep_conv_3x3")
GRAMMAR_S4 = GRAMMAR_S2.replace("skip_connect | sep_conv_3x3", "noise | sep_conv_3x3")

GRAMMAR_S1 = """
Cells     -> motifs(Normal, Reduction)

Normal    -> darts_cell(N2, N3, N4, N5)
N2        -> pick(on(SkipDil3, src=0), on(SkipDil5, src=1), k=2)
N3        -> pick(on(SkipDil5, src=0), on(SkipSep3, src=1), on(SkipDil3, src=2), k=2)
N4        -> pick(on(MaxSkip, src=0), on(SkipSep3, src=1), on(SkipSep3, src=2), on(SkipDil3, src=3), k=2)
N5        -> pick(on(SkipSep3, src=0), on(MaxSkip, src=1), on(SkipDil3, src=2), on(Dilated, src=3),
                  on(Dilated, src=4), k=2)

Reduction -> darts_cell(R2, R3, R4, R5)
R2        -> pick(on(MaxAvg, src=0), on(MaxDil3, src=1), k=2)
R3        -> pick(on(MaxAvg, src=0), on(MaxAvg, src=1), on(SkipDil5, src=2), k=2)
R4        -> pick(on(MaxAvg, src=0), on(MaxSep3, src=1), on(SkipDil3, src=2), on(SkipDil5, src=3), k=2)
R5        -> pick(on(MaxAvg, src=0), on(MaxAvg, src=1), on(SkipDil5, src=2), on(SkipDil5, src=3),
                  on(SkipDil5, src=4), k=2)

SkipDil3  -> skip_connect | dil_conv_3x3
SkipDil5  -> skip_connect | dil_conv_5x5
SkipSep3  -> skip_connect | sep_conv_3x3
MaxSkip   -> max_pool_3x3 | skip_connect
MaxAvg    -> max_pool_3x3 | avg_pool_3x3
MaxDil3   -> max_pool_3x3 | dil_conv_3x3
MaxSep3   -> max_pool_3x3 | sep_conv_3x3
Dilated   -> dil_conv_3x3 | dil_conv_5x5

level cell: Normal, Reduction
level op: SkipDil3, SkipDil5, SkipSep3, MaxSkip, MaxAvg, MaxDil3, MaxSep3, Dilated
"""

SKIP_DIL3, SKIP_DIL5 = ("skip_connect", "dil_conv_3x3"), ("skip_connect", "dil_conv_5x5")
SKIP_SEP3, MAX_SKIP = ("skip_connect", "sep_conv_3x3"), ("max_pool_3x3", "skip_connect")
MAX_AVG, DILATED = ("max_pool_3x3", "avg_pool_3x3"), ("dil_conv_3x3", "dil_conv_5x5")

S1_NORMAL: Mapping[int, tuple[tuple[str, str], ...]] = {
    2: (SKIP_DIL3, SKIP_DIL5),
    3: (SKIP_DIL5, SKIP_SEP3, SKIP_DIL3),
    4: (MAX_SKIP, SKIP_SEP3, SKIP_SEP3, SKIP_DIL3),
    5: (SKIP_SEP3, MAX_SKIP, SKIP_DIL3, DILATED, DILATED),
}
"""The operations of S1's normal cell: node -> one pair for each source."""

S1_REDUCTION: Mapping[int, tuple[tuple[str, str], ...]] = {
    2: (MAX_AVG, ("max_pool_3x3", "dil_conv_3x3")),
    3: (MAX_AVG, MAX_AVG, SKIP_DIL5),
    4: (MAX_AVG, ("max_pool_3x3", "sep_conv_3x3"), SKIP_DIL3, SKIP_DIL5),
    5: (MAX_AVG, MAX_AVG, SKIP_DIL5, SKIP_DIL5, SKIP_DIL5),
}
"""The operations of S1's reduction cell."""


def relaxed_s1() -> Term:
    """Return S1's cells with two operations on every edge."""
    return relaxed(lambda node, source: S1_NORMAL[node][source], lambda node, source: S1_REDUCTION[node][source])


def relaxed_same(operations: tuple[str, ...]) -> Term:
    """Return both cells with the same operations on every edge."""
    return relaxed(lambda node, source: operations, lambda node, source: operations)


SIZES = {
    "search": SEARCH,
    "evaluation": EVALUATION,
    "small": {"cells": 8, "channels": 16, "auxiliary": True},  # as the papers evaluate on CIFAR-100 and SVHN
    "imagenet": IMAGENET,
}

S1 = Space(
    "s1",
    "DARTS with two preselected operations on every edge",
    GRAMMAR_S1,
    skeleton=network,
    sizes=SIZES,
    cells=CELLS,
    relaxed=relaxed_s1,
)
S2 = Space(
    "s2",
    "DARTS with skip connection or separable convolution",
    GRAMMAR_S2,
    skeleton=network,
    sizes=SIZES,
    cells=CELLS,
    relaxed=partial(relaxed_same, ("skip_connect", "sep_conv_3x3")),
)
S3 = Space(
    "s3",
    "DARTS with none, skip connection or separable convolution",
    GRAMMAR_S3,
    skeleton=network,
    sizes=SIZES,
    cells=CELLS,
    relaxed=partial(relaxed_same, ("none", "skip_connect", "sep_conv_3x3")),
)
S4 = Space(
    "s4",
    "DARTS with noise or separable convolution",
    GRAMMAR_S4,
    skeleton=network,
    sizes=SIZES,
    cells=CELLS,
    relaxed=partial(relaxed_same, ("noise", "sep_conv_3x3")),
)

__all__ = ["S1", "S1_NORMAL", "S1_REDUCTION", "S2", "S3", "S4"]
