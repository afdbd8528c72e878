"""Every gradient strategy on two spaces, as a whole: what it leaves behind; an interruption changes no bit."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import eclose as ec
from eclose.strategies import STRATEGIES
from eclose.strategies.gradient.probe import Probe

TASK = "digits:subset=200"
SPACES = {"nasbench201": {"cells": 1}, "darts": {"cells": 2}}
TASKS = {"nasbench201": TASK, "darts": "digits:subset=100"}
"""Two steps an epoch, and one of the large cells."""
SMALL = {"epochs": 2, "channels": 4, "batch_size": 50, "retrain": 0, "checkpoint_every": 1, "frozen": 0, "crop": 0}
GRADIENT = [entry.name for entry in STRATEGIES if STRATEGIES.get(entry.name).kind == "gradient"]
OWN = {
    "drnas-progressive": {"stages": "1:4:0 1:2:4"},
    "sdarts-adv": {"attack_steps": 2},
    "enas": {"controller_steps": 2, "controller_samples": 2, "samples": 4},
    "rs-ws": {"samples": 4},
}
WITHOUT_ALPHAS = {"rs-ws", "enas"}
SINGLE_LEVEL = {"dsnas", "snas", "supernet-sgd"}


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*decisions stand nowhere in this supernet"),
    pytest.mark.filterwarnings("ignore:.*drops nothing"),
    pytest.mark.filterwarnings("ignore:.*cutout is left out"),
]


class Stop(Exception):
    """A kill."""


def settings_of(name: str, space: str) -> dict:
    measured = {"hessian_every": 2} if STRATEGIES.get(name).settings["hessian_every"] else {}
    return {**SMALL, **SPACES[space], **measured, **OWN.get(name, {})}


def stopping(kind, what):
    """Stop in the second epoch, after what the first has left."""
    if kind == "epoch" and what[0] == 1:
        raise Stop


def events(folder: Path) -> list[dict]:
    """Return what a run's log says, without what a clock or a folder decides."""
    found = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    for event in found:
        for key in ("seconds", "elapsed", "id", "created"):
            event.pop(key, None)
    return found


def state(folder: Path, epochs: int) -> dict:
    return torch.load(folder / "checkpoints" / f"epoch-{epochs:04d}.pt", weights_only=True)


