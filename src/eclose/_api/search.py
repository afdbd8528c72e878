"""Search, resume, evaluate: the public functions that find a network and judge it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from eclose._api.drivers import DRIVERS, Watch
from eclose._api.handle import Best, RunHandle
from eclose._api.requests import as_folder, as_term, refuse_unwritable
from eclose._api.search_request import GRADIENT, Parts, parts_of, resolved
from eclose.algebra.errors import RequestError
from eclose.algebra.terms import Term
from eclose.runs import Run
from eclose.strategies import STRATEGIES


def search(
    space: Any,
    task: Any,
    strategy: str = "evolution",
    *,
    out: str | Path | None = None,
    seed: int = 0,
    watch: Watch | None = None,
    code: Sequence[str] = (),
    **settings: Any,
) -> RunHandle:
    """Search a space for the network that a task needs, and train the best one.

    Args:
        space: a space or its name, a grammar or its text.
        task: a task or its name, `"digits"`, `"tabular:cifar10@12->200"`, ...
        strategy: a strategy's name.
        out: the run's folder, new or empty; without one the search lives in memory and leaves no report.
        seed: of everything; the same seed gives the same run.
        watch: told what happens.
        code: modules of yours that were imported; a resumed run needs the same.
        settings: `budget=` (trials, or a time such as `"30m"`), `workers=`, `protocol=`, `retrain=`, `objectives=`,
            `duplicates=`, `device=`, ...; settings of the strategy (`population=`) and of the protocol (`epochs=`).
    """
    parts = resolved(space, task, strategy, seed, settings)
    parts = replace(parts, request=replace(parts.request, code=tuple(code)))
    if out is None:
        return _go(parts, None, watch)
    if not (parts.request.named or parts.space.grammar.is_text_alone):
        raise RequestError(
            "this grammar has folds= or where= from Python, which a run's folder cannot hold; put it into a "
            "module that calls eclose.register(Space.from_grammar(...)), import it and give its name as code=[...]"
        )
    if not as_folder(out):
        raise RequestError(f"out= is the path of a folder, not {out!r}")
    threads = _threads(parts.request.strategy)
    run = Run.create(out, parts.request.plain(), grammar=parts.space.grammar.source.text, threads=threads)
    try:
        with run:
            return _go(parts, run, watch)
    except RequestError:
        if not run.of_kind("proposed") and not run.of_kind("epoch"):
            shutil.rmtree(run.path, ignore_errors=True)  # nothing was begun; the corrected request finds it free
        raise


def resume(
    path: str | Path,
    *,
    task: Any = None,
    force: bool = False,
    watch: Watch | None = None,
    code: Sequence[str] = (),
) -> RunHandle:
    """Go on with a run that was interrupted; a finished one is only opened.

    Args:
        path: the run's folder.
        task: the task again, where it was given from Python.
        force: go on although versions, threads or processor differ from those the run began with.
        watch: told what happens.
        code: the user's modules that the run began with.
    """
    threads = _threads(Run.open(path).request.get("strategy", ""))
    with Run.resume(path, force=force, threads=threads, code=code) as run:
        return _go(parts_of(run, task), run, watch)


def _threads(strategy: str) -> int | None:
    """Return the threads that compute: one a trial, or all there are for a single supernet (None)."""
    return None if strategy in STRATEGIES and STRATEGIES.get(strategy).kind == GRADIENT else 1


def _go(parts: Parts, run: Run | None, watch: Watch | None) -> RunHandle:
    """Search, train the best, write the report."""
    guard = nullcontext() if getattr(parts.task, "tabular", False) else parts.task.searching()
    with guard:
        best, history = DRIVERS[STRATEGIES.get(parts.request.strategy).kind](parts, run, watch)
    final = _final(parts, run, best, watch)
    if run is not None:
        if not run.of_kind("end"):
            run.append("end", durable=True)
        from eclose.report import write_report

        write_report(run)
    return RunHandle(parts, None if run is None else run.path, best, history, final)


def _final(parts: Parts, run: Run | None, best: Best, watch: Watch | None) -> dict[str, Any] | None:
    """Look the best term up where the task is a table, train its network once more where not."""
    kept = run.of_kind("final") if run is not None else []
    if kept and kept[-1]["term"] == str(best.term):
        return {key: value for key, value in kept[-1].items() if key != "event"}
    if getattr(parts.task, "tabular", False):
        values = parts.task.final(best.term)
        final: dict[str, Any] = {"term": str(best.term), "part": "test", "score": values["test"], "values": values}
    else:
        settings = parts.final_protocol()
        if settings is None:
            return None
        if watch is not None:
            watch("phase", f"training the best network for {settings.epochs} epochs")
        final = _retrained(parts, run, best, settings, watch)
    if run is not None:
        run.append("final", durable=True, **final)
    return final


def _final_checkpoint(parts: Parts) -> str:
    """Return the file of the final training's state: a supernet's own state is in `checkpoint.pt`."""
    return "final.pt" if STRATEGIES.get(parts.request.strategy).kind == GRADIENT else "checkpoint.pt"


def _retrained(parts: Parts, run: Run | None, best: Best, settings: Any, watch: Watch | None) -> dict[str, Any]:
    """Train the best network on all that a search may see, measure it on what it may not."""
    from eclose.study.executors import limit_threads
    from eclose.train.training import train_network

    task, part = parts.task, "test" if parts.task.has("test") else "valid"
    net = parts.evaluator.network(best.term, parts.request.seed)
    loaders = any(task.part(name).loader() is not None for name in ("train", "valid"))
    if loaders and part == "test" and run is not None:
        run.say("the best network is trained on the train part alone: loaders cannot be joined")
    told = (
        {event["epoch"] for event in run.of_kind("epoch") if event.get("phase") == "final"}
        if run is not None
        else set()
    )

    def finished(epoch: int, figures: dict[str, float]) -> None:
        if run is not None and epoch not in told:
            run.append("epoch", epoch=epoch, phase="final", values=figures)
        if watch is not None:
            watch("epoch", (epoch, settings.epochs, figures))

    before = limit_threads(1)  # as trials are trained: the bits depend on it
    try:
        trained = train_network(
            net,
            task,
            settings,
            seed=parts.request.seed,
            device=parts.request.device,
            train_on="search" if part == "test" and not loaders else "train",
            measure_on=part,
            checkpoint=None if run is None else run.path / _final_checkpoint(parts),
            on_epoch=finished,
        )
    finally:
        limit_threads(before)
    best.model = net
    if run is not None:
        from safetensors.torch import save_file

        state = {key: value.detach().cpu().contiguous().clone() for key, value in net.state_dict().items()}
        run.save_best(str(best.term), lambda path: save_file(state, path))
        for note in trained.notes:
            run.say(note)
    return {
        "term": str(best.term),
        "part": part,
        "score": trained.score,
        "values": {key: value for key, value in trained.figures.items() if value == value},
        "parameters": sum(parameter.numel() for parameter in net.parameters()),
        "protocol": settings.name,
    }


def evaluate(
    term_or_model: Any,
    task: Any,
    protocol: Any = "quick",
    *,
    space: Any = None,
    seed: int = 0,
    device: str | None = None,
    size: str | None = None,
    out: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Train a network from its initial weights by a protocol and measure it on the test part (valid without one).

    Args:
        term_or_model: a term or its text, or a torch module, which is trained in place.
        task: a task or its name; on a table the term is looked up.
        protocol: a protocol or its name.
        space: whose network goes around the term.
        seed: of initial weights, order and augmentation.
        device: where; the GPU where there is one.
        size: of the space's network; the protocol's without.
        out: a file for the result as JSON.
        watch: told what happens.
        settings: of the protocol, `epochs=3`.
    """
    from eclose.tasks import task as named_task

    learned = named_task(task) if isinstance(task, str) else task
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise RequestError(f"a seed is a whole number, not {seed!r}")
    file = None if out is None else Path(out)
    if file is not None:
        refuse_unwritable(file)
    if getattr(learned, "tabular", False):
        given = {"protocol": protocol != "quick", "size": size, "device": device, **settings}
        for key, value in given.items():
            if value:
                raise RequestError(f"{learned.name} is a table; nothing is trained, so {key}= means nothing")
        term = as_term(term_or_model)
        result: dict[str, Any] = {"term": str(term), "task": learned.name, **learned.final(term)}
    else:
        result = _evaluated(term_or_model, learned, protocol, space, seed, device, size, watch, settings)
    if file is not None:
        from eclose.runs import write_text

        write_text(file, json.dumps(result, indent=2) + "\n")
    return result


