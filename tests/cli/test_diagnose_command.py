"""`eclose diagnose` as a process: its output, its progress, and wrong requests in one line."""

from __future__ import annotations

import json

import pytest

from support.command_line import eclose, refused


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    settings = ("epochs=2", "channels=2", "cells=1", "batch_size=25", "retrain=0", "checkpoint_every=1")
    arguments = [part for setting in settings for part in ("--set", setting)]
    done = eclose(
        "search", "--space", "nasbench201", "--task", "digits:subset=100", "--strategy", "darts", "--device", "cpu",
        *arguments, "--out", str(out),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


def test_diagnoses_are_told_in_lines(run):
    done = eclose(
        "diagnose", str(run), "--what", "gap", "--what", "anytime", "--epoch", "2", "--batches", "1",
        "--table", "tabular:cifar10@200", "--device", "cpu",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("gap ") and first.endswith("at epoch 2")
    assert second.startswith("anytime ") and "at epoch 1, " in second
    assert done.stderr.splitlines() == ["gap 1/1: epoch 2", "anytime 2/2: epochs", f"report: {run / 'report.html'}"]
    assert "Gap of discretisation" in (run / "report.html").read_text()


def test_json_is_all_there_is(run):
    arguments = ("--what", "landscape", "--landscape", "theta", "--points", "3", "--radius", "0.5", "--device", "cpu")
    done = eclose("diagnose", str(run), *arguments, "--json")
    assert done.stderr == ""
    found = json.loads(done.stdout)["landscape"]
    assert found == json.loads((run / "diagnosis" / "landscape.json").read_text())
    assert (found["axis"], found["space"], found["epoch"]) == ([-0.5, 0.0, 0.5], "theta", 2)


def test_wrong_requests_are_one_line(run, tmp_path):
    assert "did you mean 'landscape'" in refused("diagnose", str(run), "--what", "landscap")
    assert "no checkpoint after 9 epochs" in refused("diagnose", str(run), "--what", "gap", "--epoch", "9")
    assert "there is no run in" in refused("diagnose", str(tmp_path / "nothing"))
    assert "odd number" in refused("diagnose", str(run), "--what", "landscape", "--points", "4")
