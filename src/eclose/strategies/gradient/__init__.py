"""Gradient-based search: relaxed supernets, how their decisions are weighted, updated and taken."""
