"""Numpy archives (`.npz`), read without pickles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError


def read_npz(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return the named arrays of an archive; a damaged or different file is one clear line."""
    import zipfile
    import zlib

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive]
            if missing:
                raise RequestError(f"{path} has no array {missing[0]!r} (it has: {', '.join(archive.files)})")
            return {name: archive[name] for name in names}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError(f"{path} is damaged ({error}); fetch it again") from None


__all__ = ["read_npz"]
