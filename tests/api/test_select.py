"""`eclose.select`, and searches whose selection is a long one."""

from __future__ import annotations

import json
import shutil

import pytest

import eclose as ec
from eclose.strategies.gradient.selection import SELECTIONS

SEARCH = {"epochs": 2, "channels": 4, "cells": 1, "batch_size": 50, "retrain": 0, "checkpoint_every": 1}
TASK = "digits:subset=150"


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    ec.search("nasbench201", TASK, "darts", out=folder, **SEARCH)
    return folder


@pytest.fixture
def run(searched, tmp_path):
    return shutil.copytree(searched, tmp_path / "run")


class Stop(Exception):
    """A kill."""


def stopping(decisions):
    def watch(kind, what):
        if kind == "selection" and what[0] == decisions:
            raise Stop

    return watch


def test_magnitude_is_what_the_search_itself_selected(run):
    found = ec.select(run)
    ended = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    (end,) = [event for event in ended if event["event"] == "search-end"]
    assert str(found.term) == end["term"]
    assert found.score == pytest.approx(end["score"])
    assert (found.by, found.epoch, found.path) == ("magnitude", 2, run / "selections" / "magnitude-epoch-0002.json")


def test_the_result_is_a_file(run):
    before = {path.name for path in run.iterdir()}
    found = ec.select(run, "perturbation", epoch=1, interval=1)
    assert [path.name for path in (run / "selections").iterdir()] == ["perturbation-epoch-0001.json"]
    assert {path.name for path in run.iterdir()} == {*before, "selections"}
    kept = json.loads((run / "selections" / "perturbation-epoch-0001.json").read_text())
    assert (kept["kind"], kept["by"], kept["epoch"]) == ("selection", "perturbation", 1)
    assert (kept["term"], kept["score"], kept["settings"]) == (str(found.term), found.score, {"interval": 1})
    assert kept["steps"] == list(found.steps)
    assert [set(step) for step in kept["steps"]] == [{"choice", "scores", "kept", "epoch"}] * 6
    assert kept["seconds"] > 0


def test_a_selection_that_is_done_is_read_again(run):
    first = ec.select(run, "perturbation", interval=1)
    assert ec.select(run, "perturbation", interval=1, watch=stopping(1)) == first
    with pytest.raises(ec.RequestError, match="interval=1; give this one another name="):
        ec.select(run, "perturbation", interval=2)
    assert ec.select(run, "perturbation", interval=2, name="slow").path == run / "selections" / "slow.json"


def test_a_killed_selection_goes_on(run, searched, tmp_path):
    wanted = ec.select(shutil.copytree(searched, tmp_path / "other"), "perturbation", interval=1)
    for decisions in (2, 5):
        with pytest.raises(Stop):
            ec.select(run, "perturbation", interval=1, watch=stopping(decisions))
    assert not list((run / "selections").glob("*.json"))
    told = []
    found = ec.select(run, "perturbation", interval=1, watch=lambda kind, what: told.append(what))
    assert (found.term, found.score, found.steps) == (wanted.term, wanted.score, wanted.steps)
    assert [done for done, _, _ in told] == [5, 6]
    assert [path.suffix for path in (run / "selections").iterdir()] == [".json"]  # its state is not needed any more


def test_an_interrupted_search_can_be_selected_from(tmp_path):
    def watch(kind, what):
        if kind == "epoch" and what[0] == 1:
            raise Stop

    with pytest.raises(Stop):
        ec.search("nasbench201", TASK, "darts", out=tmp_path / "run", watch=watch, **{**SEARCH, "epochs": 3})
    found = ec.select(tmp_path / "run")
    assert found.epoch == 1
    assert found.term in ec.space("nasbench201")


def test_constraints_of_the_search_can_be_replaced(run):
    free = ec.select(run, name="free")
    features = str(free.term).count("conv")
    assert features < 6
    held = ec.select(run, name="held", least_features=6)
    assert str(held.term).count("conv") == 6
    assert "id" not in str(ec.select(run, name="none", most_skips=0).term)


def test_every_selection_works_on_a_run(run):
    quick = {"sampled": {"samples": 4}, "perturbation": {"interval": 1, "batches": 1}, "finetune": {"batches": 1}}
    for entry in SELECTIONS:
        assert ec.select(run, entry.name, **quick.get(entry.name, {})).term in ec.space("nasbench201")


def test_a_task_from_python_is_given_again(tmp_path):
    task = ec.task(TASK)
    handle = ec.search("nasbench201", task, "darts", out=tmp_path / "run", **SEARCH)
    with pytest.raises(ec.RequestError, match="give it again"):
        ec.select(tmp_path / "run")
    assert ec.select(tmp_path / "run", task=task).term == handle.best.term
    assert ec.select(handle, name="again").term == handle.best.term  # what a search returns knows its task


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"by": "magnitud"}, "did you mean 'magnitude'"),
        ({"by": "perturbation", "epoch": 7}, "no checkpoint after 7 epochs"),
        ({"epoch": "last"}, "whole number"),
        ({"interval": 2}, "magnitude has no setting 'interval'"),
        ({"most_skip": 2}, "did you mean 'most_skips'"),
        ({"most_skips": "few"}, "most_skips is a whole number"),
        ({"by": "perturbation", "topology": True}, "keeps all its edges"),
        ({"name": "../best"}, "name of a file"),
    ],
)
def test_wrong_requests_are_refused_and_leave_nothing(run, request_, message):
    with pytest.raises(ec.RequestError, match=message):
        ec.select(run, **request_)
    assert not (run / "selections").exists()


def test_runs_without_checkpoints_or_supernets_are_refused(run, tmp_path):
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(ec.RequestError, match="keeps no checkpoints"):
        ec.select(run)
    table = tmp_path / "table"
    ec.search("nasbench201", "tabular:cifar10@12->200", "random", budget=2, out=table)
    with pytest.raises(ec.RequestError, match="trains no supernet"):
        ec.select(table)
    with pytest.raises(ec.RequestError, match="out= of the search"):
        ec.select(ec.search("nasbench201", "tabular:cifar10@12->200", "random", budget=2))


def test_a_file_that_is_no_result_is_not_overwritten(run):
    (run / "selections").mkdir()
    (run / "selections" / "magnitude-epoch-0002.json").write_text("{}")
    with pytest.raises(ec.RequestError, match="no result of a selection"):
        ec.select(run)


def test_a_search_selects_by_perturbation_and_resumes_in_the_middle_of_it(tmp_path):
    settings = {**SEARCH, "epochs": 1, "selection": "perturbation"}
    task = "digits:subset=100"
    wanted = ec.search("nasbench201", task, "darts", **settings)
    with pytest.raises(Stop):
        ec.search("nasbench201", task, "darts", out=tmp_path / "run", watch=stopping(4), **settings)
    told = []
    found = ec.resume(tmp_path / "run", watch=lambda kind, what: told.append((kind, what)))
    assert (found.best.term, found.best.score) == (wanted.best.term, wanted.best.score)
    assert [what[0] for kind, what in told if kind == "selection"] == [4, 5, 6]
