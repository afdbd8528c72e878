"""What a search was asked for, as resolved plain data, and the things that the data stand for.

The request is written into the run's folder; a resumed run is made of it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from eclose._api.requests import as_space, input_text, output_text
from eclose.algebra.errors import RequestError, ShapeError, did_you_mean
from eclose.runs import Run
from eclose.spaces import SPACES, Space
from eclose.spaces import space as named_space
from eclose.strategies import STRATEGIES
from eclose.tasks import Task
from eclose.tasks import task as named_task

OWN = "(given from Python)"
DRAWN = 8  # networks that are looked at before a search begins


@dataclass(frozen=True)
class SearchRequest:
    """A search as resolved.

    Attributes:
        space: the name of a space, or of the grammar that the run keeps.
        named: whether the space is one that ships or was registered.
        task: the task's name.
        strategy: the strategy's name.
        settings: the strategy's settings that were set.
        protocol: the training's name and the settings that were set, or None on a table.
        budget: trials, or a time such as `"20000s"`.
        seed: of everything.
        workers: processes that evaluate trials.
        lag: proposal n sees the results of trials up to n - lag; None for 3 a worker.
        asynchronous: whether results are told as they come in.
        duplicates: `reject`, `reuse` or `allow`.
        objectives: what results are judged by, with directions; the first is the strategy's.
        device: where networks are trained.
        storage: the URL of an Optuna storage that is the truth, or None.
        retrain: epochs of the best network's final training; 0 for none, None for the protocol's.
        memory_limit: mebibytes that a worker may take, or None.
        time_limit: seconds that a trial may take, or None.
        data: the folder of the data, or None.
        metric: name, direction and unit of the score.
        fingerprint: of the task's data and options, None for a table.
        input: what networks take in, as the command line writes it.
        output: what they give, likewise.
        code: modules of the user's that were imported.
    """

    space: str
    named: bool
    task: str
    strategy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] | None = None
    budget: int | str = 20
    seed: int = 0
    workers: int = 1
    lag: int | None = None
    asynchronous: bool = False
    duplicates: str = "reject"
    objectives: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    storage: str | None = None
    retrain: int | None = None
    memory_limit: int | None = None
    time_limit: float | None = None
    data: str | None = None
    metric: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str | None = None
    input: str | None = None
    output: str | None = None
    code: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the request as JSON can write it."""
        return {"command": "search", **asdict(self), "code": list(self.code)}

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> SearchRequest:
        """Return the request that a run's folder holds."""
        known = {entry.name for entry in fields(cls)}
        if given.get("command") != "search":
            raise RequestError(f"this run is no search but {given.get('command')!r}; it cannot be resumed as one")
        values = {key: value for key, value in given.items() if key in known}
        return cls(**{**values, "code": tuple(values.get("code", ()))})


GRADIENT = "gradient"
TRIALS = ("budget", "workers", "lag", "asynchronous", "duplicates", "objectives", "storage", "memory_limit",
          "time_limit")  # fmt: skip
"""Options that say how trials are done; a search without trials has no use for them."""
OPTIONS = (
    "budget",
    "workers",
    "lag",
    "asynchronous",
    "duplicates",
    "objectives",
    "device",
    "storage",
    "retrain",
    "memory_limit",
    "time_limit",
    "data",
    "protocol",
)
"""Options of the search itself, beside the settings of its strategy and protocol."""


@dataclass
class Parts:
    """What a request stands for.

    Attributes:
        request: the plain data.
        space: what is searched.
        task: what is learned, a `Task` or a tabular one.
        evaluator: gives the objectives of a term.
    """

    request: SearchRequest
    space: Space
    task: Any
    evaluator: Any

    def final_protocol(self) -> Any:
        """Return the protocol of the best network's final training, or None where there is none."""
        from eclose.train.protocols import protocol

        given = self.request.protocol
        if given is None or self.request.retrain == 0:
            return None
        settings = {key: value for key, value in given.items() if key != "name"}
        if self.request.retrain is not None:
            settings["epochs"] = self.request.retrain
        return protocol(given["name"], **settings)


