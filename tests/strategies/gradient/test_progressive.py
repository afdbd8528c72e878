"""A search in stages: what the second takes over from the first, and interruptions in it and at its border."""

from __future__ import annotations

import json

import pytest
import torch

import eclose as ec
from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.progress import next_stage
from eclose.strategies.gradient.steps import WEIGHTS
from support.small_supernets import search_of

TASK = "digits:subset=120"
SETTINGS = {"channels": 4, "cells": 1, "batch_size": 50, "retrain": 0, "crop": 0, "frozen": 0, "checkpoint_every": 1,
            "architecture_rate": 0.05, "epochs": 5, "stages": "2:4:5 3:2:3"}  # fmt: skip
KEPT = 3


class Stop(Exception):
    """A kill."""


def log(folder) -> list[dict]:
    found = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()][1:]
    return [{key: value for key, value in event.items() if key != "seconds"} for event in found]


def state(folder, epochs: int):
    return torch.load(folder / "checkpoints" / f"epoch-{epochs:04d}.pt", weights_only=True)


def best_of(alpha: torch.Tensor) -> list[int]:
    return sorted(torch.topk(alpha, KEPT).indices.tolist())


@pytest.fixture(scope="module")
def stages():
    """Return the first stage trained, the second as it begins, and both loops."""
    search = search_of("nasbench201", subset=120, mixture="dirichlet", channels=4, cells=1, epochs=5,
                       stages="2:4:5 3:2:3", architecture_rate=0.05)  # fmt: skip
    first = search.made(0)
    first.rule.initialise(first.supernet.alphas, torch.Generator().manual_seed(0))
    before = search.loop(first, 0)
    before.run()
    second = next_stage(search, first, before, 0)
    after = search.loop(second, 1)
    second.carry(after)
    return search, first, before, second, after


def test_the_best_alternatives_of_each_choice_go_on_with_their_alphas(stages):
    _, first, _, second, _ = stages
    assert first.supernet.alphas.keys() == second.supernet.alphas.keys()
    for name, alpha in first.supernet.alphas.items():
        best = best_of(alpha)
        assert sorted(second.rule.allowed[name]) == best
        now = second.supernet.alphas[name]
        assert torch.equal(now[best], alpha[best])
        assert torch.count_nonzero(now) <= KEPT
        dropped = [index for index in range(len(alpha)) if index not in best]
        assert now[dropped].tolist() == [0.0] * len(dropped)
        thetas = second.rule.expected({key: value.detach() for key, value in second.supernet.alphas.items()})[name]
        assert thetas[dropped].tolist() == [0.0] * len(dropped)
        assert float(thetas.sum()) == pytest.approx(1.0)


def test_weights_and_their_momentum_are_widened_alike(stages):
    _, first, before, second, after = stages
    old, new = dict(first.supernet.net.named_parameters()), dict(second.supernet.net.named_parameters())
    wider = [name for name in new if new[name].shape != old[name].shape]
    assert wider
    assert not any(name.startswith("alphas.") for name in wider)
    for name, parameter in old.items():
        if name.startswith("alphas."):
            continue
        inside = tuple(slice(0, size) for size in parameter.shape)
        assert torch.equal(new[name][inside], parameter)
        was = before.groups[WEIGHTS].running.state[parameter]["momentum_buffer"]
        now = after.groups[WEIGHTS].running.state[new[name]]["momentum_buffer"]
        assert now.shape == new[name].shape
        assert torch.equal(now[inside], was)
    moving = [before.groups[WEIGHTS].running.state[old[name]]["momentum_buffer"].abs().sum() for name in wider]
    assert sum(map(bool, moving)) > len(wider) / 2


def test_the_second_stage_goes_on_where_the_first_ended(stages):
    _, _, before, second, after = stages
    assert (before.position.epoch, before.until, before.epochs) == (2, 2, 5)
    assert (after.position.epoch, after.until, after.epochs) == (2, 5, 5)
    assert second.stage.partial == 2


def test_a_term_is_made_of_what_was_kept(tmp_path):
    ec.search("nasbench201", TASK, "drnas-progressive", out=tmp_path, **SETTINGS)
    assert [state(tmp_path, epochs)["stage"] for epochs in range(1, 6)] == [0, 0, 1, 1, 1]
    last = {name.removeprefix("alphas."): value for name, value in state(tmp_path, 2)["loop"]["model"].items()
            if name.startswith("alphas.")}  # fmt: skip
    allowed = state(tmp_path, 5)["rule"]["allowed"]
    assert len(allowed) == 6
    looks = [event for event in log(tmp_path) if event["event"] == "architecture"]
    for name, value in last.items():
        assert sorted(allowed[name]) == best_of(value)
        for number, look in enumerate(looks):
            positive = [index for index, theta in enumerate(look["weights"][name]) if theta > 0]
            assert positive == (list(range(5)) if number < 2 else best_of(value))


@pytest.mark.parametrize("epoch", [0, 1, 2, 3, 4])
def test_interrupted_anywhere_it_is_undisturbed(epoch, tmp_path):
    """Epoch 2 is the second stage's first: it stops there when only the first stage's end has been kept."""

    def stopping(kind, what):
        if kind == "epoch" and what[0] == epoch:
            raise Stop

    whole = ec.search("nasbench201", TASK, "drnas-progressive", out=tmp_path / "whole", **SETTINGS)
    with pytest.raises(Stop):
        ec.search("nasbench201", TASK, "drnas-progressive", out=tmp_path / "killed", watch=stopping, **SETTINGS)
    found = ec.resume(tmp_path / "killed")
    assert log(tmp_path / "killed") == log(tmp_path / "whole")
    one, other = state(tmp_path / "killed", 5), state(tmp_path / "whole", 5)
    assert one["rule"] == other["rule"]
    assert all(torch.equal(one["loop"]["model"][key], value) for key, value in other["loop"]["model"].items())
    assert found.history == whole.history


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stages": "2:4:5 2:2:3"}, "take 4 epochs, epochs=5; set both, for example epochs=4"),
        ({"stages": "2:4 3:2"}, "a stage is epochs:partial:operations such as 25:6:7, not '2:4'"),
        ({"stages": "two:4:5 3:2:3"}, "not 'two:4:5'"),
        ({"stages": "0:4:5 5:2:3"}, "epochs and parts of at least 1, not '0:4:5'"),
        ({"stages": "2:2:5 3:4:3"}, "a later stage cannot have fewer channels: '3:4:3'"),
        ({"stages": "2:4:5 3:1:3"}, "all with partial channels or all without"),
        ({"stages": "2:3:5 3:2:3"}, "cannot divide 4 channels evenly"),
        ({"stages": "2:4:5 3:3:3", "channels": 8}, "cannot divide 8 channels evenly"),
        ({"stages": ","}, "names none; a stage is epochs:partial:operations"),
    ],
)
def test_stages_that_cannot_be_are_refused_before_anything_begins(settings, message, tmp_path):
    with pytest.raises(RequestError, match=message):
        ec.search("nasbench201", TASK, "drnas-progressive", out=tmp_path / "run", **{**SETTINGS, **settings})
    assert not (tmp_path / "run").exists()
