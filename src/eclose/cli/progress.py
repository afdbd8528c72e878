"""How a long command shows how far it is: a bar with the time left on a terminal, plain lines where it is piped.

Everything goes to standard error, so standard output keeps the result alone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from eclose.algebra.errors import EcloseError
from eclose.cli.output import note


class Stopped(EcloseError):  # noqa: N818 - it names what happened
    """Ctrl-C, with what can be done next."""

    exit_status = 130


EVERY = 10.0  # seconds between plain lines about epochs


class Watcher:
    """Shows what a search, a resumed run or an evaluation tells; use it as a context.

    Args:
        unit: printed behind scores.
        quiet: whether nothing is shown.
        run: the folder to go on with after Ctrl-C.
    """

    def __init__(self, unit: str = "", quiet: bool = False, run: Path | None = None):
        self.unit, self.quiet, self.run = unit, quiet, run
        self._bar: Any = None
        self._task: Any = None
        self._said = 0.0
        self._first: tuple[int, float] | None = None

    def __enter__(self) -> Watcher:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=False)
            self._bar.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if isinstance(error, KeyboardInterrupt):
            begun = self.run is not None and (self.run / "events.jsonl").exists()
            how = f"; continue with `eclose resume {self.run}`" if begun else ""
            raise Stopped(str(error) or f"interrupted{how}") from error

    def __call__(self, kind: str, value: Any) -> None:
        """Show what happened."""
        if self.quiet:
            return
        if kind == "trial":
            self._trial(value)
        elif kind == "epoch":
            self._epoch(*value)
        elif kind == "selection":
            self._selection(*value)
        else:
            self._phase(str(value))

    def _trial(self, progress: Any) -> None:
        done = progress.done + progress.failed
        best = "" if progress.best is None else f"best {self._score(progress.best)}"
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task("trials", total=progress.total, figures="")
            failed = f", {progress.failed} failed" if progress.failed else ""
            self._bar.update(self._task, completed=done, total=progress.total, figures=best + failed)
        elif progress.happened == "finished":
            of = f"/{progress.total}" if progress.total else ""
            trial = progress.trial
            said = self._score(trial) if trial.status == "done" else f"failed: {trial.result.reason}"
            left = ""
            if progress.total and done:
                left = f", about {_spoken(progress.elapsed / done * (progress.total - done))} left"
            note(f"trial {done}{of}: {said}, {best or 'nothing yet'}{left}")

    def _epoch(self, epoch: int, epochs: int, figures: dict[str, float]) -> None:
        shown = f"loss {figures.get('train_loss', float('nan')):.4f}"
        if figures.get("valid_score", float("nan")) == figures.get("valid_score"):
            shown += f", valid score {figures['valid_score']:.4g}"
        now = time.monotonic()
        if self._first is None or epoch <= self._first[0]:
            self._first = (epoch, now)  # the first that is seen here: a resumed search begins in the middle
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task("epochs", total=epochs, completed=epoch, figures="")
            self._bar.update(self._task, completed=epoch + 1, total=epochs, figures=shown)
        elif epoch + 1 == epochs or now - self._said > EVERY:
            self._said = now
            first, began = self._first
            left = (now - began) / (epoch - first) * (epochs - epoch - 1) if epoch > first else 0.0
            note(f"epoch {epoch + 1}/{epochs}: {shown}" + (f", about {_spoken(left)} left" if left else ""))

    def _selection(self, done: int, total: int, text: str) -> None:
        if self._bar is not None:
            if done == 1 or self._task is None:
                self._task = self._bar.add_task("selection", total=total, figures="")
            self._bar.update(self._task, completed=done, total=total, figures=text[:60])
        elif done in (1, total) or time.monotonic() - self._said > EVERY:
            self._said = time.monotonic()
            note(f"selection {done}/{total}: {text}")

    def _phase(self, text: str) -> None:
        self._task = self._first = None
        if self._bar is not None:
            self._task = self._bar.add_task(text, total=None, figures="")
        else:
            note(text)

    def _score(self, trial: Any) -> str:
        name, value = next(iter(trial.result.objectives.items()))
        return f"{name} {value:.4g}{self.unit and ' ' + self.unit}"


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


__all__ = ["Watcher"]
