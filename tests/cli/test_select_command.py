"""`eclose select` as a process."""

from __future__ import annotations

import json
import shutil

import pytest

from support.command_line import eclose, refused

SEARCH = ("epochs=2", "channels=4", "cells=1", "batch_size=50", "retrain=0", "checkpoint_every=1")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    settings = [part for pair in SEARCH for part in ("--set", pair)]
    done = eclose("search", "--space", "nasbench201", "--task", "digits:subset=150", "--strategy", "darts",
                  "--out", str(folder), *settings)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_a_selection_is_printed_and_kept(searched, tmp_path):
    run = shutil.copytree(searched, tmp_path / "run")
    done = eclose("select", str(run), "--by", "perturbation", "--epoch", "1", "--set", "interval=1", "--name", "mine",
                  "--out", str(tmp_path / "best.term"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    kept = json.loads((run / "selections" / "mine.json").read_text())
    assert kept["term"] in done.stdout
    assert "selection 6/6" in done.stderr
    assert (tmp_path / "best.term").read_text().strip() == kept["term"]
    again = eclose("select", str(run), "--by", "perturbation", "--epoch", "1", "--set", "interval=1", "--name", "mine",
                   "--json")  # fmt: skip
    shown = json.loads(again.stdout)
    assert (shown["term"], shown["score"], shown["steps"]) == (kept["term"], kept["score"], kept["steps"])
    assert again.stderr == ""


def test_mistakes_are_said_in_one_line(searched, tmp_path):
    run = shutil.copytree(searched, tmp_path / "run")
    assert "did you mean 'perturbation'" in refused("select", str(run), "--by", "pertubation")
    assert "--help" in refused("select", str(run), "--set", "epoch=1")
    assert "no folder" in refused("select", str(run), "--out", str(tmp_path / "nowhere" / "best.term"))
