"""How a study ends other than by finishing."""

from __future__ import annotations


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: everything finished is recorded, and the run can be resumed."""
