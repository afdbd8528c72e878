"""The diagnoses of a gradient run, by name: what each measures on which checkpoints and leaves in its file.

The measuring itself is in `eclose.strategies.gradient.diagnoses`. Epochs are counted as checkpoints count them: the
row of epoch 10 is of the supernet after ten epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from eclose._api.diagnosis_files import DiagnosisFile
from eclose.algebra.errors import RequestError
from eclose.algebra.reading import parse
from eclose.diagnose.ranks import kendall, regret, spearman
from eclose.runs import Run

if TYPE_CHECKING:
    from eclose._api.gradient_runs import Opened
    from eclose.strategies.gradient.selection import Context

Tell: TypeAlias = Callable[[int, int, str], None]

REGRETS = (1, 10)


@dataclass(frozen=True)
class Options:
    """What diagnoses can be told.

    Attributes:
        method: of the Hessian's spectrum: `auto`, `dense` or `lanczos`.
        probe: items of the batch that curvature is taken on; 0 for one batch of the search.
        space: of the landscape: `alpha` or `theta`.
        points: coordinates along a direction of the landscape.
        radius: the largest of them, in lengths of the centre.
        samples: architectures whose ranks are compared.
        batches: batches of held data, of 500 items each, that a score is taken on; 0 for all.
        seed: of random directions and draws.
    """

    method: str = "auto"
    probe: int = 0
    space: str = "alpha"
    points: int = 11
    radius: float = 1.0
    samples: int = 50
    batches: int = 5
    seed: int = 0

    @property
    def held(self) -> int | None:
        """The batches of held data, None for all."""
        return self.batches or None


class Subject:
    """A run that is diagnosed; its supernet is opened when something needs it.

    Args:
        run: open for reading.
        epochs: the checkpoints to look at; all that are kept without.
        table: of benchmark scores, or None.
        task: the task again, where it was given from Python.
        device: where the supernet goes.
    """

    def __init__(self, run: Run, epochs: tuple[int, ...] | None, table: Any, task: Any, device: str | None):
        self.run, self.asked, self.table, self.task, self.device = run, epochs, table, task, device
        self._context: tuple[int, Context] | None = None

    @cached_property
    def opened(self) -> Opened:
        """The run with its search."""
        from eclose._api.gradient_runs import opened

        return opened(self.run.path, task=self.task, device=self.device)

    @cached_property
    def epochs(self) -> tuple[int, ...]:
        """The checkpoints to look at, in order."""
        kept = self.opened.epochs
        if not kept:
            raise RequestError(
                f"{self.run.path} keeps no checkpoints of its supernet yet; one is kept every checkpoint_every= epochs "
                f"and at the end"
            )
        if self.asked is None:
            return kept
        for epoch in self.asked:
            if epoch not in kept:
                raise RequestError(
                    f"{self.run.path} keeps no checkpoint after {epoch} epochs; there are those after "
                    + ", ".join(map(str, kept))
                )
        return tuple(sorted(set(self.asked)))

    def context(self, epoch: int) -> Context:
        """Return the supernet after so many epochs."""
        if self._context is None or self._context[0] != epoch:
            self._context = (epoch, self.opened.context(epoch))
        return self._context[1]

    def checkpoint(self, epoch: int) -> Path:
        """Return the file of a checkpoint."""
        path: Path = self.opened.search.shelf.path(epoch)
        return path

    def score(self, term: str) -> float:
        """Return the test score of a term in the table."""
        try:
            return float(self.table.final(parse(term))["test"])
        except RequestError as error:
            space = self.run.request.get("space")
            raise RequestError(f"{self.table.name} cannot say what terms of {space} score: {error}") from None


# What looks at every checkpoint


def _by_epoch(
    subject: Subject,
    file: DiagnosisFile,
    tell: Tell,
    measured: Callable[[int], dict[str, Any]],
    constants: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the diagnosis with a row for each checkpoint; those that are there already are not measured again."""
    rows = {row["epoch"]: row for row in file.content.get("rows", ()) if file.covers(subject.checkpoint(row["epoch"]))}
    wanted = subject.epochs
    for done, epoch in enumerate(wanted):
        if epoch not in rows:
            rows[epoch] = {"epoch": epoch, **measured(epoch)}
            file.write({"rows": [rows[known] for known in sorted(rows)], **(constants or {})})
        tell(done + 1, len(wanted), f"epoch {epoch}")
    return file.content


def hessian(subject: Subject, options: Options, file: DiagnosisFile, tell: Tell) -> dict[str, Any]:
    """Measure the largest eigenvalue, norm and trace of the Hessian of the alphas at every checkpoint."""
    from eclose.strategies.gradient.diagnoses.curvature import curvature, probe_batch

    constants: dict[str, Any] = {key: file.content[key] for key in ("method", "batch") if key in file.content}

    def measured(epoch: int) -> dict[str, Any]:
        context = subject.context(epoch)
        # The seed is the search's own, so that what the search has measured is found again.
        found = curvature(context, method=options.method, probe=options.probe, seed=epoch)  # type: ignore[arg-type]
        constants["method"] = found.pop("method")
        constants["batch"] = len(probe_batch(context, options.probe).targets)
        return found

    return _by_epoch(subject, file, tell, measured, constants)


def gap(subject: Subject, options: Options, file: DiagnosisFile, tell: Tell) -> dict[str, Any]:
    """Measure what is lost from the mixture to the derived architecture at every checkpoint."""
    from eclose.strategies.gradient.diagnoses.discretisation import discretisation

    def measured(epoch: int) -> dict[str, Any]:
        return discretisation(subject.context(epoch), batches=options.held, probe=options.probe)

    return _by_epoch(subject, file, tell, measured)


