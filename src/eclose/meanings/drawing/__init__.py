"""Terms as pictures: SVG for pages and files, outlines for terminals."""

from eclose.meanings.drawing.drawing import draw
from eclose.meanings.drawing.text import text_drawing

__all__ = ["draw", "text_drawing"]
