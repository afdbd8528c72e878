"""Named spaces: a grammar, a skeleton as a term, and how to derive one from plain numbers."""