def resolved(space: Any, task: Any, strategy: str, seed: int, given: Mapping[str, Any]) -> Parts:
    """Return the parts of a search; what is unknown or does not go together is refused here, before anything is made.

    Args:
        space: a space, its name, a grammar or its text.
        task: a task or its name.
        strategy: the strategy's name.
        seed: of everything.
        given: options of the search, settings of the strategy and of the protocol, by name.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise RequestError(f"a seed is a whole number, not {seed!r}")
    named = STRATEGIES.get(strategy)
    place = as_space(space)
    data = given.get("data")
    learned = _task(task, data)
    tabular = bool(getattr(learned, "tabular", False))
    options, settings, training = _sorted(given, named.settings, tabular)
    if named.kind == GRADIENT:
        _refuse_options(strategy, learned, tabular, options)
        from eclose.strategies.gradient.named import recipe_of

        settings = recipe_of(named, place.name, settings).plain()
    protocol_name = options.pop("protocol", None)
    for key in ("protocol", "retrain", "device", "data"):
        if tabular and given.get(key) is not None:
            raise RequestError(f"{learned.name} is a table; nothing is trained, so {key}= means nothing")
    request = SearchRequest(
        space=place.name,
        named=place.name in SPACES and SPACES.get(place.name) is place,
        task=learned.name if isinstance(task, str) is False and tabular else task if isinstance(task, str) else OWN,
        strategy=strategy,
        settings=settings,
        protocol=None if tabular else {"name": protocol_name or "quick", **training},
        seed=seed,
        fingerprint=None if tabular else learned.fingerprint(),
        input=None if tabular else input_text(learned.input),
        output=None if tabular else output_text(learned.output),
        **_typed(options),
    )
    parts = assembled(request, place, learned)
    if named.kind == GRADIENT:
        from eclose._api.drivers import refuse_gradient_misfits

        refuse_gradient_misfits(parts)
    elif not tabular:
        _refuse_misfits(parts)
    return parts


def _refuse_options(strategy: str, task: Any, tabular: bool, options: Mapping[str, Any]) -> None:
    """Raise where a search that trains one supernet is given what belongs to one of many trials."""
    if tabular:
        raise RequestError(
            f"{strategy} trains a supernet, and {task.name} is a table with nothing to train on; search on the data "
            "(--task cifar10), then look what it finds up with `eclose compare --table` or `eclose diagnose`"
        )
    for key in TRIALS:
        if options.get(key) is not None:
            raise RequestError(f"{strategy} trains one supernet, so {key}= means nothing; epochs= says how long")


def _refuse_misfits(parts: Parts) -> None:
    """Raise where none of some drawn networks can take this task's input: every trial would fail."""
    from eclose.algebra.randomness import derived

    problem: ShapeError | None = None
    for number in range(DRAWN):
        term = parts.space.sample(derived(parts.request.seed, "fit", number))
        try:
            parts.evaluator.program(term)
            return
        except ShapeError as error:
            problem = error
    name, task = parts.space.name, parts.task.name
    raise RequestError(f"no network of {DRAWN} drawn from {name} fits the task {task}: {problem}") from problem


def assembled(request: SearchRequest, space: Space, task: Any) -> Parts:
    """Return the parts of a request with its space and task."""
    if getattr(task, "tabular", False):
        if space.name != task.space:
            raise RequestError(
                f"{task.name} holds the terms of {task.space}, not of {space.name}; search that space on it"
            )
        asked = request.objectives or None
        evaluator = task.evaluator(space, seed=request.seed, objectives=asked)
        metric = {"name": "accuracy", "direction": "maximise", "unit": "%"}
    else:
        from eclose.train.evaluator import TrainingEvaluator
        from eclose.train.protocols import protocol
        from eclose.train.training import as_device

        assert request.protocol is not None
        settings = protocol(
            request.protocol["name"], **{key: value for key, value in request.protocol.items() if key != "name"}
        )
        as_device(request.device)
        size = settings.size if settings.size in space.sizes else "search"
        evaluator = TrainingEvaluator(space, task, settings, device=request.device, size=size)
        evaluator.objectives = _objectives(request.objectives, task.metric.direction)
        metric = {"name": task.metric.name, "direction": task.metric.direction, "unit": task.metric.unit}
    request = replace(request, metric=metric, objectives=dict(evaluator.objectives))
    return Parts(request, space, task, evaluator)


