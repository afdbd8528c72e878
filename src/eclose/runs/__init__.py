"""The run folder: atomic files, events, checkpoints, lock. Knows files, not networks or searches."""
