"""The tables of docs/gradient-search.md say what the code says."""

import re
from pathlib import Path

from eclose.strategies import STRATEGIES, NamedStrategy
from eclose.strategies.gradient.recipe import KNOWN, Recipe
from eclose.strategies.gradient.selection import SELECTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "gradient-search.md").read_text()
STRUCTURE = ("partial", "edge_normalisation", "stages")
BESIDES = (
    "perturbation", "architecture_optimiser", "fix_margin", "weight_decay", "cutout", "drop_path", "hessian_every",
)  # fmt: skip


def rows(heading: str) -> dict[str, list[str]]:
    """Return the cells of the first table below a heading by the name in its first column."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in cells}


def own(found: NamedStrategy, keys: tuple[str, ...]) -> str:
    """Return those settings by which a strategy differs from darts."""
    values = {key: found.settings_of_paper[key] for key in keys if key in found.settings_of_paper}
    return ", ".join(f"`{key}={str(v).lower() if isinstance(v, bool) else v}`" for key, v in values.items())


def test_every_named_strategy_has_a_row_that_says_what_it_is():
    table = rows("Named strategies")
    gradient = [entry.name for entry in STRATEGIES if STRATEGIES.get(entry.name).kind == "gradient"]
    assert list(table) == gradient
    for name in gradient:
        found = STRATEGIES.get(name)
        mixture, step, structure, besides, selection, guard, paper = table[name]
        assert mixture == found.settings["mixture"]
        assert step == found.settings["step"]
        assert selection == found.settings["selection"]
        assert guard == ("" if found.settings["guard"] == "none" else found.settings["guard"])
        assert (structure, besides) == (own(found, STRUCTURE), own(found, BESIDES))
        assert paper == re.match(r".*?\d{4}", found.source)[0]


def test_every_part_has_a_row_with_the_names_that_it_takes():
    table = rows("The parts")
    for key, names in KNOWN.items():
        assert re.findall(r"`([^`]+)`", table[key][0]) == list(names)
    assert {entry.name for entry in SELECTIONS} == set(KNOWN["selection"])


def test_settings_that_the_page_names_exist():
    for key in re.findall(r"--set (?:final\.)?([a-z_]+)=", PAGE):
        assert hasattr(Recipe(), key) or key == "retrain", key
