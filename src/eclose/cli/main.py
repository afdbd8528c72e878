"""The entry point: gathers the commands and turns every error into one line and an exit status."""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from eclose.algebra.errors import EcloseError, RequestError
from eclose.cli.output import note

COMMANDS = (
    "language", "lists", "searching", "comparing", "selecting", "diagnosing", "checking", "runs", "demonstration",
)  # fmt: skip

INTERRUPTED = 130

app = typer.Typer(
    name="eclose",
    help="Finds the neural network a data set needs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        import eclose

        sys.stdout.write(f"eclose {eclose.__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    imports: Annotated[
        list[str] | None, typer.Option("--import", help="Import a module with your own registrations first.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Finds the neural network a data set needs."""
    for name in imports or ():
        import_module(name)


_IMPORTED: list[str] = []


def imported() -> tuple[str, ...]:
    """Return the names of the user's modules that were imported, which a run remembers."""
    return tuple(_IMPORTED)


def import_module(name: str) -> None:
    """Import a user's module of registrations."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        importlib.import_module(name)
    except Exception as error:  # whatever a user's module raises
        raise RequestError(f"--import {name}: {type(error).__name__}: {error}") from error
    _IMPORTED.append(name)


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    for module in COMMANDS:
        importlib.import_module(f"eclose.cli.{module}")
    debug = "--debug" in sys.argv
    warnings.showwarning = _warn  # type: ignore[assignment]
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except EcloseError as error:
        _stop(error, debug, getattr(error, "exit_status", 2))
    except (KeyboardInterrupt, typer.Abort) as error:
        _stop(error, debug, INTERRUPTED, str(error) or "interrupted")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on; say nothing
        sys.exit(0)
    except OSError as error:
        _stop(error, debug, 1, f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error: the arguments do not fit the command
            _stop(error, debug, 2, " ".join(error.format_message().split()))
        if debug:
            raise
        note(f"eclose: {type(error).__name__}: {error} (this is a fault of eclose; --debug shows where)")
        sys.exit(1)


def _warn(message: Warning | str, *details: object) -> None:
    """Show a warning as a remark of one line."""
    note("eclose: " + " ".join(str(message).split()))


def _stop(error: BaseException, debug: bool, status: int, message: str | None = None) -> NoReturn:
    if debug:
        import traceback

        traceback.print_exception(error)
    note("eclose: " + " ".join((message or str(error)).splitlines()))
    if status == INTERRUPTED:
        # An interpreter that has seen Ctrl-C inside a library may end by the signal instead of with our status.
        sys.stdout.flush()
        sys.stderr.flush()
        atexit._run_exitfuncs()
        os._exit(status)
    sys.exit(status)