# What looks at one checkpoint


def _begun(subject: Subject, file: DiagnosisFile) -> tuple[int, dict[str, Any]]:
    """Return the last of the epochs asked for and what is there of it already."""
    epoch = subject.epochs[-1]
    there = file.content if file.content.get("epoch") == epoch and file.covers(subject.checkpoint(epoch)) else {}
    return epoch, there


def landscape(subject: Subject, options: Options, file: DiagnosisFile, tell: Tell) -> dict[str, Any]:
    """Measure loss and score on a grid around the alphas."""
    from eclose.strategies.gradient.diagnoses.surroundings import surroundings

    epoch, there = _begun(subject, file)
    if there:
        return there
    found = surroundings(
        subject.context(epoch), space=options.space, points=options.points, radius=options.radius,
        batches=options.held, seed=options.seed, watch=lambda done, total: tell(done, total, f"epoch {epoch}"),
    )  # fmt: skip
    return file.write({"epoch": epoch, "radius": options.radius, "space": options.space, "axis": found.axis,
                       **found.values})  # fmt: skip


def strength(subject: Subject, options: Options, file: DiagnosisFile, tell: Tell) -> dict[str, Any]:
    """Compare the weight of every operation with the held score after fixing it."""
    from eclose.strategies.gradient.diagnoses.strengths import choice_strength

    epoch, there = _begun(subject, file)
    choices: dict[str, Any] = dict(there.get("choices", {}))
    context = subject.context(epoch)
    sites = context.supernet.choices
    for done, (name, site) in enumerate(sites.items()):
        if name not in choices:
            kept, found = choice_strength(context, name, batches=options.held)
            choices[name] = {
                "labels": [site.labels[index] for index in kept],
                "weights": found.weights,
                "scores": found.scores,
                "tau": found.tau,
            }
            taus = [choice["tau"] for choice in choices.values() if choice["tau"] is not None]
            file.write({"epoch": epoch, "choices": choices, "tau": sum(taus) / len(taus) if taus else None})
        tell(done + 1, len(sites), name)
    return file.content


# What looks things up


def correlation(subject: Subject, options: Options, file: DiagnosisFile, tell: Tell) -> dict[str, Any]:
    """Compare the ranks of architectures by the supernet's weights and by a table."""
    from eclose.strategies.gradient.diagnoses.ranking import drawn, shared_scores

    epoch, there = _begun(subject, file)
    terms: list[str] = list(there.get("terms", ()))
    points: list[list[float]] = [list(point) for point in there.get("points", ())]
    context = subject.context(epoch)
    architectures = drawn(context, options.samples, options.seed)
    known = {term: subject.score(term) for term in architectures}  # before anything is measured, whether it can be
    left = {term: decisions for term, decisions in architectures.items() if term not in set(terms)}
    sign = 1.0 if context.task.metric.direction == "maximise" else -1.0
    for term, score in shared_scores(context, left, batches=options.held):
        terms.append(term)
        points.append([score, known[term]])
        shared, true = [sign * point[0] for point in points], [point[1] for point in points]
        file.write({
            "epoch": epoch, "points": points, "tau": kendall(shared, true), "spearman": spearman(shared, true),
            "regret": {str(k): regret(shared, true, k) for k in REGRETS}, "table": subject.table.name, "terms": terms,
        })  # fmt: skip
        tell(len(points), len(architectures), f"epoch {epoch}")
    return file.content


def anytime(subject: Subject, options: Options, file: DiagnosisFile, tell: Tell) -> dict[str, Any]:
    """Look up the derived architecture of every epoch in a table; needs the run's log only."""
    derived = {event["epoch"]: event["term"] for event in subject.run.of_kind("architecture")}
    if not derived:
        raise RequestError(f"{subject.run.path} has no finished epoch whose architecture could be looked up")
    rows: list[dict[str, Any]] = []
    for epoch, term in sorted(derived.items()):
        rows.append({"epoch": epoch + 1, "score": subject.score(term), "term": term})
    tell(len(rows), len(derived), "epochs")
    return file.write({"table": subject.table.name, "rows": rows})


@dataclass(frozen=True)
class Diagnosis:
    """One entry of the table of diagnoses.

    Attributes:
        run: does it.
        description: for lists and help.
        options: those of `Options` that its numbers depend on.
        alphas: whether it needs alphas that say something.
        table: whether it needs a table.
    """

    run: Callable[[Subject, Options, DiagnosisFile, Tell], dict[str, Any]]
    description: str
    options: tuple[str, ...] = ()
    alphas: bool = True
    table: bool = False


DIAGNOSES: dict[str, Diagnosis] = {
    "hessian": Diagnosis(hessian, "curvature of the loss in the alphas, by epoch", ("method", "probe")),
    "gap": Diagnosis(gap, "what is lost from the mixture to the derived network, by epoch", ("batches", "probe")),
    "landscape": Diagnosis(
        landscape, "loss and score around the alphas", ("space", "points", "radius", "batches", "seed")
    ),
    "strength": Diagnosis(strength, "weights of operations against scores after fixing them", ("batches",)),
    "correlation": Diagnosis(
        correlation, "ranks by shared weights against a table", ("samples", "batches", "seed"), False, True
    ),
    "anytime": Diagnosis(anytime, "table score of the derived network, by epoch", (), False, True),
}

__all__ = ["DIAGNOSES", "Diagnosis", "Options", "Subject", "Tell"]
