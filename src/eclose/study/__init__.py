"""Studies: trials, the executors that run them, and the Optuna adapter."""
