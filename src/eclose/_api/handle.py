"""What a search leaves: the best term with its model, the history, the folder, the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eclose._api.search_request import Parts
from eclose.algebra.errors import RequestError
from eclose.algebra.terms import Term


class Best:
    """The best of a search.

    Attributes:
        term: the architecture.
        objectives: what the search measured of it.
        score: the first objective.
        model: its network, trained where the search trained it at the end.
    """

    def __init__(self, term: Term, objectives: dict[str, float], objective: str, stopped: str = ""):
        self.term, self.objectives, self.stopped = term, objectives, stopped
        self.score = objectives.get(objective, float("nan"))
        self.model: Any = None

    def __repr__(self) -> str:
        return f"<best: {self.score:.6g}, {self.term}>"


class RunHandle:
    """A search that is done.

    Attributes:
        path: the run's folder, or None for one in memory.
        best: the best term, its score and its network.
        history: the trials as plain data, in order.
        final: what the best network gave after its final training, on data that the search could not see.
        request: what was asked, as resolved.
        task: what was learned.
        stopped: why a search ended before its last epoch, or nothing.
    """

    def __init__(
        self,
        parts: Parts,
        path: Path | None,
        best: Best,
        history: list[dict[str, Any]],
        final: dict[str, Any] | None,
    ):
        self.path, self.best, self.history, self.final = path, best, history, final
        self.request = parts.request.plain()
        self.task = parts.task
        self.stopped = best.stopped
        if best.model is None and path is not None and (path / "best.safetensors").exists():
            from safetensors.torch import load_file

            best.model = parts.evaluator.network(best.term, parts.request.seed)
            best.model.load_state_dict(load_file(path / "best.safetensors"))

    def report(self, file: str | Path | None = None) -> Path:
        """Write the report, `report.html` in the run's folder unless another file is named, and return its path."""
        if self.path is None:
            raise RequestError("this search was kept in memory; give out= a folder to have a report")
        from eclose.report import write_report

        return write_report(self.path, file)

    def __repr__(self) -> str:
        where = f" in {self.path}" if self.path is not None else ""
        return f"<run{where}: {len(self.history)} trials, best {self.best.score:.6g}>"


__all__ = ["Best", "RunHandle"]
