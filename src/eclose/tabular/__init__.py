"""Benchmarks that are tables: the score of a term is looked up, not trained.

`tabular_task("cifar10@12->200")` is a search that is judged by 12 epochs of training and reported at 200.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eclose.tabular.tasks import TableEvaluator, TabularTask, tabular_task

__all__ = ["TableEvaluator", "TabularTask", "tabular_task"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from eclose.tabular import tasks

        return getattr(tasks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
