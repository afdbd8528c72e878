"""What a long selection remembers in a file, so that one that was killed goes on from there with the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import nn

from eclose.runs import CheckpointFile
from eclose.runs.errors import writing
from eclose.train.training import load_state, save_state


class Memory:
    """The state of a selection: kept in a file, or nowhere without one.

    A file of another selection, with other settings or of another supernet, is left out.

    Args:
        path: the file, or None.
        key: what the state belongs to, as plain data.
    """

    def __init__(self, path: Path | None, key: Mapping[str, Any]):
        self.key = dict(key)
        self.file: CheckpointFile | None = None
        if path is not None:
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            self.file = CheckpointFile(path, save_state, load_state)

    def read(self) -> Any:
        """Return what was kept last, or None."""
        kept = self._kept()
        return None if kept is None or kept["finished"] else kept["content"]

    def write(self, content: Any) -> None:
        """Keep a state."""
        if self.file is not None:
            self.file.write({"key": self.key, "finished": False, "content": content})

    def finished(self) -> Any:
        """Return the result of a selection that came to its end, or None."""
        kept = self._kept()
        return kept["content"] if kept is not None and kept["finished"] else None

    def finish(self, content: Any) -> None:
        """Keep the result alone: the state on the way is not needed any more."""
        if self.file is not None:
            self.file.write({"key": self.key, "finished": True, "content": content})
            with writing(self.file.previous):
                self.file.previous.unlink(missing_ok=True)

    def _kept(self) -> Any:
        return None if self.file is None else self.file.read(self._misfit)

    def _misfit(self, content: Any) -> str:
        return "" if content.get("key") == self.key else "belongs to another selection"


def fingerprint(net: nn.Module) -> str:
    """Return a text that another state of a network would not have."""
    found = sha256()
    for name, tensor in net.state_dict().items():
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


__all__ = ["Memory", "fingerprint"]
