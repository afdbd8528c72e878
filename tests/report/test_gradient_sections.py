"""The sections of a gradient search: with and without what they tell, with texts that must be escaped."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from eclose.report import report_text
from eclose.report.charts import Series, chart, labels
from eclose.report.heat_maps import BANDS, FINE, heat_map
from eclose.report.panels import SKIP, ZERO, Mark, Panel, palette, panels
from eclose.report.record import Record
from eclose.report.sections.architecture import architecture, derived
from eclose.report.sections.curvature import curvature
from eclose.report.sections.training import supernet, training
from eclose.runs import Run

EVIL = "<script>alert('x')</script> & \"quoted\""
TERMS = ("Residual(conv, id)", "Residual(conv, conv)", "Residual(id, id)")

DIAGNOSES = {
    "hessian": {"rows": [{"epoch": 1, "largest": 0.5, "norm": 0.7, "trace": 2.0},
                         {"epoch": 2, "largest": None, "norm": 0.7, "trace": 2.0}], "method": EVIL, "batch": 64},
    "landscape": {"epoch": 2, "radius": 1.0, "space": EVIL, "axis": [-1.0, 0.0, 1.0],
                  "loss": [[1.0, 2.0, None], [1.0, 1.5, 2.0], [0.5, 1.0, 1.0]], "score": [[9.0] * 3] * 3},
    "gap": {"rows": [{"epoch": 1, "supernet": 90.0, "discrete": 80.0, "derived": None, "gap": 10.0, "sharpness": 0.1,
                      "loss_gap": 0.2}]},
    "strength": {"epoch": 2, "choices": {EVIL: {"labels": [EVIL, "id"], "weights": [0.4, 0.6], "scores": [50.0, None],
                                                "tau": None}}, "tau": 0.25},
    "correlation": {"epoch": 2, "points": [[10.0, 90.0], [12.0, 91.0]], "tau": 1.0, "spearman": None,
                    "regret": {"1": 0.0, "10": 0.0}, "table": EVIL, "terms": [EVIL, "b"]},
    "anytime": {"table": EVIL, "rows": [{"epoch": 1, "score": 60.0, "term": EVIL},
                                        {"epoch": 2, "score": 55.0, "term": "b"}]},
}  # fmt: skip
SELECTION = {"kind": "selection", "by": EVIL, "epoch": 2, "term": EVIL, "seconds": 3.0, "score": None, "steps": []}


def written(folder, *, epochs=3, diagnoses=None, selection=None):
    """A run as a gradient search leaves it, made of events alone."""
    with Run.create(folder, {"command": "search", "strategy": "darts", "space": "own"}) as run:
        run.append("supernet", parameters=7, term="choice(...)", choices={
            EVIL: {"kind": "choice", "labels": [EVIL, "id", "zero"], "keep": 1, "skip": [1], "zero": [2]},
            "node": {"kind": "pick", "labels": ["on", "on"], "keep": 1, "skip": [], "zero": []},
        })  # fmt: skip
        for epoch in range(epochs):
            run.append(
                "epoch", epoch=epoch, phase="search", values={"train_loss": 2.0 - epoch, "valid_score": 10.0 * epoch}
            )
            run.append(
                "architecture", epoch=epoch, term=TERMS[epoch % 3], entropy=0.9, entropies={EVIL: 0.9},
                weights={EVIL: [0.2, 0.5, 0.3], "node": [0.4, 0.6]},
                skips={"derived": 1, "dominant": 1, "edges": 1, "margin": None},
            )  # fmt: skip
    for kind, content in (diagnoses or {}).items():
        (folder / "diagnosis").mkdir(exist_ok=True)
        (folder / "diagnosis" / f"{kind}.json").write_text(json.dumps({"kind": kind, **content}))
    if selection:
        (folder / "selections").mkdir()
        (folder / "selections" / "own.json").write_text(json.dumps(selection))
    return folder


HEADINGS = {
    "hessian": "Curvature", "landscape": "Landscape", "gap": "Gap of discretisation",
    "strength": "Strength of operations", "correlation": "Ranks by shared weights", "anytime": "Anytime performance",
}  # fmt: skip


def headings(text):
    return re.findall("<h2>(.*?)</h2>", text)


def test_every_section_stands_and_nothing_is_unescaped(tmp_path):
    text = report_text(written(tmp_path / "run", diagnoses=DIAGNOSES, selection=SELECTION))
    expected = {"Training of the supernet", "Architecture by epoch", "Derived architectures", "Selections"}
    assert expected | set(HEADINGS.values()) <= set(headings(text))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert not re.search(r"\bnan\b", text.split("</style>")[1])
    pictures = re.findall("<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) > 12
    for picture in pictures:
        ElementTree.fromstring(picture)


@pytest.mark.parametrize("kind", DIAGNOSES)
def test_a_section_stands_where_its_file_does(tmp_path, kind):
    text = report_text(written(tmp_path / "run", diagnoses={kind: DIAGNOSES[kind]}))
    assert {name for name in HEADINGS.values() if name in headings(text)} == {HEADINGS[kind]}


def test_a_search_without_diagnoses_has_none(tmp_path):
    found = headings(report_text(written(tmp_path / "run")))
    assert not set(found) & {*HEADINGS.values(), "Selections"}
    assert "Architecture by epoch" in found


def test_operations_and_edges_have_panels_apart(tmp_path):
    with Run.open(written(tmp_path / "run")) as run:
        text = architecture(Record(run))
    operations, edges = text.split("<h3>Weight of each operation</h3>")[1].split("<h3>Weight of each edge</h3>")
    assert (operations.count("<svg"), edges.count("<svg")) == (1, 1)
    assert "edge 1" in edges and "edge 1" not in operations


def test_a_run_of_trials_has_no_section_of_supernets(tmp_path):
    with Run.create(tmp_path / "run", {"command": "search", "strategy": "random"}) as run:
        found = headings(report_text(run))
    assert not set(found) & {*HEADINGS.values(), "Architecture by epoch", "Training of the supernet", "Selections"}


def test_files_that_are_no_diagnosis_are_passed_over(tmp_path):
    folder = written(tmp_path / "run")
    (folder / "diagnosis").mkdir()
    for name, text in (("gap", '{"kind": "gap", "ro'), ("hessian", "[]"), ("anytime", '{"kind": "gap", "rows": []}')):
        (folder / "diagnosis" / f"{name}.json").write_text(text)
    assert not set(headings(report_text(folder))) & set(HEADINGS.values())


def test_epochs_of_search_and_of_the_best_network_are_told_apart(tmp_path):
    with Run.create(tmp_path / "run", {"command": "search"}) as run:
        run.append("epoch", epoch=0, phase="search", values={"train_loss": 1.0, "valid_loss": 2.0})
        assert training(Record(run)) is None
        assert supernet(Record(run)).count("<svg") == 1
        run.append("epoch", epoch=0, phase="final", values={"train_loss": 1.0, "test_score": 2.0})
        assert training(Record(run)).count("<svg") == 2


def test_an_epoch_that_was_searched_again_counts_once(tmp_path):
    with Run.create(tmp_path / "run", {"command": "search"}) as run:
        for epoch, term in ((0, "id"), (1, "conv"), (0, "conv"), (1, "conv")):
            run.append("architecture", epoch=epoch, term=term, entropy=0.5, weights={"a": [0.5, 0.5]}, skips={})
        text = derived(Record(run))
    assert "did not change in 2 epochs" in text
    assert re.findall("<h3>(.*?)</h3>", text) == ["After epoch 1"]


def test_derived_terms_are_drawn_where_they_change(tmp_path):
    with Run.open(written(tmp_path / "run", epochs=9)) as run:
        text = derived(Record(run))
    drawn = [int(number) for number in re.findall("After epoch (\\d+)", text)]
    assert drawn == [1, 9]  # epochs 4 and 7 have the first term again
    assert "changed 8 times in 9 epochs" in text


def test_curvature_of_the_search_alone(tmp_path):
    with Run.create(tmp_path / "run", {"command": "search"}) as run:
        assert curvature(Record(run)) is None
        run.append("architecture", epoch=0, term="id", hessian={"largest": 1.0, "norm": 1.0, "trace": 3.0})
        text = curvature(Record(run))
    assert text.count("<svg") == 2  # the norm is the largest eigenvalue
    assert "diagnosed" not in text


def test_weights_of_many_epochs_are_thinned(tmp_path):
    with Run.create(tmp_path / "run", {"command": "search"}) as run:
        for epoch in range(1000):
            run.append("architecture", epoch=epoch, term="id", entropy=0.5, weights={"a": [0.4, 0.6]}, skips={})
        text = architecture(Record(run))
    line = next(path for path in re.findall('<path d="(.*?)"', text) if path.count("L") == 199)
    assert line.startswith("M")


def test_the_report_loads_neither_torch_nor_strategies():
    code = "import sys, eclose.report.report as r; from eclose.algebra.declarations import resolve\n"
    code += "[resolve(reference) for _, reference in r.SECTIONS]\n"
    code += "print([m for m in sys.modules if m == 'torch' or m.startswith('eclose.strategies')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# The pictures


def test_heat_maps_put_values_where_they_belong():
    text = heat_map([-1.0, 0.0, 1.0], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 9.0]], x="x", y="y", title=EVIL)
    found = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="4.0" fill="[^"]*" fill-opacity="([\d.]+)"', text
    )
    darkest = max(found, key=lambda entry: float(entry[3]))
    assert (float(darkest[0]) > 300, float(darkest[1]) < 60) == (True, True)  # right and at the top: x = y = 1
    assert len({entry[3] for entry in found}) == BANDS
    across = sum(float(width) for _, y, width, _ in found if float(y) == 34.0)
    assert across == 4 * FINE
    assert "<script>alert" not in text


def test_heat_maps_stand_gaps_and_constants():
    assert "nothing to draw" in heat_map([0.0, 1.0], [[None, None], [None, None]], x="x", y="y", title="t")
    assert "the same everywhere" in heat_map([0.0, 1.0], [[3.0, 3.0], [3.0, 3.0]], x="x", y="y", title="t")
    holed = heat_map([-1.0, 0.0, 1.0], [[None, 1.0, 2.0], [1.0, 1.0, 2.0], [1.0, 1.0, 2.0]], x="x", y="y", title="t")
    assert "nan" not in holed


def test_panels_give_an_operation_one_colour():
    colours = palette(["id", "conv", "zero", "conv", "pool"], ["id"], ["zero"])
    assert (colours["id"], colours["zero"]) == (SKIP, ZERO)
    assert len(set(colours.values())) == 4
    given = [
        Panel(f"{EVIL}{i}", [Mark("conv", [(0.0, 0.1), (1.0, 0.2)]), Mark("id", [(0.0, float("nan"))])])
        for i in range(40)
    ]
    text = panels(given, colours, x="epoch", y="weight")
    assert text.count("<svg") == 40
    assert text.count(f'stroke="{colours["conv"]}"') == 40
    assert "4 more" in text
    assert "<script>alert" not in text
    assert "nothing to draw" in panels([], colours, x="epoch", y="weight")


def test_labels_of_an_axis_differ_where_there_is_room():
    assert labels([0.0, 0.5, 1.0]) == ["0", "0.5", "1"]
    assert labels([0.99998, 0.99999, 1.0]) == ["0.999980", "0.999990", "1.000000"]
    assert len(set(labels([1.0, 1.0 + 1e-12]))) == 1
    text = chart([Series("a", [(1.0, 1.0), (2.0, 2.0)])], x="x", y="y", counts=True)
    assert re.findall('text-anchor="end">(.*?)<', text) == ["1", "2"]
    bounded = chart([Series("a", [(1.0, 0.99), (2.0, 1.0)])], x="x", y="y", within=(0.0, 1.0))
    assert re.findall('text-anchor="end">(.*?)<', bounded)[0] == "0"