def same_bits(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return (
            one.dtype == other.dtype and one.shape == other.shape and one.numpy().tobytes() == other.numpy().tobytes()
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_bits(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_bits, one, other))
    return one == other


def alphas_of(folder: Path, epochs: int) -> dict[str, torch.Tensor]:
    model = state(folder, epochs)["loop"]["model"]
    return {name: value for name, value in model.items() if name.startswith("alphas.")}


@pytest.fixture
def quick_spectrum(monkeypatch, request):
    """Let the 112 alphas of a DARTS cell be measured in no time: the bits of a search do not depend on it."""
    if request.node.callspec.params.get("space") == "darts":
        from eclose.diagnose.hessian import Spectrum

        found = Spectrum(1.0, 2.0, 1.5, trace_error=0.0, size=112, method="dense", products=1)
        monkeypatch.setattr(Probe, "spectrum", lambda *_, **__: found)


@pytest.mark.usefixtures("quick_spectrum")
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", GRADIENT)
def test_a_search_leaves_what_it_should_and_an_interruption_changes_no_bit(name, space, tmp_path):
    settings = settings_of(name, space)
    whole = ec.search(space, TASKS[space], name, out=tmp_path / "whole", **settings)
    leaves_the_schema(tmp_path / "whole", whole, name, space)
    with pytest.raises(Stop):
        ec.search(space, TASKS[space], name, out=tmp_path / "halved", watch=stopping, **settings)
    assert not (tmp_path / "halved" / "best.term").exists()
    halved = ec.resume(tmp_path / "halved")
    assert str(halved.best.term) == str(whole.best.term)
    assert events(tmp_path / "halved") == events(tmp_path / "whole")
    assert same_bits(state(tmp_path / "halved", 2), state(tmp_path / "whole", 2))
    assert halved.history == whole.history
    assert halved.best.score == whole.best.score


def leaves_the_schema(folder: Path, found, name: str, space: str) -> None:
    log = events(folder)
    kinds = [event["event"] for event in log]
    assert kinds == ["run", "supernet", "epoch", "architecture", "epoch", "architecture", "search-end", "end"]
    _, supernet, *_ = log
    assert set(supernet) == {"event", "choices", "parameters", "term"}
    assert all(set(entry) == {"kind", "labels", "keep", "skip", "zero"} for entry in supernet["choices"].values())
    weights = state(folder, 2)["loop"]["model"]
    trained = [value for key, value in weights.items() if not key.startswith("alphas.")]
    assert 0 < supernet["parameters"] <= sum(value.numel() for value in trained)
    parts = ("train",) if name in WITHOUT_ALPHAS | SINGLE_LEVEL else ("train", "valid")
    place = ec.space(space)
    for number, event in enumerate(event for event in log if event["event"] == "epoch"):
        assert (event["epoch"], event["phase"]) == (number, "search")
        assert set(event["values"]) == {f"{part}_{key}" for part in parts for key in ("loss", "score")}
        assert all(math.isfinite(value) for value in event["values"].values())
    looks = [event for event in log if event["event"] == "architecture"]
    for number, look in enumerate(looks):
        assert look["epoch"] == number
        assert ec.parse(look["term"]) in place.grammar
        for choice, thetas in look["weights"].items():
            assert len(thetas) == len(supernet["choices"][choice]["labels"])
            assert sum(thetas) == pytest.approx(1.0, abs=1e-4)
        assert 0.0 <= look["entropy"] <= 1.0
        assert set(look["entropies"]) <= set(supernet["choices"])
        assert set(look["skips"]) == {"derived", "dominant", "edges", "margin"}
        assert ("hessian" in look) == (name in ("darts-es", "darts-ada") and number == 1)
    end = log[-2]
    assert set(end) == {"event", "reason", "epochs", "term", "score"}
    assert (end["reason"], end["epochs"], end["term"]) == ("", 2, str(found.best.term))
    assert (folder / "best.term").read_text().strip() == end["term"]
    assert found.best.term in place.grammar
    if name not in WITHOUT_ALPHAS:
        assert end["term"] == looks[-1]["term"]
    assert [(entry["epoch"], entry["term"]) for entry in found.history] == [(n, e["term"]) for n, e in enumerate(looks)]
    before, after = alphas_of(folder, 1), alphas_of(folder, 2)
    moved = [not torch.equal(before[key], after[key]) for key in before]
    assert any(moved) is (name not in WITHOUT_ALPHAS)


@pytest.mark.parametrize("name", GRADIENT)
def test_a_search_again_gives_the_same_bits_and_another_seed_others(name, tmp_path):
    settings = {**settings_of(name, "nasbench201"), "epochs": 1, "hessian_every": 0}
    if name == "drnas-progressive":
        settings |= {"epochs": 2}
    if name in ("darts-es", "darts-ada"):
        settings |= {"hessian_every": 2}
    for folder, seed in (("one", 3), ("again", 3), ("other", 4)):
        ec.search("nasbench201", TASK, name, out=tmp_path / folder, seed=seed, **settings)
    one, again, other = (tmp_path / folder for folder in ("one", "again", "other"))
    assert events(one) == events(again)
    last = settings["epochs"]
    assert same_bits(state(one, last), state(again, last))
    assert not same_bits(state(one, last)["loop"]["model"], state(other, last)["loop"]["model"])


def test_a_search_whose_process_is_killed_goes_on_to_the_same_bits(tmp_path):
    """SIGKILL between checkpoints: what came after the last is done once more."""
    arguments = ["--space", "nasbench201", "--task", TASK, "--strategy", "gdas"]
    for key, value in {**settings_of("gdas", "nasbench201"), "epochs": 12, "retrain": 2}.items():
        arguments += ["--set", f"{key}={value}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def run(*command: str) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-m", "eclose", *command], env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = run("search", *arguments, "--out", str(whole))
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    process = run("search", *arguments, "--out", str(killed))
    log = killed / "events.jsonl"
    while process.poll() is None and not (log.exists() and log.read_bytes().count(b'"architecture"') >= 4):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stderr.close()
    process = run("resume", str(killed))
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert events(killed)[1:] == events(whole)[1:]
    assert same_bits(state(killed, 12), state(whole, 12))
    assert (killed / "best.safetensors").read_bytes() == (whole / "best.safetensors").read_bytes()


def test_a_killed_training_of_the_best_goes_on_from_its_own_state(tmp_path):
    settings = {**settings_of("darts", "nasbench201"), "retrain": 4}
    whole = ec.search("nasbench201", TASK, "darts", out=tmp_path / "whole", **settings)
    seen = []

    def stopping_in_the_end(kind, what):
        if kind == "phase":
            seen.append(what)
        if seen and kind == "epoch" and what[0] == 2:
            raise Stop

    folder = tmp_path / "killed"
    with pytest.raises(Stop):
        ec.search("nasbench201", TASK, "darts", out=folder, watch=stopping_in_the_end, **settings)
    assert (folder / "final.pt").exists()
    told = []
    shutil.copy(folder / "checkpoint.pt", tmp_path / "before.pt")
    found = ec.resume(folder, watch=lambda kind, what: told.append((kind, what)))
    assert [what[0] for kind, what in told if kind == "epoch"] == [2, 3]  # neither the search nor two epochs again
    assert (folder / "checkpoint.pt").read_bytes() == (tmp_path / "before.pt").read_bytes()
    assert found.final == whole.final
    assert (folder / "best.safetensors").read_bytes() == (tmp_path / "whole" / "best.safetensors").read_bytes()
    finals = [event for event in events(folder) if event.get("phase") == "final"]
    assert finals == [event for event in events(tmp_path / "whole") if event.get("phase") == "final"]
    assert [event["epoch"] for event in finals] == [0, 1, 2, 3]
