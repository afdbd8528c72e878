"""Instruments that measure a relaxed search: curvature, landscape, ranks. They take callables and named tensors.

The package bears the name of the public function `eclose.diagnose(run)`, and Python lets an imported package hide it.
So the package can be called, and then is that function.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that can be called."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Diagnose a run; see `eclose._api.diagnosing.diagnose`."""
        return importlib.import_module("eclose._api.diagnosing").diagnose(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
