"""Tasks by name: what ships and what a user registers.

A name may carry options behind a colon: `digits:permuted=pixels,subset=500`, `tabular:cifar10@12->200`. The entries
are functions that build a task; they are imported on first use, so listing the catalogue imports nothing.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from eclose.algebra.catalogue import Catalogue
from eclose.algebra.errors import RequestError, did_you_mean
from eclose.tasks.definition import Task, TaskSpec

TASKS: Catalogue[Callable[..., Any]] = Catalogue("task")
for _name, _reference, _description in (
    ("digits", "images:digits", "1,797 handwritten digits, 8x8 grey; ships with the package"),
    ("cifar10", "images:cifar10", "60,000 photographs, 32x32 RGB, 10 classes"),
    ("cifar100", "images:cifar100", "60,000 photographs, 32x32 RGB, 100 classes"),
    ("svhn", "images:svhn", "99,289 house numbers, 32x32 RGB, 10 classes"),
    ("imagenet16-120", "images:imagenet16_120", "157,700 photographs, 16x16 RGB, the first 120 ImageNet classes"),
    ("imagenet", "images:imagenet", "ImageNet from class folders, read item by item"),
    ("mnist", "images:mnist", "70,000 handwritten digits, 28x28 grey"),
    ("fashion-mnist", "images:fashion_mnist", "70,000 pieces of clothing, 28x28 grey, 10 classes"),
):
    TASKS.add(_name, f"eclose.tasks.{_reference}", _description)
TASKS.add(
    "tabular",
    "eclose.tabular:tabular_task",
    "a table instead of training: tabular:cifar10@12->200, tabular:cifar100@200, tabular:imagenet16-120@12->200",
)


def task(name: str, **options: Any) -> Any:
    """Return the task of a name: a `Task`, or for `tabular:` names a `TabularTask`.

    Args:
        name: as in `TASKS`, with options behind a colon if need be: `digits:permuted=pixels,noise=0.1`.
        **options: the same options as keyword arguments; these win.
    """
    if not isinstance(name, str):
        raise RequestError(f"a task's name is a text such as 'digits', not {name!r}")
    head, colon, rest = name.partition(":")
    build = TASKS.get(head)
    positional, written = parse_options(rest, name) if colon else ([], {})
    arguments = {**written, **options}
    parameters = inspect.signature(build).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for key in arguments:
        if key not in parameters and not open_ended:
            known = ", ".join(key for key, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY)
            hint = did_you_mean(key, parameters)
            raise RequestError(f"task {head!r} has no option {key!r}{hint} (options: {known or 'none'})")
    takes = sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in parameters.values())
    if len(positional) > takes:
        raise RequestError(f"task {head!r} does not understand {positional[takes]!r}; options are written key=value")
    built = build(*positional, **arguments)
    if isinstance(built, Task):
        built.spec = TaskSpec(name, dict(options))
    return built


def parse_options(text: str, name: str) -> tuple[list[str], dict[str, Any]]:
    """Return what stands behind a task's colon: plain words, and `key=value` pairs with their values read."""
    positional, pairs = [], {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        key, equals, value = item.partition("=")
        if not equals:
            positional.append(item)
        elif key.strip() in pairs:
            raise RequestError(f"the task name {name!r} gives {key.strip()!r} twice")
        else:
            pairs[key.strip()] = read_value(value.strip())
    return positional, pairs


def read_value(text: str) -> Any:
    """Return a written value: true, false, none, a number, or the text itself."""
    lowered = text.lower()
    if lowered in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[lowered]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def rebuilt(spec: TaskSpec, searching: int) -> Any:
    """Build a task in another process; equal requests give one object there, so that data are read once."""
    key = json.dumps(sorted(spec.options.items()), default=str)
    return _rebuilt(spec.name, key, _Options(spec.options), searching)


class _Options:
    """Options carried past the cache's key, which holds their text."""

    def __init__(self, options: Any):
        self.options = options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4)
def _rebuilt(name: str, key: str, options: _Options, searching: int) -> Any:
    built = task(name, **options.options)
    built._searching = searching
    return built


__all__ = ["TASKS", "parse_options", "read_value", "rebuilt", "task"]
