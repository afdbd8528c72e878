"""What a comparison was asked for, as resolved plain data, and the things that the data stand for.

Every request of every strategy is resolved here before the first search begins, so that nothing is refused hours later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from eclose._api.requests import as_folder, as_space
from eclose._api.search_request import OPTIONS, resolved
from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.terms import Term
from eclose.spaces import Space
from eclose.strategies import STRATEGIES

RANDOM, SKIP_ONLY = "random", "skip-only"
FINAL = "final"
FILE = "compare.json"
SHARED = ("device", "data", "protocol")  # options that a search of any kind has
OWNED = {
    "seed": "the searches' seeds are seeds=",
    "retrain": "the networks found are trained by protocol= and final={'epochs': ...}, each with every retrain seed",
    "storage": "the searches of a comparison are kept in its folder",
}


@dataclass(frozen=True)
class CompareRequest:
    """A comparison as resolved: what two calls for one folder must agree in.

    Attributes:
        space: the name of what is searched.
        grammar: its grammar's text.
        task: the task's name.
        fingerprint: of the task's data and options, None for a table.
        strategies: what is compared, in order, each with the settings its searches were given.
        seeds: of the searches.
        retrain_seeds: of the trainings of each network that was found; empty where a table judges.
        protocol: the name of those trainings and the settings that were set, or None.
        table: the table in which networks are looked up that were found without it, or None.
        device: where networks are trained.
        data: the folder of the data, or None.
        code: modules of the user's that were imported.
    """

    space: str
    grammar: str
    task: str
    fingerprint: str | None
    strategies: Mapping[str, Mapping[str, Any]]
    seeds: tuple[int, ...]
    retrain_seeds: tuple[int, ...]
    protocol: Mapping[str, Any] | None
    table: str | None = None
    device: str | None = None
    data: str | None = None
    code: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the request as JSON gives it back."""
        found: dict[str, Any] = json.loads(json.dumps({"command": "compare", **asdict(self)}))
        return found

    def refuse_other(self, kept: Mapping[str, Any], where: Path) -> None:
        """Raise where a folder was begun with another request."""
        mine = self.plain()
        differing = [key for key in mine if mine[key] != kept.get(key)]
        if not differing:
            return
        told = [f"{key.replace('_', ' ')} {_short(kept.get(key))} there, {_short(mine[key])} here" for key in differing]
        raise RequestError(
            f"{where} holds another comparison ({'; '.join(told)}); ask for the same or choose another folder"
        )


@dataclass
class Plan:
    """What a request stands for.

    Attributes:
        request: the plain data.
        given: the space and the task as the caller gave them, for `search`.
        space: what is searched.
        task: what is learned, a `Task` or a tabular one.
        table: the table that judges, or None where networks are trained.
        skip_only: the term of the skip-only baseline, or None where there is none.
        metric: name, direction and unit of what is compared.
        notes: what people should know of the request.
    """

    request: CompareRequest
    given: tuple[Any, Any]
    space: Space
    task: Any
    table: Any
    skip_only: Term | None
    metric: Mapping[str, str]
    notes: list[str] = field(default_factory=list)

    @property
    def searched(self) -> list[str]:
        """The strategies that search: all but the skip-only baseline."""
        return [name for name in self.request.strategies if name != SKIP_ONLY]


