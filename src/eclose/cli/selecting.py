"""The command that selects an architecture from the supernet of a run: select."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eclose.cli.language import JsonOption
from eclose.cli.main import app
from eclose.cli.output import as_json, note, table, text
from eclose.cli.progress import Stopped, Watcher
from eclose.cli.runs import RunArgument
from eclose.cli.searching import DeviceOption, SetOption, read_settings


@app.command()
def select(
    run: RunArgument,
    by: Annotated[str, typer.Option("--by", help="magnitude, perturbation, sampled or finetune.")] = "magnitude",
    epoch: Annotated[
        int | None, typer.Option("--epoch", help="Finished epochs of the checkpoint to begin with; the last without.")
    ] = None,
    settings: SetOption = None,
    name: Annotated[str | None, typer.Option("--name", help="Of the file in the run's folder selections/.")] = None,
    device: DeviceOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the term to this file too.")] = None,
    json: JsonOption = False,
) -> None:
    """Select an architecture from the supernet of a gradient run, finished or not."""
    from eclose._api.requests import refuse_unwritable
    from eclose._api.selecting import select as run_selection
    from eclose.algebra.errors import RequestError
    from eclose.cli.output import write_file

    given = read_settings(settings)
    for key in ("by", "epoch", "name", "device", "task", "watch"):
        if key in given:
            raise RequestError(f"{key} is no setting of a selection; see `eclose select --help`")
    if out is not None:
        refuse_unwritable(out)
    try:
        with Watcher(quiet=json) as watch:
            found = run_selection(run, by, epoch=epoch, device=device, watch=watch, name=name, **given)
    except Stopped as error:
        raise Stopped("interrupted; the same command goes on from where it was") from error
    if out is not None:
        write_file(out, f"{found.term}\n")
    if json:
        as_json(
            {"by": found.by, "epoch": found.epoch, "term": str(found.term), "score": found.score,
             "steps": list(found.steps), "path": str(found.path)}
        )  # fmt: skip
        return
    rows = [("selected by", found.by), ("after epochs", found.epoch), ("score in the supernet", f"{found.score:.6g}")]
    table(rows, right=(1,))
    text(str(found.term))
    note(f"result: {found.path}")
