"""Encoders and decoders with skips between them, for dense prediction (Ronneberger et al., 2015).

A level works at one resolution: a block, then perhaps what lies below (down, a level of its own, up again) merged with
a skip, then a block. How deep the network goes, how it merges and what stands in the blocks is searched; channels
double with each level. Terms are whole networks.
"""

from __future__ import annotations

from eclose.algebra.shapes import Map
from eclose.spaces._space import Space

GRAMMAR = """
Net    -> Sequential(stem(channels=16), Level0, head)
Level0 -> Sequential(Block, Below0, Block)
Level1 -> Block | Sequential(Block, Below1, Block)
Level2 -> Block | Sequential(Block, Below2, Block)
Level3 -> Block
# What comes back from below is added to the skip, or put beside it and brought back to the level's channels.
Below0 -> Parallel(Sequential(resBlock, Level1, up), Skip)
        | Sequential(Parallel(Sequential(resBlock, Level1, up), Skip, merge="concat"), conv(kernel={1, 3}, channels=16))
Below1 -> Parallel(Sequential(resBlock, Level2, up), Skip)
        | Sequential(Parallel(Sequential(resBlock, Level2, up), Skip, merge="concat"), conv(kernel={1, 3}, channels=32))
Below2 -> Parallel(Sequential(resBlock, Level3, up), Skip)
        | Sequential(Parallel(Sequential(resBlock, Level3, up), Skip, merge="concat"), conv(kernel={1, 3}, channels=64))
Skip   -> id | conv(kernel=1)
Block  -> Op | Sequential(Op, Op) | Residual(Op, id, Op)
Op     -> conv(kernel={3, 5}) [2] | conv(dilation=2) | sep_conv(kernel={3, 5})
level level: Level0, Level1, Level2, Level3
level block: Block
level op: Op, Skip
"""

UNET = Space(
    "unet",
    "encoders and decoders with skips, for maps",
    GRAMMAR,
    input=(1, 32, 32),
    output=Map(1),
)

__all__ = ["GRAMMAR", "UNET"]
