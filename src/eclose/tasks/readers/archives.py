"""Numpy archives (`.npz`), read without pickles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError
from eclose.tasks.checks import one_line


def read_npz(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return the named arrays of an archive; a damaged or different file is one clear line."""
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if not hasattr(loaded, "files"):
            raise RequestError(f"{path} is a single array, not an archive of arrays; fetch it again")
        with loaded as archive:
            missing = [name for name in names if name not in archive]
            if missing:
                raise RequestError(f"{path} has no array {missing[0]!r} (it has: {', '.join(archive.files)})")
            return {name: archive[name] for name in names}
    except RequestError:
        raise
    except Exception as error:  # a damaged archive raises almost anything
        raise RequestError(f"{path} is damaged ({one_line(error)}); fetch it again") from None


__all__ = ["read_npz"]
