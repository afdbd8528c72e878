"""The settings of a selection: checked against its defaults, by name and kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from eclose.algebra.errors import RequestError, did_you_mean

Settings = TypeVar("Settings")

KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def with_settings(defaults: Settings, given: Mapping[str, Any], by: str) -> Settings:
    """Return settings with some values replaced.

    Args:
        defaults: a dataclass of numbers, texts and truth values; None stands for "as it comes" and takes a truth value.
        given: the values.
        by: the selection's name, for messages.
    """
    known = {entry.name: getattr(defaults, entry.name) for entry in fields(defaults)}  # type: ignore[arg-type]
    found = {}
    for key, value in given.items():
        if key not in known:
            names = f" (settings: {', '.join(known)})" if known else ""
            raise RequestError(f"the selection {by} has no setting {key!r}{did_you_mean(key, known)}{names}")
        kind = bool if known[key] is None else type(known[key])
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not kind:
            example = "" if known[key] is None else f" such as {known[key]!r}"
            raise RequestError(f"{key} is {KINDS[kind]}{example}, not {value!r}")
        found[key] = value
    return replace(defaults, **found)  # type: ignore[type-var]


def refuse_unknown(value: str, known: tuple[str, ...], key: str) -> None:
    """Raise where a setting is none of its names."""
    if value not in known:
        raise RequestError(f"{key} is {' or '.join(map(repr, known))}, not {value!r}{did_you_mean(value, known)}")


def refuse_below(value: float, least: float, key: str) -> None:
    """Raise where a number is too small."""
    if not value >= least:
        raise RequestError(f"{key} is at least {least:g}, not {value!r}")


__all__ = ["refuse_below", "refuse_unknown", "with_settings"]
