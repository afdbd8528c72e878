"""Terms, grammars and what can be done with them exactly: pure Python, no tensors."""
