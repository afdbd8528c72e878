"""The command that checks the gradients of a strategy: check-gradients."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eclose.cli.language import JsonOption
from eclose.cli.main import app
from eclose.cli.output import as_json, note, table, text
from eclose.cli.searching import SetOption, read_settings


@app.command("check-gradients")
def check_gradients(
    strategy: Annotated[str, typer.Argument(metavar="STRATEGY", help="A strategy that trains a supernet.")],
    space: Annotated[str, typer.Argument(metavar="SPACE", help="A space, or a file with a grammar.")],
    seed: Annotated[int, typer.Option(help="Of weights, alphas, data and draws.")] = 0,
    entries: Annotated[int, typer.Option(help="How many alphas are checked.")] = 12,
    samples: Annotated[int, typer.Option(help="Draws of which a mean is taken.")] = 1000,
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Check that the gradient which moves a strategy's alphas is what it should be, on a small supernet."""
    from eclose._api.requests import space_or_file
    from eclose.strategies.gradient.checking import check_gradients as check

    found = check(
        strategy, space_or_file(space), seed=seed, entries=entries, samples=samples, settings=read_settings(settings)
    )
    if json:
        as_json(found.plain())
    else:
        _told(found)
    if not found.passed:
        raise typer.Exit(1)


def _told(found: Any) -> None:
    text(f"{found.strategy} on {found.space}: {found.kind}")
    text(found.method)
    if not found.entries:
        return
    text(found.supernet)
    rows = [
        (entry.quantity, entry.choice, entry.alternative, f"{entry.estimator:.6e}", f"{entry.reference:.6e}",
         f"{entry.difference:.1e}", f"{entry.tolerance:.1e}", "agrees" if entry.passed else "DIFFERS")
        for entry in found.entries
    ]  # fmt: skip
    heads = ("quantity", "choice", "alternative", "estimator", "reference", "difference", "allowed", "verdict")
    table(rows, heads, right=(3, 4, 5, 6))
    failed = sum(not entry.passed for entry in found.entries)
    text(f"{failed} of {len(rows)} differ" if failed else f"all {len(rows)} agree")
    for remark in found.notes:
        note(remark)
