"""Programs run beside a test: drivers of toy searches, to be killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def driver(folder: Path, trials: int, **settings) -> subprocess.Popen:
    """Start a toy search in a process group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.Popen(
        [sys.executable, "-m", "support.toy_search", json.dumps({"folder": str(folder), "trials": trials, **settings})],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
        preexec_fn=heeding_interrupts,
    )


def heeding_interrupts() -> None:
    """Let Ctrl-C reach a process although the tests themselves may run in the background, where it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(process: subprocess.Popen, lines: int) -> None:
    """Wait until a process has printed so many lines."""
    for _ in range(lines):
        if not process.stdout.readline():
            raise AssertionError(process.stderr.read())


def finish(process: subprocess.Popen) -> str:
    """Wait for a process that is to succeed and return its output."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out