def _evaluated(
    given: Any,
    task: Any,
    asked: Any,
    space: Any,
    seed: int,
    device: str | None,
    size: str | None,
    watch: Watch | None,
    overrides: Mapping[str, Any],
) -> dict[str, Any]:
    import torch

    from eclose._api.networks import build
    from eclose._api.requests import as_space
    from eclose.train.protocols import protocol
    from eclose.train.training import train_network

    settings = protocol(asked, **overrides)
    result: dict[str, Any] = {
        "task": task.name if task.spec is None else task.spec.name,
        "protocol": settings.name,
        "seed": seed,
    }
    if isinstance(given, Term | str):
        term = as_term(given)
        result["term"] = str(term)
        place = as_space(space) if space is not None else None
        chosen = None if place is None else size or (settings.size if settings.size in place.sizes else "search")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = build(term, space=place, task=task, size=chosen)
    elif isinstance(given, torch.nn.Module):
        net = given
    else:
        raise RequestError(f"a term, its text or a torch module can be evaluated, not {type(given).__name__}")
    part = "test" if task.has("test") else "valid"
    trained = train_network(
        net,
        task,
        settings,
        seed=seed,
        device=device,
        train_on="search" if part == "test" else "train",
        measure_on=part,
        on_epoch=None if watch is None else lambda epoch, figures: watch("epoch", (epoch, settings.epochs, figures)),
    )
    return {
        **result,
        "part": part,
        "metric": task.metric.name,
        "score": trained.score,
        "parameters": sum(parameter.numel() for parameter in net.parameters()),
        "seconds": trained.seconds,
        "figures": dict(trained.figures),
        "notes": list(trained.notes),
    }


__all__ = ["evaluate", "resume", "search"]
