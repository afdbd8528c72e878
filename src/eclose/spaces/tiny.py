"""A small space of whole convolutional networks for first steps: good on 8x8 digits after seconds of training.

Its terms are whole networks, so what is searched, drawn and built is one and the same text.
"""

from __future__ import annotations

from eclose.algebra.shapes import Classes
from eclose.spaces._space import Space

GRAMMAR = """
Net   -> Sequential(stem(channels={16, 24, 32}), Stage, Down, Stage, head)
Stage -> Block | Sequential(Block, Block)
Block -> Op
       | Residual(Op, id, Op)
       | Parallel(Op, Op)
Down  -> resBlock
       | Sequential(max_pool(kernel=2, stride=2), conv(channels={32, 48, 64}))
Op    -> conv(kernel={1, 3, 5}) [3]
       | sep_conv(kernel={3, 5}) [2]
       | avg_pool
level stage: Stage, Down
level block: Block
level op: Op
"""

TINY = Space(
    "tiny",
    "small convolutional networks, for first steps",
    GRAMMAR,
    input=(1, 8, 8),
    output=Classes(10),
)

__all__ = ["GRAMMAR", "TINY"]
