"""Commands that list what there is: spaces, operators, tasks, strategies, protocols."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eclose.algebra.declarations import Operator
from eclose.algebra.errors import RequestError, did_you_mean
from eclose.cli.language import JsonOption
from eclose.cli.main import app
from eclose.cli.output import as_json, table, text


def listed(kind: str, entries: list[tuple[str, str]], json: bool) -> None:
    """Print `(name, description)` pairs, one a line."""
    if json:
        as_json({kind: [{"name": name, "description": description} for name, description in entries]})
    else:
        table(entries)


@app.command()
def spaces(json: JsonOption = False) -> None:
    """List the spaces."""
    from eclose.spaces import SPACES

    listed("spaces", [(entry.name, entry.description) for entry in SPACES], json)


@app.command()
def operators(
    name: Annotated[str | None, typer.Argument(help="One operator, explained.")] = None, json: JsonOption = False
) -> None:
    """List the operators, or explain one."""
    from eclose.algebra.registry import default_registry

    registry = default_registry()
    if name is None:
        listed("operators", [(operator.name, operator.description) for operator in registry], json)
        return
    if name not in registry:
        raise RequestError(f"unknown operator {name!r}{did_you_mean(name, registry.names())}")
    operator = registry.meant(name).operator
    facts = _facts(operator)
    if json:
        as_json(facts)
        return
    text(f"{operator.name}: {operator.description}")
    for key in ("children", "result", "role", "edges", "synonyms", "aliases"):
        if facts[key]:
            text(f"  {key}: {facts[key] if isinstance(facts[key], str) else ', '.join(map(str, facts[key]))}")
    for attribute in facts["attributes"]:
        default = "required" if attribute["required"] else f"default {attribute['default']}"
        text(f"  {attribute['name']}= {attribute['kind']}, {default}: {attribute['description']}")


def _facts(operator: Operator) -> dict[str, Any]:
    least, most = operator.children
    return {
        "name": operator.name,
        "description": operator.description,
        "children": "any number" if most is None else str(least) if least == most else f"{least} to {most}",
        "result": operator.result,
        "role": operator.role,
        "edges": [f"{start}-{end}" for start, end in operator.edges],
        "synonyms": list(operator.synonyms),
        "aliases": sorted({*operator.aliases, *operator.spellings}),
        "attributes": [
            {
                "name": key,
                "kind": attribute.kind,
                "default": "inherited" if attribute.default is None else attribute.default,
                "required": attribute.required,
                "description": attribute.description,
            }
            for key, attribute in operator.attributes.items()
        ],
        "tags": sorted(operator.tags),
    }


@app.command()
def tasks(json: JsonOption = False) -> None:
    """List the tasks."""
    from eclose.tasks.names import TASKS

    listed("tasks", [(entry.name, entry.description) for entry in TASKS], json)


@app.command()
def strategies(
    explain: Annotated[str | None, typer.Option("--explain", help="One strategy, with its settings.")] = None,
    json: JsonOption = False,
) -> None:
    """List the strategies, or explain one."""
    from eclose.strategies import STRATEGIES, explained

    if explain is None:
        listed("strategies", [(entry.name, entry.description) for entry in STRATEGIES], json)
        return
    found = STRATEGIES.get(explain)
    if json:
        facts = {"name": found.name, "kind": found.kind, "settings": dict(found.settings), "source": found.source}
        if found.kind == "gradient":
            facts["differing"] = dict(found.settings_of_paper)
            facts["spaces"] = {space: dict(changes) for space, changes in found.spaces.items()}
        as_json(facts)
    else:
        text(explained(explain))


@app.command()
def protocols(
    name: Annotated[str | None, typer.Argument(help="One protocol, with its settings.")] = None,
    json: JsonOption = False,
) -> None:
    """List the protocols of training, or show the settings of one."""
    from eclose.train.protocols import PROTOCOLS

    if name is None:
        listed("protocols", [(entry.name, entry.description) for entry in PROTOCOLS], json)
        return
    settings = PROTOCOLS.get(name).plain()
    if json:
        as_json(settings)
    else:
        table([(key, value) for key, value in settings.items() if value != ""])
