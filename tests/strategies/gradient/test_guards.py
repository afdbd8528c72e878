"""Guards in whole searches: a curvature that grows by a script, and what the search makes of it."""

from __future__ import annotations

import json

import pytest
import torch

import eclose as ec
from eclose.algebra.errors import RequestError
from eclose.diagnose.hessian import Spectrum
from eclose.strategies.gradient.mixtures.rule import MixtureRule
from eclose.strategies.gradient.probe import Probe
from eclose.strategies.gradient.search import GradientSearch

TASK = "digits:subset=120"
SPACE = """
Net -> Sequential(conv(channels=8), Edge, Edge, Edge, head)
Edge -> id | conv(kernel=3) | relu
"""
SETTINGS = {"batch_size": 60, "retrain": 0, "crop": 0, "architecture_rate": 0.05}
GROWTH = 1.1
STOPPED, RETURNED = 17, 11
"""Counted from 0, no epoch before 10 may be returned. The older window around 10 is 8..12, the newer one, four later,
is 12..16: the rule first speaks when 17 epochs are finished, and returns to where 11 were."""


class Stop(Exception):
    """A kill."""


@pytest.fixture
def growing(monkeypatch):
    """Let the largest eigenvalue grow by a tenth an epoch: 1.1^4 = 1.46 > 1.3 over four."""

    def scripted(probe, *, weight_decay, seed, samples):
        value = GROWTH**seed  # of the finished epochs
        return Spectrum(value, value, value, trace_error=0.0, size=1, method="dense", products=1)

    monkeypatch.setattr(Probe, "spectrum", scripted)


def log(folder) -> list[dict]:
    found = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()][1:]
    return [{key: value for key, value in event.items() if key != "seconds"} for event in found]


def of(folder, kind: str) -> list[dict]:
    return [event for event in log(folder) if event["event"] == kind]


def state(folder, epochs: int):
    return torch.load(folder / "checkpoints" / f"epoch-{epochs:04d}.pt", weights_only=True)


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def stopping(*epochs: int):
    """Stop when these epochs have been told, one after the other."""
    left = list(epochs)

    def watch(kind, what):
        if kind == "epoch" and left and what[0] == left[0]:
            left.pop(0)
            if not left:
                raise Stop

    return watch


@pytest.mark.usefixtures("growing")
def test_darts_es_stops_and_takes_the_architecture_of_the_epoch_before_the_growth(tmp_path):
    found = ec.search(SPACE, TASK, "darts-es", out=tmp_path, epochs=30, **SETTINGS)
    assert [event["epoch"] for event in of(tmp_path, "epoch")] == list(range(STOPPED))
    assert [event["hessian"]["largest"] for event in of(tmp_path, "architecture")] == pytest.approx(
        [GROWTH**epoch for epoch in range(1, STOPPED + 1)]
    )
    (end,) = of(tmp_path, "search-end")
    assert end["epochs"] == RETURNED
    assert f"grew by {GROWTH**4:.2f} from epoch {RETURNED} on" in end["reason"]
    looks = {event["epoch"]: event["term"] for event in of(tmp_path, "architecture")}
    assert end["term"] == looks[RETURNED - 1] == str(found.best.term)
    # with the weights of that epoch, too
    assert ec.select(tmp_path, epoch=RETURNED).score == pytest.approx(end["score"])


@pytest.mark.usefixtures("growing")
def test_darts_es_lets_a_search_end_whose_curvature_grows_less(tmp_path):
    ec.search(SPACE, TASK, "darts-es", out=tmp_path, epochs=18, guard_limit=GROWTH**4 * 1.01, **SETTINGS)
    (end,) = of(tmp_path, "search-end")
    assert (end["reason"], end["epochs"]) == ("", 18)


@pytest.mark.usefixtures("growing")
def test_darts_ada_goes_back_with_ten_times_the_weight_decay_up_to_its_largest(tmp_path):
    ec.search(SPACE, TASK, "darts-ada", out=tmp_path, epochs=18, **SETTINGS)
    assert [(event["from"], event["to"]) for event in of(tmp_path, "return")] == [(STOPPED, RETURNED)] * 2
    assert [event["weight_decay"] for event in of(tmp_path, "return")] == pytest.approx([3e-3, 3e-2])
    again = list(range(RETURNED, STOPPED))
    assert [event["epoch"] for event in of(tmp_path, "epoch")] == [*range(STOPPED), *again, *again, STOPPED]
    (end,) = of(tmp_path, "search-end")
    assert (end["reason"], end["epochs"]) == ("", 18)
    looks = of(tmp_path, "architecture")
    assert end["term"] == looks[-1]["term"]


