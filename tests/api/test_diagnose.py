"""`ec.diagnose`: its files, what is measured again and what is not, the report, and wrong requests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

import eclose as ec
from eclose._api import diagnoses
from eclose.diagnose.ranks import kendall, spearman
from eclose.runs import Run
from eclose.strategies.gradient.diagnoses import curvature
from eclose.tabular.nasbench201 import table

TABLE = "tabular:cifar10@200"


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "cells"
    ec.search(
        "nasbench201", "digits:subset=200", "darts", out=out, epochs=3, channels=4, cells=1, batch_size=50, retrain=0,
        checkpoint_every=1, hessian_every=1, device="cpu",
    )  # fmt: skip
    return out


@pytest.fixture
def run(searched, tmp_path):
    shutil.copytree(searched, tmp_path / "run")
    return tmp_path / "run"


def kept(run, kind):
    return json.loads((run / "diagnosis" / f"{kind}.json").read_text())


def test_everything_that_applies_is_measured_kept_and_told(run):
    told = []
    found = ec.diagnose(
        run, table=TABLE, points=3, samples=4, batches=1, device="cpu", watch=lambda *what: told.append(what)
    )
    assert list(found) == ["hessian", "gap", "landscape", "strength", "correlation", "anytime"]
    for kind, content in found.items():
        assert content == kept(run, kind)
        assert content["kind"] == kind
    assert [row["epoch"] for row in found["gap"]["rows"]] == [1, 2, 3]
    assert found["landscape"]["epoch"] == found["strength"]["epoch"] == found["correlation"]["epoch"] == 3
    assert len(found["landscape"]["loss"]) == 3
    assert [value for kind, value in told if kind == "phase"] == list(found)
    assert ("diagnosis", (9, 9, "epoch 3")) in told
    page = (run / "report.html").read_text()
    for heading in ("Curvature", "Landscape", "Gap of discretisation", "Strength of operations", "Anytime performance"):
        assert f"<h2>{heading}</h2>" in page


def test_the_search_measures_the_same_curvature(run):
    found = ec.diagnose(run, "hessian", device="cpu")["hessian"]
    seen = {event["epoch"] + 1: event["hessian"] for event in Run.open(run).of_kind("architecture")}
    for row in found["rows"]:
        for key in ("largest", "norm"):
            assert row[key] == pytest.approx(seen[row["epoch"]][key], rel=1e-4)
        # A search estimates the trace from fewer directions than a diagnosis.
        assert row["trace"] == pytest.approx(seen[row["epoch"]]["trace"], abs=0.2 * row["norm"] * 30)
    assert (found["batch"], found["method"]) == (50, "lanczos")


def test_ranks_are_those_of_the_table(run):
    found = ec.diagnose(run, "correlation", table=TABLE, samples=6, batches=1, device="cpu")["correlation"]
    accuracies = table().accuracy("cifar10", "test", 200)
    true = [float(accuracies[table().row(ec.parse(term))]) for term in found["terms"]]
    shared = [point[0] for point in found["points"]]
    assert [point[1] for point in found["points"]] == pytest.approx(true)
    assert found["tau"] == pytest.approx(kendall(shared, true))
    assert found["spearman"] == pytest.approx(spearman(shared, true))
    first = shared.index(max(shared))
    assert found["regret"] == {"1": pytest.approx(max(true) - true[first]), "10": 0.0}
    more = ec.diagnose(run, "correlation", table=TABLE, samples=7, batches=1, device="cpu")["correlation"]
    assert more["terms"][:6] == found["terms"]


def test_anytime_needs_the_log_alone(run, monkeypatch):
    monkeypatch.setattr("eclose._api.gradient_runs.opened", None)
    shutil.rmtree(run / "checkpoints")
    found = ec.diagnose(run, "anytime", table="tabular:cifar100@12->200")["anytime"]
    accuracies = table().accuracy("cifar100", "test", 200)
    events = Run.open(run).of_kind("architecture")
    assert [(row["epoch"], row["term"]) for row in found["rows"]] == [(e["epoch"] + 1, e["term"]) for e in events]
    assert [row["score"] for row in found["rows"]] == pytest.approx(
        [float(accuracies[table().row(ec.parse(event["term"]))]) for event in events]
    )


# What is measured again


def test_a_row_is_measured_once(run, monkeypatch):
    first = ec.diagnose(run, "hessian", epochs=[1, 3], device="cpu")["hessian"]
    real, measured = curvature.curvature, []

    def counted(context, **options):
        measured.append(options)
        return real(context, **options)

    monkeypatch.setattr(curvature, "curvature", counted)
    again = ec.diagnose(run, "hessian", device="cpu")["hessian"]
    assert len(measured) == 1
    assert [row["epoch"] for row in again["rows"]] == [1, 2, 3]
    assert again["rows"][::2] == first["rows"]
    assert ec.diagnose(run, "hessian", device="cpu")["hessian"] == again
    assert len(measured) == 1
    dense = ec.diagnose(run, "hessian", epochs=2, method="dense", device="cpu")["hessian"]
    assert (len(measured), dense["method"], len(dense["rows"])) == (2, "dense", 1)


def test_an_interrupted_diagnosis_goes_on(run, monkeypatch):
    real, calls = curvature.curvature, []

    def failing(context, **options):
        calls.append(options["seed"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(context, **options)

    monkeypatch.setattr(curvature, "curvature", failing)
    with pytest.raises(KeyboardInterrupt):
        ec.diagnose(run, "hessian", device="cpu")
    assert [row["epoch"] for row in kept(run, "hessian")["rows"]] == [1]
    ec.diagnose(run, "hessian", device="cpu")
    assert calls == [1, 2, 2, 3]


def test_an_interrupted_strength_keeps_its_choices(run, monkeypatch):
    from eclose.strategies.gradient.diagnoses import strengths

    real, names = strengths.choice_strength, []

    def failing(context, name, **options):
        names.append(name)
        if len(names) == 3:
            raise KeyboardInterrupt
        return real(context, name, **options)

    monkeypatch.setattr(strengths, "choice_strength", failing)
    with pytest.raises(KeyboardInterrupt):
        ec.diagnose(run, "strength", batches=1, device="cpu")
    found = ec.diagnose(run, "strength", batches=1, device="cpu")["strength"]
    assert len(names) == 3 + 4
    assert list(found["choices"]) == [*names[:2], *names[3:]]
    taus = [choice["tau"] for choice in found["choices"].values() if choice["tau"] is not None]
    assert found["tau"] == pytest.approx(sum(taus) / len(taus))


def test_a_checkpoint_that_was_written_again_is_measured_again(run, monkeypatch):
    ec.diagnose(run, ["hessian", "landscape"], points=1, device="cpu")
    later = kept_time(run, "hessian") + 100
    os.utime(run / "checkpoints" / "epoch-0002.pt", (later, later))
    measured = []
    real = curvature.curvature
    monkeypatch.setattr(
        curvature, "curvature", lambda context, **options: measured.append(options["seed"]) or real(context, **options)
    )
    ec.diagnose(run, ["hessian", "landscape"], points=1, device="cpu")
    assert measured == [2]


def kept_time(run, kind):
    return (run / "diagnosis" / f"{kind}.json").stat().st_mtime


def test_a_damaged_file_is_made_again(run):
    good = ec.diagnose(run, "gap", epochs=3, batches=1, device="cpu")["gap"]
    (run / "diagnosis" / "gap.json").write_text('{"kind": "gap", "rows": [')
    assert ec.diagnose(run, "gap", epochs=3, batches=1, device="cpu")["gap"] == good


def test_a_number_that_is_none_becomes_null(run, monkeypatch):
    monkeypatch.setattr(
        curvature,
        "curvature",
        lambda context, **_: {"largest": float("nan"), "norm": 1.0, "trace": 0, "method": "dense"},
    )
    found = ec.diagnose(run, "hessian", epochs=1, device="cpu")["hessian"]
    assert found["rows"] == [{"epoch": 1, "largest": None, "norm": 1.0, "trace": 0}]
    assert "NaN" not in (run / "diagnosis" / "hessian.json").read_text()


def test_the_report_of_a_run_that_is_driven_is_left_alone(run):
    (run / "report.html").write_text("the driver's")
    with Run.resume(run):
        ec.diagnose(run, "anytime", table=TABLE)
    assert (run / "report.html").read_text() == "the driver's"
    ec.diagnose(run, "anytime", table=TABLE)
    assert "Anytime performance" in (run / "report.html").read_text()


def test_the_handle_of_a_search_can_be_diagnosed(tmp_path):
    handle = ec.search(
        "nasbench201", "digits:subset=60", "darts", out=tmp_path / "run", epochs=1, channels=2, cells=1, batch_size=15,
        retrain=0, device="cpu",
    )  # fmt: skip
    assert len(ec.diagnose(handle, "gap", batches=1, device="cpu")["gap"]["rows"]) == 1


# Wrong requests


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ("hesian", {}, "unknown diagnosis 'hesian'; did you mean 'hessian'"),
        ("zzz", {}, "known: hessian, gap"),
        ("gap", {"point": 3}, "no option 'point'; did you mean 'points'"),
        ("landscape", {"points": 4}, "odd number of points"),
        ("landscape", {"points": 3.0}, "points is a whole number"),
        ("landscape", {"radius": -1}, "radius above 0"),
        ("gap", {"batches": -1}, "batches must be at least 0"),
        ("gap", {"epochs": 7}, "no checkpoint after 7 epochs; there are those after 1, 2, 3"),
        ("correlation", {}, "correlation compares with a table; name one"),
        ("anytime", {"table": "digits"}, "'digits' is no table"),
        ("anytime", {"table": "tabular:cifar11@200"}, "did you mean 'cifar10'"),
    ],
)
def test_wrong_requests(run, what, options, message):
    with pytest.raises(ec.RequestError, match=message):
        ec.diagnose(run, what, device="cpu", **options)


def test_a_run_without_supernet_or_checkpoints_is_refused(run, tmp_path):
    ec.search("tiny", "digits:subset=60", "random", out=tmp_path / "trials", budget=1, epochs=1, retrain=0)
    with pytest.raises(ec.RequestError, match="searched by random, which trains no supernet"):
        ec.diagnose(tmp_path / "trials")
    with pytest.raises(ec.RequestError, match="there is no run in"):
        ec.diagnose(tmp_path / "nothing")
    with pytest.raises(ec.RequestError, match="diagnosed by its folder, not by 3"):
        ec.diagnose(3)
    shutil.rmtree(run / "checkpoints")
    for what in ("hessian", "landscape", None):
        with pytest.raises(ec.RequestError, match="keeps no checkpoints of its supernet yet"):
            ec.diagnose(run, what, device="cpu")


def test_a_space_without_table_is_said(tmp_path):
    with Run.create(
        tmp_path / "run", {"strategy": "darts", "space": "darts", "settings": {"mixture": "softmax"}}
    ) as run:
        with pytest.raises(ec.RequestError, match="no finished epoch"):
            ec.diagnose(tmp_path / "run", "anytime", table=TABLE)
        run.append("architecture", epoch=0, term="Residual(conv, id, conv)")
    with pytest.raises(ec.RequestError, match=r"cannot say what terms of darts score: .*the space 'nasbench201' only"):
        ec.diagnose(tmp_path / "run", "anytime", table=TABLE)


def test_alphas_that_mean_nothing_are_said(tmp_path):
    request = {"strategy": "darts", "space": "nasbench201", "settings": {"mixture": "uniform-path"}}
    Run.create(tmp_path / "run", request).close()
    with pytest.raises(ec.RequestError, match="mean nothing with mixture='uniform-path'"):
        ec.diagnose(tmp_path / "run", "gap")
    with pytest.raises(ec.RequestError, match="has no alphas to diagnose; with table="):
        ec.diagnose(tmp_path / "run")


def test_the_name_is_a_function_whatever_was_imported_before():
    for before in ("", "import eclose.diagnose.ranks", "from eclose.diagnose import gap", "ec.search"):
        code = f"import eclose as ec\n{before}\ntry: ec.diagnose(3)\nexcept ec.RequestError as error: print(error)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "a run is diagnosed by its folder, not by 3"


def test_every_diagnosis_is_described():
    assert all(entry.description for entry in diagnoses.DIAGNOSES.values())
    known = set(diagnoses.Options.__dataclass_fields__)
    assert all(set(entry.options) <= known for entry in diagnoses.DIAGNOSES.values())
