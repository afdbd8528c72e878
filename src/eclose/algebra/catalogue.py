"""Catalogues: named things that ship or that a user registers - spaces, tasks, strategies, protocols.

An entry is the thing itself or a `"module:name"` text imported on first use, so listing a catalogue imports nothing.
One catalogue a kind of thing; adding an entry is one call and no branch in anybody's code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from eclose.algebra.declarations import resolve
from eclose.algebra.errors import RequestError, did_you_mean

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Entry(Generic[Thing]):
    """One named thing with its line of description."""

    name: str
    description: str
    thing: Thing | str  # a text is imported on first use


class Catalogue(Generic[Thing]):
    """Things of one kind by name.

    Args:
        kind: what a thing is called in messages: `"space"`, `"task"`, ...
    """

    def __init__(self, kind: str):
        self.kind = kind
        self._entries: dict[str, Entry[Thing]] = {}

    def add(self, name: str, thing: Thing | str, description: str) -> None:
        """Add a thing; a name that is taken is refused."""
        if name in self._entries:
            raise RequestError(f"the {self.kind} {name!r} exists already")
        self._entries[name] = Entry(name, description, thing)

    def get(self, name: str) -> Thing:
        """Return a thing by name."""
        entry = self._entries.get(name)
        if entry is None:
            hint = did_you_mean(name, self._entries) or f" (known: {', '.join(sorted(self._entries))})"
            raise RequestError(f"unknown {self.kind} {name!r}{hint}")
        if isinstance(entry.thing, str):
            entry = Entry(entry.name, entry.description, resolve(entry.thing))
            self._entries[name] = entry
        return entry.thing  # type: ignore[return-value]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Entry[Thing]]:
        return iter(sorted(self._entries.values(), key=lambda entry: entry.name))

    def __len__(self) -> int:
        return len(self._entries)


__all__ = ["Catalogue", "Entry"]
