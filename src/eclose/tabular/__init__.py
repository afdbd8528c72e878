"""Benchmarks that are tables: the score of a term is looked up, not trained."""
