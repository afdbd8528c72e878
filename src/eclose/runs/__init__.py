"""The run folder: atomic files, events, checkpoints, lock. Knows files, not networks or searches."""

from eclose.runs.checkpoints import CheckpointFile
from eclose.runs.environment import environment
from eclose.runs.errors import RunError
from eclose.runs.events import EventLog, read_events
from eclose.runs.files import replace_file, write_text
from eclose.runs.lock import RunLock
from eclose.runs.run import Run

__all__ = [
    "CheckpointFile",
    "EventLog",
    "Run",
    "RunError",
    "RunLock",
    "environment",
    "read_events",
    "replace_file",
    "write_text",
]
