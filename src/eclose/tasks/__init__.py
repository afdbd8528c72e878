"""Tasks: data sets and generators with a loss and a metric, and a user's own data."""

from eclose.tasks.definition import Task, TaskSpec
from eclose.tasks.losses import LOSSES, Loss
from eclose.tasks.metrics import METRICS, Metric
from eclose.tasks.names import TASKS, task
from eclose.tasks.parts import Part

__all__ = ["LOSSES", "METRICS", "TASKS", "Loss", "Metric", "Part", "Task", "TaskSpec", "task"]
