"""The torch meaning: a program as one flat module."""
