"""Meanings: what a term is as a program, a torch module, a graph, a cost, a drawing, numpy, source text."""