@pytest.mark.usefixtures("growing")
def test_what_follows_a_return_is_a_search_with_that_weight_decay_from_that_state(tmp_path):
    """The epochs after the last return are those of a search that took up the kept state with weight decay 0.03."""
    ec.search(SPACE, TASK, "darts-ada", out=tmp_path / "ada", epochs=18, **SETTINGS)
    recipe = json.loads((tmp_path / "ada" / "run.json").read_text())["request"]["settings"]
    from eclose.strategies.gradient.recipe import Recipe

    settings = Recipe(**{**recipe, "guard": "none", "weight_decay": 0.03})
    search = GradientSearch(ec.Space.from_grammar(SPACE, name="row"), ec.task(TASK), settings, seed=0, device="cpu")
    made = search.made(0)
    loop = search.loop(made, 0)
    kept = state(tmp_path / "ada", RETURNED)["loop"]
    # this loop has no guard: of the callbacks' states the last but one is the guard's
    kept["callbacks"] = [*kept["callbacks"][:-2], kept["callbacks"][-1]]
    loop.load_state_dict(kept)
    loop.run()
    assert same(made.supernet.net.state_dict(), state(tmp_path / "ada", 18)["loop"]["model"])


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize("epochs", [(STOPPED - 1,), (12, 12), (RETURNED - 1, RETURNED, RETURNED), (12, 12, 12)])
def test_darts_ada_interrupted_between_returns_is_undisturbed(epochs, tmp_path):
    ec.search(SPACE, TASK, "darts-ada", out=tmp_path / "whole", epochs=18, **SETTINGS)
    with pytest.raises(Stop):
        ec.search(SPACE, TASK, "darts-ada", out=tmp_path / "killed", epochs=18, watch=stopping(*epochs),
                  **SETTINGS)  # fmt: skip
    ec.resume(tmp_path / "killed")
    assert log(tmp_path / "killed") == log(tmp_path / "whole")
    assert same(state(tmp_path / "killed", 18)["loop"]["model"], state(tmp_path / "whole", 18)["loop"]["model"])


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize("name", ["darts-ada", "darts-es"])
def test_killed_where_the_guard_has_spoken_and_nothing_has_been_done_yet(name, tmp_path, monkeypatch):
    ec.search(SPACE, TASK, name, out=tmp_path / "whole", epochs=18, **SETTINGS)

    def killed(*_):
        raise Stop

    with monkeypatch.context() as broken:
        broken.setattr(GradientSearch, "_returned" if name == "darts-ada" else "_selected", killed)
        with pytest.raises(Stop):
            ec.search(SPACE, TASK, name, out=tmp_path / "killed", epochs=18, **SETTINGS)
    found = ec.resume(tmp_path / "killed")
    assert log(tmp_path / "killed") == log(tmp_path / "whole")
    assert found.best.term == ec.parse((tmp_path / "whole" / "best.term").read_text())


def test_a_search_full_of_skips_is_stopped_after_ten_epochs(tmp_path, monkeypatch):
    def skipping(rule, alphas, generator):
        with torch.no_grad():
            for name, alpha in alphas.items():
                alpha.zero_()
                alpha[rule.sites[name].skips[0]] = 20.0

    monkeypatch.setattr(MixtureRule, "initialise", skipping)
    given = {**SETTINGS, "channels": 4, "cells": 1, "architecture_rate": 1e-4, "epochs": 12, "guard": "skips"}
    ec.search("nasbench201", TASK, "darts", out=tmp_path / "stopped", guard_limit=5, **given)
    (end,) = of(tmp_path / "stopped", "search-end")
    assert end["epochs"] == 10
    assert end["reason"] == "a cell of the derived architecture has 6 skip connections, more than 5"
    ec.search("nasbench201", TASK, "darts", out=tmp_path / "fine", guard_limit=6, **given)
    (end,) = of(tmp_path / "fine", "search-end")
    assert (end["reason"], end["epochs"]) == ("", 12)


@pytest.mark.parametrize(
    "settings",
    [
        {"hessian_every": 0},
        {"checkpoint_every": 0},
        {"checkpoint_every": 5},
        {"hessian_every": 5, "checkpoint_every": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["darts-es", "darts-ada"])
def test_a_guard_that_could_not_act_is_refused(name, settings):
    with pytest.raises(RequestError, match="returns to an epoch whose Hessian was measured; set hessian_every=1 and"):
        ec.search(SPACE, TASK, name, epochs=20, **SETTINGS, **settings)
