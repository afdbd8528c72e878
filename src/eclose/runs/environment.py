"""What a run's bits depend on besides its request: versions, threads, BLAS, the processor.

Nothing heavy is imported to find out: versions come from the installed packages' own records.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PACKAGES = ("eclose", "torch", "numpy", "optuna")
BITS = ("torch", "numpy")  # packages whose version changes results
CAPABILITIES = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "asimd", "sve")

Environment = dict[str, Any]


def environment(threads: int | None = None) -> Environment:
    """Describe this process.

    Args:
        threads: threads that compute one trial; without, what the environment variables or the processor say.
    """
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "threads": threads if threads is not None else default_threads(),
        "blas": _blas(),
        "processor": _processor(),
        "system": platform.system(),
        "machine": platform.machine(),
    }


def default_threads() -> int:
    """Return the number of threads that numerical libraries use unless told otherwise."""
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        given = os.environ.get(variable, "").split(",")[0].strip()
        if given.isdigit() and int(given) > 0:
            return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what changed between two environments that may change a run's bits, as texts for a person."""
    pairs: list[tuple[str, Any, Any]] = [
        ("threads", before.get("threads"), now.get("threads")),
        ("BLAS", before.get("blas"), now.get("blas")),
        ("system", before.get("system"), now.get("system")),
        ("machine", before.get("machine"), now.get("machine")),
        (
            "processor features",
            before.get("processor", {}).get("features"),
            now.get("processor", {}).get("features"),
        ),
    ]
    for package in ("python", *BITS):
        old, new = before.get("versions", {}).get(package), now.get("versions", {}).get(package)
        if package == "python" and old and new:
            old, new = old.rpartition(".")[0], new.rpartition(".")[0]
        pairs.append((package, old, new))
    return [f"{what} was {_spoken(old)}, is {_spoken(new)}" for what, old, new in pairs if old != new]


def _spoken(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _blas() -> str:
    try:
        import numpy
    except ImportError:
        return ""
    configuration: Any = numpy.show_config(mode="dicts")
    blas = configuration.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _processor() -> dict[str, Any]:
    """Return the processor's name and those of its features that numerical libraries choose code by."""
    name, features = platform.processor() or platform.machine(), set()
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        text = ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = value.strip()
        elif key.strip() in ("flags", "Features"):
            features.update(value.split())
    return {"name": name, "features": [feature for feature in CAPABILITIES if feature in features]}
