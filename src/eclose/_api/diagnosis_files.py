"""The files of diagnoses: `diagnosis/NAME.json` in a run's folder, with the options that they were made with.

A file is written after every row, whole or not at all, so an interrupted diagnosis goes on where it was. What was
measured with other options, or on a checkpoint that has been written again since, does not count.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from eclose.runs.errors import writing
from eclose.runs.files import write_text

FOLDER = "diagnosis"


class DiagnosisFile:
    """One diagnosis of a run.

    Args:
        run: the run's folder.
        kind: the diagnosis' name.
        options: what it depends on, as plain data.

    Attributes:
        content: what is there already, made with the same options; empty without.
        since: when it was written, in the file system's seconds.
    """

    def __init__(self, run: Path, kind: str, options: Mapping[str, Any]):
        self.path, self.kind, self.options = run / FOLDER / f"{kind}.json", kind, dict(options)
        self.content: dict[str, Any] = {}
        self.since = -math.inf
        with suppress(OSError, ValueError):
            found = json.loads(self.path.read_bytes())
            if isinstance(found, dict) and found.get("kind") == kind and found.get("options") == self.options:
                self.content, self.since = found, self.path.stat().st_mtime

    def covers(self, checkpoint: Path) -> bool:
        """Return whether what is there was written after a checkpoint."""
        try:
            return checkpoint.stat().st_mtime <= self.since
        except OSError:
            return True  # the checkpoint was tidied away; what was measured on it stays true

    def write(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Write what was measured, and return it as the file has it: what is no finite number is null."""
        whole: dict[str, Any] = _plain({"kind": self.kind, **content, "options": self.options})
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        self.content = whole
        return whole


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


__all__ = ["FOLDER", "DiagnosisFile"]
