"""A term as a flat program of layers with inferred shapes."""
