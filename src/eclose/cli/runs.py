"""Commands over run folders: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eclose.cli.language import JsonOption
from eclose.cli.main import app
from eclose.cli.output import as_json, text

RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The run's folder.")]


@app.command()
def report(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option("--out", help="Another file than report.html in the folder.")] = None,
    json: JsonOption = False,
) -> None:
    """Write the report of a run, finished or not."""
    from eclose.report import write_report

    path = write_report(run, out)
    if json:
        as_json({"report": str(path)})
    else:
        text(str(path))
