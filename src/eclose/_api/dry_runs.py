"""What a search would take, by the kind of its strategy: as plain data, and as lines for people."""

from __future__ import annotations

from typing import Any, TypeAlias

from eclose._api.search_request import Parts

Taken: TypeAlias = tuple[dict[str, Any], list[str]]
"""The answer as plain data, with `fits`, and its lines."""


def trials(parts: Parts) -> Taken:
    """Predict a search by trials: for the largest of some terms, memory predicted and one training step measured."""
    request = parts.request
    if getattr(parts.task, "tabular", False):
        told = {"task": request.task, "budget": request.budget, "training": "none: results are looked up in a table"}
        return told, [f"{request.task}: nothing is trained, results are looked up in a table"]
    from eclose.algebra.randomness import derived
    from eclose.meanings.cost import program_cost
    from eclose.report.record import duration
    from eclose.train.dry_run import dry_run

    terms = [parts.space.sample(derived(request.seed, "dry run", number)) for number in range(8)]
    nets = [(parts.evaluator.network(term, 0), term) for term in terms]
    spent = [program_cost(net.program) for net, _ in nets]
    largest = max(range(len(nets)), key=lambda index: spent[index].training_memory)
    found = dry_run(nets[largest][0], spent[largest], parts.task, parts.evaluator.settings, request.device)
    budget = request.budget if isinstance(request.budget, int) else None
    whole = found.total_seconds * budget / request.workers if budget else None
    answer = {
        "term": str(nets[largest][1]),
        "parameters": spent[largest].parameters,
        **_measured(found),
        "seconds_a_trial": found.total_seconds,
        "seconds_in_all": whole,
    }
    lines = [f"the largest of {len(terms)} drawn terms has {spent[largest].parameters:,} parameters", _memory(found)]
    if not found.fits:
        return answer, [*lines, f"it does not fit: {found.advice}"]
    epochs = f"{found.epochs} epoch{'s' * (found.epochs != 1)}"
    lines.append(
        f"one step takes {found.seconds:.4f} s (measured), one trial of {epochs} about {duration(found.total_seconds)}"
    )
    if whole is not None:
        lines.append(f"{budget} trials, {request.workers} at a time: about {duration(whole)}")
    return answer, lines


def supernet(parts: Parts) -> Taken:
    """Predict a search that trains a supernet: its memory, and the time of a few real steps."""
    from eclose.report.record import duration
    from eclose.strategies.gradient.dry_run import dry_run
    from eclose.strategies.gradient.recipe import Recipe
    from eclose.strategies.gradient.search import GradientSearch

    request = parts.request
    search = GradientSearch(parts.space, parts.task, Recipe(**request.settings), seed=request.seed,
                            device=request.device)  # fmt: skip
    with parts.task.searching():
        found = dry_run(search)
    answer = {
        "parameters": found.parameters,
        "batch_size": found.batch_size,
        "stages": found.stages,
        **_measured(found),
        "steps_an_epoch": found.steps,
        "epochs": found.epochs,
        "seconds_in_all": found.total_seconds if found.fits else None,
    }
    stage = "" if found.stages == 1 else f", in the largest of {found.stages} stages"
    lines = [f"the supernet has {found.parameters:,} parameters{stage}", _memory(found)]
    if not found.fits:
        return answer, [*lines, f"it does not fit: {found.advice}"]
    epochs = f"{found.epochs} epoch{'s' * (found.epochs != 1)}"
    lines.append(f"one step takes {found.seconds:.4f} s (measured), {found.steps} of them are an epoch")
    most = "about" if found.stages == 1 else "at most about"
    lines.append(f"{epochs}: {most} {duration(found.total_seconds)}, without the selection and what is measured")
    return answer, lines


def _measured(found: Any) -> dict[str, Any]:
    return {
        "predicted_bytes": found.predicted,
        "measured_bytes": found.measured,
        "available_bytes": found.available,
        "fits": found.fits,
        "advice": found.advice,
        "seconds_a_step": found.seconds,
    }


def _memory(found: Any) -> str:
    measured = "" if found.measured is None else f", measured {found.measured / 2**20:,.0f} MiB"
    free = f"{found.available / 2**20:,.0f} MiB are free"
    return f"memory: about {found.predicted / 2**20:,.1f} MiB predicted{measured}; {free}"


__all__ = ["Taken", "supernet", "trials"]
