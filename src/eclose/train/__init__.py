"""Training: one loop, schedules, protocols, whole-step capture."""
