"""Transformers over tokens (Vaswani et al., 2017), with convolutions among what may mix the positions.

The `transformer` space sees whole sequences, for classes or a label at every position; in `transformer-causal` a
position sees only those before it, as predicting the next token needs. Terms are whole networks.
"""

from __future__ import annotations

from eclose.algebra.shapes import Classes, Tokens
from eclose.spaces._space import Space

GRAMMAR = """
Net    -> Sequential(embedding(channels=64), Layers, norm, head)
Layers -> Sequential(Layer, Layer)
        | Sequential(Layer, Layer, Layer)
        | Sequential(Layer, Layer, Layer, Layer)
Layer  -> Sequential(Mix, Feed)
Mix    -> Parallel(Sequential(norm, Mixer), id)          # normalised before
        | Sequential(Parallel(Mixer, id), norm)          # or after
Feed   -> Parallel(Sequential(norm, Map), id)
        | Sequential(Parallel(Map, id), norm)
Mixer  -> attention(heads={2, 4, 8}) [3]
        | conv(kernel={3, 5, 7})
        | sep_conv(kernel={3, 5, 7})
Map    -> mlp(ratio={1, 2, 4}, activation={"gelu", "relu", "silu"})
level layer: Layer
level block: Mix, Feed
level op: Mixer, Map
"""

GRAMMAR_CAUSAL = """
Net    -> Sequential(embedding(channels=64), Layers, norm, head)
Layers -> Sequential(Layer, Layer)
        | Sequential(Layer, Layer, Layer)
        | Sequential(Layer, Layer, Layer, Layer)
Layer  -> Sequential(Mix, Feed)
Mix    -> Parallel(Sequential(norm, Mixer), id)
        | Sequential(Parallel(Mixer, id), norm)
Feed   -> Parallel(Sequential(norm, Map), id)
        | Sequential(Parallel(Map, id), norm)
Mixer  -> attention(heads={1, 2, 4, 8}, causal=true)
Map    -> mlp(ratio={1, 2, 4}, activation={"gelu", "relu", "silu"})
level layer: Layer
level block: Mix, Feed
level op: Mixer, Map
"""

TRANSFORMER = Space(
    "transformer",
    "transformers with attention or convolutions, for tokens",
    GRAMMAR,
    input=Tokens(32, 64),
    output=Classes(2),
)

TRANSFORMER_CAUSAL = Space(
    "transformer-causal",
    "transformers that see only what came before, for predicting tokens",
    GRAMMAR_CAUSAL,
    input=Tokens(32, 64),
    output=Tokens(vocab=64),
)

__all__ = ["GRAMMAR", "GRAMMAR_CAUSAL", "TRANSFORMER", "TRANSFORMER_CAUSAL"]
