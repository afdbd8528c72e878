"""Diagnoses: what is measured on a trained supernet. One file each, a function of a `Context` and plain options.

They know nothing of runs, files or tables; results are plain numbers.
"""
