"""What can go wrong with a run on disk, in words: a full disk, a folder that cannot be written, damaged files."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eclose.algebra.errors import EcloseError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class RunError(EcloseError):
    """Work that was asked for rightly and failed: a full disk, a damaged run, a study of which no trial finished."""

    exit_status = 1


def explained(error: OSError, path: Path) -> RunError:
    """Return an operating system's error as one sentence that says what is safe and what to do."""
    if error.errno in FULL:
        return RunError(
            f"the disk is full: {path} could not be written. Nothing recorded before is lost; "
            f"free some space, then resume the run"
        )
    if error.errno in REFUSED:
        return RunError(f"{path} cannot be written ({error.strerror}); choose a folder where you may write")
    return RunError(f"{path} could not be written: {error.strerror or error}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an operating system's error inside the block into a `RunError` about `path`."""
    try:
        yield
    except OSError as error:
        raise explained(error, path) from error