def requested(
    space: Any,
    task: Any,
    strategies: str | Iterable[str],
    *,
    seeds: int | Sequence[int],
    retrain_seeds: int | Sequence[int] | None,
    protocol: Any,
    search_protocol: Any,
    final: Mapping[str, Any],
    table: Any,
    per_strategy: Mapping[str, Mapping[str, Any]],
    device: str | None,
    data: str | Path | None,
    code: Sequence[str],
    settings: Mapping[str, Any],
) -> Plan:
    """Return a comparison with its parts; the arguments are those of `compare`."""
    from eclose.tasks import task as named_task

    names = _with_baselines(strategies)
    search_seeds = as_seeds("seeds", seeds)
    place = as_space(space)
    shared = {"device": device, "data": None if data is None else str(data), "protocol": search_protocol}
    common = {**settings, **{key: value for key, value in shared.items() if value is not None}}
    learned = task
    if isinstance(task, str):
        learned = named_task(task, **({} if data is None else {"data": str(data)}))
    tabular = bool(getattr(learned, "tabular", False))
    given = _shared_out(names, common, per_strategy, tabular)
    judge = learned if tabular else None if table is None else _table(table, place)
    if tabular and table is not None:
        raise RequestError(f"{learned.name} is a table already, which judges what is found in it; leave table= out")
    first: Any = None
    for name, asked in given.items():
        if name != SKIP_ONLY:
            parts = resolved(place, task, name, search_seeds[0], asked)
            first = parts if first is None else first
    if not (first.request.named or place.grammar.is_text_alone):
        raise RequestError(
            "this grammar has folds= or where= from Python, which a folder cannot hold; put it into a module that "
            "calls eclose.register(Space.from_grammar(...)), import it and give its name as code=[...]"
        )
    training = _training(judge, protocol, final)
    again: tuple[int, ...] = ()
    if judge is None:
        again = as_seeds("retrain_seeds", 1 if retrain_seeds is None else retrain_seeds)
    elif retrain_seeds is not None:
        raise RequestError(f"{judge.name} is a table; nothing is trained, so retrain_seeds= means nothing")
    skips, notes = _skips(names, place)
    if skips is None:
        given.pop(SKIP_ONLY)
    request = CompareRequest(
        space=place.name,
        grammar=place.grammar.source.text,
        task=first.request.task,
        fingerprint=first.request.fingerprint,
        strategies=given,
        seeds=search_seeds,
        retrain_seeds=again,
        protocol=training,
        table=None if judge is None or tabular else judge.name,
        device=device,
        data=None if data is None else str(data),
        code=tuple(code),
    )
    metric = first.request.metric
    if judge is not None:
        metric = {"name": "accuracy", "direction": judge.direction, "unit": "%"}
    return Plan(request, (place, task), place, learned, judge, skips, metric, notes)


def as_seeds(name: str, given: int | Sequence[int]) -> tuple[int, ...]:
    """Return seeds from a list of them, or from how many are wanted: 0, 1, 2, ...

    Args:
        name: what they are called in messages.
        given: the seeds.
    """
    whole = isinstance(given, int) and not isinstance(given, bool)
    found = range(given) if whole and isinstance(given, int) else given
    listed = tuple(found) if isinstance(found, Iterable) and not isinstance(found, str | bytes) else None
    if listed is None or any(isinstance(seed, bool) or not isinstance(seed, int) for seed in listed):
        raise RequestError(f"{name} is a number of seeds or a list of whole numbers, not {given!r}")
    if not listed:
        raise RequestError(f"{name} must be at least 1, not {given!r}" if whole else f"{name} is an empty list")
    if len(set(listed)) < len(listed):
        raise RequestError(f"{name} has a seed twice: {', '.join(map(str, listed))}")
    return listed


def split_settings(
    given: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, Any]]:
    """Return settings for all strategies, for single ones (`drnas.epochs`) and for the final training (`final.epochs`).

    Args:
        given: settings as the command line writes them.
    """
    common: dict[str, Any] = {}
    single: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        owner, dot, setting = key.rpartition(".")
        if dot and not (owner and setting):
            raise RequestError(f"a setting of one strategy is written STRATEGY.KEY, not {key!r}")
        (single.setdefault(owner, {}) if dot else common)[setting if dot else key] = value
    return common, single, single.pop(FINAL, {})


def _with_baselines(strategies: str | Iterable[str]) -> list[str]:
    """Return the strategies' names with the baselines that were not asked for at the end."""
    listed = [strategies] if isinstance(strategies, str) else list(strategies)
    if not listed:
        raise RequestError("say which strategies are compared; `eclose strategies` lists them")
    for name in listed:
        if name != SKIP_ONLY:
            STRATEGIES.get(name)
        if listed.count(name) > 1:
            raise RequestError(f"the strategy {name} is named twice; a comparison needs different ones")
    return [*listed, *(name for name in (RANDOM, SKIP_ONLY) if name not in listed)]


