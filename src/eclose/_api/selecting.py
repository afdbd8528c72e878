"""`eclose.select`: another architecture from the supernet of a gradient run, without searching again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eclose._api.drivers import Watch
from eclose._api.gradient_runs import opened
from eclose._api.requests import refuse_unwritable
from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.reading import parse
from eclose.algebra.terms import Term

FOLDER = "selections"
CONSTRAINTS = ("most_skips", "least_features")
OF_RECIPE: dict[str, tuple[str, ...]] = {
    "magnitude": CONSTRAINTS,
    "perturbation": CONSTRAINTS,
    "sampled": ("samples",),
    "finetune": CONSTRAINTS,
}
"""Settings of the search's recipe that a selection may replace; all others are the selection's own."""
WITHOUT_SETTINGS = ("magnitude", "sampled")
"""The selections that have no settings of their own; the others check theirs themselves."""


@dataclass(frozen=True)
class Selected:
    """What a selection found.

    Attributes:
        term: the architecture.
        score: of it with the supernet's weights, on the data of the alphas.
        steps: what was decided when and why, as plain data.
        path: the file that holds this.
        by: the selection's name.
        epoch: finished epochs of the search at the checkpoint that it began with.
        seconds: that it took.
    """

    term: Term
    score: float
    steps: tuple[dict[str, Any], ...]
    path: Path
    by: str
    epoch: int
    seconds: float


def select(
    run: Any,
    by: str = "magnitude",
    *,
    epoch: int | None = None,
    task: Any = None,
    device: str | None = None,
    watch: Watch | None = None,
    name: str | None = None,
    **settings: Any,
) -> Selected:
    """Select an architecture from the supernet of a gradient run, finished or not.

    The run itself is not changed; the result is `selections/NAME.json` in its folder. A selection that was interrupted
    goes on when it is asked for again, and one that is done is read again.

    Args:
        run: its folder, or what a search returned.
        by: `"magnitude"`, `"perturbation"`, `"sampled"` or `"finetune"`.
        epoch: finished epochs of the checkpoint to begin with; the last that was kept without.
        task: the task again, where it was given from Python.
        device: where; the GPU where there is one.
        watch: told what happens.
        name: of the result; `BY-epoch-0050` without.
        settings: of the selection: `interval=`, `criterion=`, ...; `most_skips=`, `least_features=` and `samples=`
            replace those of the search.
    """
    from eclose.strategies.gradient.selection import SELECTIONS
    from eclose.strategies.gradient.selection import select as selection
    from eclose.strategies.gradient.selection.memory import fingerprint

    if by not in SELECTIONS:
        there = [entry.name for entry in SELECTIONS]
        raise RequestError(f"unknown selection {by!r}{did_you_mean(str(by), there)} (selections: {', '.join(there)})")
    if name is not None and not re.fullmatch(r"[\w][\w.+-]*", name):
        raise RequestError(f"name= is the name of a file without its ending, of letters and digits, not {name!r}")
    if epoch is not None and (isinstance(epoch, bool) or not isinstance(epoch, int)):
        raise RequestError(f"epoch= is a whole number of finished epochs, not {epoch!r}")
    found = opened(folder_of(run), task=getattr(run, "task", None) if task is None else task, device=device)
    search, known = found.search, OF_RECIPE.get(by, ())
    recipe = search.recipe.with_settings({key: value for key, value in settings.items() if key in known})
    own = {key: value for key, value in settings.items() if key not in known}
    if own and by in WITHOUT_SETTINGS:
        key = next(iter(own))
        raise RequestError(
            f"the selection {by} has no setting {key!r}{did_you_mean(key, known)} (settings: {', '.join(known)})"
        )
    context = found.context(epoch, **own)
    epoch = found.last if epoch is None else epoch
    path = found.run.path / FOLDER / f"{name or f'{by}-epoch-{epoch:04d}'}.json"
    asked = {"by": by, "epoch": epoch, "settings": {key: settings[key] for key in sorted(settings)}}
    state = fingerprint(context.supernet.net)
    kept = _kept(path, asked)
    if kept is not None and kept.get("supernet") == state:  # a search that went back has written its checkpoints anew
        return _selected(kept, path)
    refuse_unwritable(path if path.parent.is_dir() else path.parent)
    context = replace(context, recipe=recipe, watch=watch, state=path.with_suffix(".pt"))
    began = time.monotonic()
    with found.parts.task.searching():
        chosen = selection(by, context)
    content = {
        "kind": "selection",
        **asked,
        "supernet": state,
        "term": str(chosen.term),
        "seconds": time.monotonic() - began,
        "steps": list(chosen.steps),
        "score": chosen.score if chosen.score == chosen.score else None,
    }
    _written(path, content)
    return _selected(content, path)


def folder_of(run: Any) -> Path:
    """Return the folder of a run that is given by it or as what a search returned."""
    if isinstance(run, str | Path):
        return Path(run)
    path = getattr(run, "path", None)
    if path is None:
        raise RequestError("a selection needs the folder of a run (out= of the search): its checkpoints lie there")
    return Path(path)


def _kept(path: Path, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a result that is there already, and refuse one of another request."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text())
        same = {key: content[key] for key in asked} == asked and isinstance(content["term"], str)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RequestError(f"{path} is no result of a selection ({error}); remove it or give another name=") from None
    if not same:
        was = ", ".join(f"{key}={value!r}" for key, value in content["settings"].items()) or "no settings"
        raise RequestError(
            f"{path} holds the selection {content['by']} after {content['epoch']} epochs with {was}; "
            "give this one another name="
        )
    return dict(content)


def _written(path: Path, content: Mapping[str, Any]) -> None:
    from eclose.runs import CheckpointFile, write_text

    path.parent.mkdir(exist_ok=True)
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")
    CheckpointFile(path.with_suffix(".pt"), None, None).remove()


def _selected(content: Mapping[str, Any], path: Path) -> Selected:
    score = content["score"]
    return Selected(
        parse(content["term"]), float("nan") if score is None else float(score), tuple(content["steps"]), path,
        content["by"], int(content["epoch"]), float(content["seconds"]),
    )  # fmt: skip


__all__ = ["Selected", "folder_of", "select"]