def parts_of(run: Run, task: Any = None, device: str | None = None) -> Parts:
    """Return the parts of a run's request.

    Args:
        run: an open run.
        task: the task again, where it was given from Python.
        device: instead of the one that the run was begun on.
    """
    request = SearchRequest.read(run.request)
    if device is not None:
        request = replace(request, device=device)
    place = named_space(request.space) if request.named else Space.from_grammar(run.grammar, name=request.space)
    if place.grammar.source.text != run.grammar:
        raise RequestError(f"the space {request.space} is not what {run.path} began with: its grammar has changed")
    if isinstance(task, str):
        task = named_task(task)
    if request.task == OWN:
        if task is None:
            raise RequestError(
                f"{run.path} was begun with a task given from Python; give it again: resume(path, task=...)"
            )
        learned = task
    else:
        learned = named_task(request.task, **({} if request.data is None else {"data": request.data}))
    if request.fingerprint is not None and learned.fingerprint() != request.fingerprint:
        raise RequestError(f"this is not the task that {run.path} began with: data or options differ")
    return assembled(request, place, learned)


def _task(task: Any, data: Any) -> Any:
    if isinstance(task, str):
        return named_task(task, **({} if data is None else {"data": data}))
    if isinstance(task, Task) or getattr(task, "tabular", False):
        if data is not None:
            raise RequestError("data= goes with a task's name; this task has its data already")
        return task
    raise RequestError(f"a task is given by its name or as an eclose.Task, not {type(task).__name__}")


def _sorted(
    given: Mapping[str, Any], strategy: Mapping[str, Any], tabular: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the options of the search, of the strategy and of the protocol; a name that none knows is refused."""
    from eclose.train.protocols import Protocol

    training = (
        () if tabular else tuple(entry.name for entry in fields(Protocol) if entry.name not in ("name", "source"))
    )
    result: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = ({}, {}, {})
    for key, value in given.items():
        for place, known in zip(result, (OPTIONS, strategy, training), strict=True):
            if key in known:
                place[key] = value
                break
        else:
            known_names = tuple(dict.fromkeys((*OPTIONS, *strategy, *training)))
            hint = did_you_mean(key, known_names)
            raise RequestError(f"unknown setting {key!r}{hint} (settings: {', '.join(known_names)})")
    return result


def _typed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the search's own options, each of its kind."""
    kinds: dict[str, tuple[type, ...]] = {
        "budget": (int, str),
        "workers": (int,),
        "lag": (int,),
        "asynchronous": (bool,),
        "duplicates": (str,),
        "device": (str,),
        "storage": (str,),
        "retrain": (int,),
        "memory_limit": (int,),
        "time_limit": (int, float),
        "data": (str,),
    }
    from eclose.study.budget import as_budget

    found: dict[str, Any] = {}
    for key, value in options.items():
        if value is None:
            continue
        if key == "objectives":
            found[key] = _named_objectives(value)
            continue
        allowed = kinds[key]
        value = str(value) if key in ("data", "device") else value
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            right = " or ".join(
                {int: "a whole number", str: "a text", bool: "true or false", float: "a number"}[k] for k in allowed
            )
            raise RequestError(f"{key} is {right}, not {value!r}")
        number: Any = value
        if key in ("workers", "lag", "memory_limit") and number < 1:
            raise RequestError(f"{key} must be at least 1, not {value}")
        if key in ("retrain", "time_limit") and number < 0:
            raise RequestError(f"{key} must be at least 0, not {value}")
        if key == "duplicates" and value not in ("reject", "reuse", "allow"):
            hint = did_you_mean(str(value), ("reject", "reuse", "allow"))
            raise RequestError(f"duplicates is reject, reuse or allow, not {value!r}{hint}")
        found[key] = value
    as_budget(found.get("budget", 20))
    return found


def _named_objectives(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        value = [item.strip(" []()\"'") for item in value.split(",") if item.strip(" []()\"'")]
    if isinstance(value, Mapping):
        return {str(key): str(direction) for key, direction in value.items()}
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return dict.fromkeys(value, "")
    raise RequestError(f"objectives are names or {{name: direction}}, not {value!r}")


def _objectives(asked: Mapping[str, str], direction: str) -> dict[str, str]:
    """Return the objectives of a training with their directions."""
    known = {"score": direction, "parameters": "minimise", "multiply_adds": "minimise"}
    found = {}
    for name, given in (asked or {"score": ""}).items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise RequestError(f"unknown objective {name!r}{hint} (objectives: {', '.join(known)})")
        if given and given not in ("maximise", "minimise"):
            raise RequestError(f"an objective is to maximise or to minimise, not to {given!r}")
        found[name] = given or known[name]
    return found


__all__ = ["GRADIENT", "OPTIONS", "OWN", "Parts", "SearchRequest", "assembled", "parts_of", "resolved"]
