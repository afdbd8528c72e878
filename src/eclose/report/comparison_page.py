"""A comparison for people, from its plain data: aligned text, or one self-contained page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eclose.report.intervals import Sample, intervals
from eclose.report.markup import Markup, element, facts, joined, table
from eclose.report.page import page
from eclose.report.record import duration, grouped

Plain = Mapping[str, Any]
NONE = "-"
HEADS = (
    "strategy",
    "searches",
    "networks",
    "mean",
    "95 % interval",
    "best",
    "over searches",
    "over retrainings",
    "failed",
)
PAIRS = ("difference", "seeds", "mean", "95 % interval", "p", "p corrected", "better")


def comparison_text(found: Plain) -> str:
    """Return a comparison as text: the rows, the differences in pairs, the notes."""
    lines = [f"{_what(found)}, {_label(found)}", ""]
    lines += _aligned(HEADS, list(_rows(found)))
    lines += ["over searches, over retrainings: standard deviations between searches, between trainings of one network"]
    if found["pairs"]:
        lines += ["", *_aligned(PAIRS, list(_pairs(found)))]
    lines += ["", *(f"* {note}" for note in found["notes"])]
    return "\n".join(lines) + "\n"


def comparison_page(found: Plain) -> str:
    """Return a comparison as one HTML page."""
    numeric = range(1, len(HEADS))
    sections = [
        ("Strategies", joined([_chart(found), table(HEADS, _rows(found), numeric=numeric), _legend(found)])),
        ("Differences", _differences(found)),
        ("What this does not show", element("ul", *(element("li", note) for note in found["notes"]))),
        ("Searches", _searches(found)),
        ("Settings", _settings(found)),
    ]
    request = found["request"]
    count = len(request["seeds"])
    again = len(request["retrain_seeds"])
    trained = f"each network trained {again} time{'s' * (again != 1)}" if again else "networks looked up in a table"
    lead = joined(
        [
            element("h1", _what(found)),
            element("p", f"{count} search{'es' * (count != 1)} by each strategy, {trained}.", class_="soft"),
            element("div", *_figures(found), class_="figures"),
        ]
    )
    return page(f"eclose: {_what(found)}", lead, sections)


def _what(found: Plain) -> str:
    names = [row["strategy"] for row in found["rows"]]
    listed = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
    return f"{listed} on {found['request']['space']} for {found['request']['task']}"


def _label(found: Plain) -> str:
    """Return what is compared, with its unit."""
    metric = found["metric"]
    unit = f" in {metric['unit']}" if metric.get("unit") else ""
    where = f" by {found['request']['table']}" if found["request"]["table"] else ""
    way = "larger" if metric["direction"] == "maximise" else "smaller"
    return f"{metric['name']} on the {found['part']} part{unit}{where}; {way} is better"


def _number(found: Plain, value: float | None, sign: str = "") -> str:
    """Return a score with as many decimals as all scores of the comparison."""
    if value is None or not math.isfinite(value):
        return NONE
    largest = max((abs(row["mean"]) for row in found["rows"] if row["mean"] is not None), default=1.0)
    return f"{value:{sign}.{2 if largest >= 10 else 4}f}"


def _interval(found: Plain, ends: Sequence[float] | None, sign: str = "") -> str:
    return NONE if ends is None else f"{_number(found, ends[0], sign)} to {_number(found, ends[1], sign)}"


def _rows(found: Plain) -> Iterator[list[str]]:
    for row in found["rows"]:
        failed = [f"{row[f'failed_{kind}']} {kind}" for kind in ("searches", "retrainings") if row[f"failed_{kind}"]]
        yield [
            row["strategy"],
            str(len(row["searches"])) if row["searched"] else "none",
            str(row["networks"]),
            _number(found, row["mean"]),
            _interval(found, row["interval"]),
            _number(found, row["best"]),
            _number(found, row["deviation_over_searches"]),
            _number(found, row["deviation_over_retrainings"]),
            ", ".join(failed) or "0",
        ]


def _pairs(found: Plain) -> Iterator[list[str]]:
    for pair in found["pairs"]:
        yield [
            f"{pair['first']} - {pair['second']}",
            str(len(pair["seeds"])),
            _number(found, pair["mean"], "+"),
            _interval(found, pair["interval"], "+"),
            f"{pair['p']:.3g}",
            f"{pair['p_holm']:.3g}",
            pair["better"] or "undecided",
        ]


def _chart(found: Plain) -> Markup:
    samples = []
    for row in found["rows"]:
        done = [search for search in row["searches"] if search["mean"] is not None]
        titles = [
            f"seed {search['seed']}: {_number(found, search['mean'])}" if row["searched"] else row["strategy"]
            for search in done
        ]
        ends = row["interval"]
        samples.append(
            Sample(
                row["strategy"],
                [search["mean"] for search in done],
                titles,
                row["mean"],
                None if ends is None else (ends[0], ends[1]),
                frames=row["searched"],
            )
        )
    title = f"{_what(found)}: a dot for each search, its mean and interval"
    return element("div", intervals(samples, x=_label(found), title=title), class_="drawing")


def _legend(found: Plain) -> Markup:
    return element(
        "p",
        "A dot is one search, worth the mean of its network's trainings; diamond and line are the mean over searches "
        "and its 95 % interval (Student). The two standard deviations are different things: over searches is between "
        "what searches with different seeds give, over retrainings between trainings of one and the same network.",
        class_="soft",
    )


def _differences(found: Plain) -> Markup:
    if not found["pairs"]:
        return element("p", "There are no two rows to compare.", class_="soft")
    exact = all(pair["exact"] for pair in found["pairs"])
    how = "over all patterns of signs" if exact else "over patterns of signs, drawn where there are too many"
    count = len(found["pairs"])
    corrected = f"; corrected for {count} pairs by Holm's method" if count > 1 else ""
    remark = (
        f"First minus second, paired by the searches' seeds; a network that nobody searched for stands at every seed. "
        f"p is that of the two-sided sign-flip test {how}{corrected}. "
        f"Better is named where the corrected p is at most 0.05."
    )
    numeric = range(1, len(PAIRS) - 1)
    return joined([table(PAIRS, _pairs(found), numeric=numeric), element("p", remark, class_="soft")])


def _searches(found: Plain) -> Markup:
    heads = (
        "strategy",
        "seed",
        "score",
        "in the search",
        "trainings",
        "parameters",
        "multiply-adds",
        "took",
        "network",
    )
    rows = []
    for row in found["rows"]:
        for search in row["searches"]:
            trainings = [
                _number(found, training["score"]) if "score" in training else "failed"
                for training in search["trainings"]
                if training["seed"] is not None
            ]
            network: Any = element("code", search["term"])
            if search["failed"]:
                network = element("span", f"failed: {search['failed']}", class_="bad")
            rows.append(
                [
                    row["strategy"],
                    NONE if search["seed"] is None else str(search["seed"]),
                    _number(found, search["mean"]),
                    _number(found, search["score"]),
                    ", ".join(trainings) or NONE,
                    *(grouped(search["costs"].get(name, NONE)) for name in ("parameters", "multiply_adds")),
                    NONE if search["seconds"] is None else duration(search["seconds"]),
                    network,
                ]
            )
    told = [place for place in range(len(heads)) if any(cells[place] != NONE for cells in rows)]
    return table(
        [heads[place] for place in told],
        [[cells[place] for place in told] for cells in rows],
        numeric=range(1, len(told) - 1),
    )


def _settings(found: Plain) -> Markup:
    request = found["request"]
    pairs: list[tuple[str, str]] = [
        ("space", request["space"]),
        ("task", request["task"]),
        ("search seeds", _listed(request["seeds"])),
        ("retrain seeds", _listed(request["retrain_seeds"]) or "none: networks are looked up"),
    ]
    if request["protocol"] is not None:
        pairs.append(("training of networks found", _named(request["protocol"])))
    pairs += [(key, str(request[key])) for key in ("table", "device", "data") if request[key] is not None]
    pairs += [(name, _named(settings) or "as by default") for name, settings in request["strategies"].items()]
    return facts(pairs)


def _figures(found: Plain) -> Iterator[Markup]:
    unit = " %" if found["metric"].get("unit") == "%" else ""
    for row in found["rows"]:
        yield element("div", element("b", _number(found, row["mean"]) + unit), element("span", row["strategy"]),
                      class_="figure")  # fmt: skip


def _named(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" if key != "name" else str(value) for key, value in settings.items())


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return columns of text, the first aligned to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]


__all__ = ["comparison_page", "comparison_text"]
