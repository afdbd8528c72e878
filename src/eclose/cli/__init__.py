"""The command line: one line of help a command, one line of error a mistake.

Commands have no logic of their own: they read arguments, call the public functions and print.
"""

from eclose.cli.main import main

__all__ = ["main"]
