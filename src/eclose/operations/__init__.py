"""Torch modules that a term's layers become; they know nothing of terms."""
