"""Readers of data sets as their authors publish them. Nothing read is unpickled freely or evaluated."""
