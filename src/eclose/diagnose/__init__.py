"""Instruments that measure a relaxed search: curvature, landscape, ranks. They take callables and named tensors."""
