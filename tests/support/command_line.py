"""The command line as a user has it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def eclose(*arguments: str, folder: Path | None = None, timeout: float = 120, **variables: str):
    """Run `eclose` and return the finished process; a traceback fails the test that asked."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ECLOSE_DATA": "", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "eclose", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=timeout,
        env=environment,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def refused(*arguments: str, folder: Path | None = None) -> str:
    """Run `eclose` with a wrong request; return its one line."""
    done = eclose(*arguments, folder=folder)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("eclose: ")
    return lines[0]
