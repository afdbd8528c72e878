"""Tasks: data sets and generators with a loss and a metric, and a user's own data."""
