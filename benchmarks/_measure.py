"""Timing and recording for the benchmarks: medians of several repeats, with the machine they were measured on."""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("eclose", "torch", "numpy", "optuna")


def seconds(work: Callable[[], Any], repeats: int = 7) -> float:
    """Return the median time of some work."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def ratio(work: Callable[[], Any], baseline: Callable[[], Any], repeats: int = 7) -> tuple[float, float, float]:
    """Return (median ratio, seconds of the work, seconds of the baseline), the two measured in turns."""
    pairs = [(seconds(work, 1), seconds(baseline, 1)) for _ in range(repeats)]
    return (
        statistics.median(a / b for a, b in pairs),
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
    )


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), "")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {
        "processor": model or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": versions,
        "commit": commit or None,
    }


def record(out: Path | None, figures: dict[str, Any]) -> None:
    """Write figures with the machine they were measured on."""
    if out is None:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_suffix(".tmp")
    temporary.write_text(json.dumps({"machine": machine(), **figures}, indent=1) + "\n")
    temporary.replace(out)
    print(f"wrote {out}")
