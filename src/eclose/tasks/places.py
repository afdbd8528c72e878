"""Where data sets lie on disk, and what to say when one is not there.

A data set has layouts: the official files of its home page in their usual folders, or a compact `.npz` form. It is
looked for under `data=`, else under `ECLOSE_DATA` and `~/.cache/eclose`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError

VARIABLE = "ECLOSE_DATA"


@dataclass(frozen=True)
class Layout:
    """One form in which a data set lies on disk.

    Attributes:
        folders: where the files may be, relative to the data folder.
        files: their names; each may also be there with `.gz` behind it where `zipped`.
        read: folder -> what the files hold.
        about: what to call this form in a message.
        zipped: whether `.gz` files are read too.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]
    read: Callable[[Path], Any]
    about: str = ""
    zipped: bool = False

    def missing(self, folder: Path) -> list[str]:
        """Return the files that a folder lacks."""
        return [name for name in self.files if actual(folder, name, self.zipped) is None]

    def stamps(self, folder: Path) -> tuple[tuple[int, int], ...]:
        """Return size and time of every file, which change when a file is fetched again."""
        found = (actual(folder, name, self.zipped) for name in self.files)
        states = (path.stat() for path in found if path is not None)
        return tuple((state.st_size, state.st_mtime_ns) for state in states)


def actual(folder: Path, name: str, zipped: bool = True) -> Path | None:
    """Return the path of a file that may have been compressed, or None."""
    for candidate in (folder / name, *([folder / f"{name}.gz"] if zipped else [])):
        if candidate.exists():
            return candidate
    return None


def roots(data: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders in which data are looked for: the one given, or the usual ones."""
    if data is not None:
        if not isinstance(data, str | os.PathLike):
            raise RequestError(f"data= is the folder where the files are, not {data!r}")
        root = Path(data).expanduser()
        if not root.is_dir():
            raise RequestError(f"the data folder {str(root)!r} does not exist")
        return [root]
    chosen = os.environ.get(VARIABLE)
    return [*([Path(chosen).expanduser()] if chosen else []), Path("~/.cache/eclose").expanduser()]


def locate(name: str, layouts: Sequence[Layout], data: str | os.PathLike[str] | None = None) -> tuple[Layout, Path]:
    """Return the first layout that is complete, with its folder; or say which files go where."""
    searched = roots(data)
    partly = ""
    for root in searched:
        for layout in layouts:
            for inner in (*layout.folders, *(["."] if data is not None else [])):
                folder = root / inner
                if not folder.is_dir():
                    continue
                missing = layout.missing(folder)
                if not missing:
                    return layout, folder
                if len(missing) < len(layout.files) and not partly:
                    partly = f" ({folder} lacks {_listed(missing)})"
    wanted = "; or ".join(
        f"{_listed(layout.files)} in {layout.folders[0]}/{f' ({layout.about})' if layout.about else ''}"
        for layout in layouts
    )
    places = " and ".join(map(str, searched))
    raise RequestError(
        f"the data set {name!r} was not found under {places}{partly}. Put there {wanted}; "
        f"or say where the files are with data= (--data) or {VARIABLE}"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]}, ..., {names[-1]}"


__all__ = ["VARIABLE", "Layout", "actual", "locate", "roots"]