def _shared_out(
    names: Sequence[str], common: Mapping[str, Any], single: Mapping[str, Mapping[str, Any]], tabular: bool
) -> dict[str, dict[str, Any]]:
    """Return the settings of every strategy; one that no strategy has is refused."""
    for key in (*common, *(key for asked in single.values() for key in asked)):
        if key in OWNED:
            raise RequestError(f"{key}= is no setting of a comparison: {OWNED[key]}")
    for owner in single:
        if owner == SKIP_ONLY or owner not in names:
            hint = did_you_mean(owner, names) or f" (compared: {', '.join(names)})"
            raise RequestError(f"settings are given for {owner!r}, which does not search here{hint}")
    known = {name: _settings_of(name, tabular) for name in names if name != SKIP_ONLY}
    for key in common:
        if not any(key in settings for settings in known.values()):
            every = list(dict.fromkeys(setting for settings in known.values() for setting in settings))
            raise RequestError(
                f"unknown setting {key!r}{did_you_mean(key, every)}: none of the strategies has it "
                f"(settings: {', '.join(every)})"
            )
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        found[name] = {key: value for key, value in common.items() if key in known.get(name, ())}
        found[name].update(single.get(name, {}))
        if not tabular and name != SKIP_ONLY:
            found[name]["retrain"] = 0  # what is found is trained afterwards, alike for all
    return found


def _settings_of(name: str, tabular: bool) -> tuple[str, ...]:
    """Return the names of the settings that the searches of a strategy have."""
    from eclose.train.protocols import Protocol

    strategy = STRATEGIES.get(name)
    if strategy.kind != "black-box":
        return (*SHARED, *strategy.settings)
    options = tuple(key for key in OPTIONS if key not in OWNED)
    training = tuple(entry.name for entry in fields(Protocol) if entry.name not in ("name", "source"))
    return (*options, *strategy.settings, *(() if tabular else training))


def _table(table: Any, space: Space) -> Any:
    """Return the table that judges."""
    from eclose.tasks import task as named_task

    judge = named_task(table) if isinstance(table, str) else table
    if not getattr(judge, "tabular", False):
        raise RequestError(f"table= is a tabular task such as tabular:cifar10@200, not {table!r}")
    if judge.space != space.name:
        raise RequestError(f"{judge.name} holds the terms of {judge.space}, not of {space.name}")
    return judge


def _training(judge: Any, asked: Any, final: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the name of the final training and what was set of it; None where a table judges."""
    if judge is not None:
        for key, value in (("protocol", asked), (FINAL, final)):
            if value:
                raise RequestError(f"{judge.name} is a table; nothing is trained in the end, so {key}= means nothing")
        return None
    from eclose.train.protocols import protocol

    if asked is not None and not isinstance(asked, str):
        raise RequestError(f"protocol= is a protocol's name, which the folder keeps, not {asked!r}; register yours")
    return {"name": protocol(asked or "quick", **final).name, **final}


def _skips(names: Sequence[str], space: Space) -> tuple[Term | None, list[str]]:
    """Return the skip-only term, or a note why there is none."""
    from eclose.spaces.skip_only import skip_only

    try:
        return skip_only(space), []
    except RequestError as error:
        return None, [f"There is no row {SKIP_ONLY}: {error}."]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:60] + " ... " + text[-15:]


def opened(out: str | Path, request: CompareRequest) -> Path:
    """Return the folder of a comparison with the request in it, new or as it was begun.

    Args:
        out: a folder that does not exist, is empty, or was begun with the same request.
        request: what is asked.
    """
    from eclose.runs import write_text
    from eclose.runs.errors import writing
    from eclose.runs.files import sweep

    if not as_folder(out):
        raise RequestError(f"out= is the path of a folder, not {out!r}")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"{folder} is a file; a comparison needs a folder of its own")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    file = folder / FILE
    if file.exists():
        request.refuse_other(_kept(file), folder)
        return folder
    if any(folder.iterdir()):
        raise RequestError(f"{folder} is not empty and holds no {FILE}; choose another folder")
    write_text(file, json.dumps(request.plain(), indent=2) + "\n")
    return folder


def _kept(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise RequestError(f"{file} cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


__all__ = ["FILE", "RANDOM", "SKIP_ONLY", "CompareRequest", "Plan", "as_seeds", "opened", "requested", "split_settings"]
