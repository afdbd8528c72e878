"""A search with training and a training alone, killed at random moments and resumed: the undisturbed bits."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.command_line import eclose

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
KILLS = 5
SEARCH = (
    "search", "--space", "tiny", "--task", "digits:subset=120", "--strategy", "evolution", "--set", "population=6",
    "--set", "tournament=3", "--set", "budget=40", "--set", "epochs=1", "--set", "retrain=3",
)  # fmt: skip

TRAINING = """
import sys, hashlib, torch
from pathlib import Path
import eclose
from eclose.train.protocols import protocol
from eclose.train.training import train_network
torch.set_num_threads(1)
task = eclose.task("digits", subset=400)
torch.manual_seed(0)
net = eclose.build(eclose.space("tiny").sample(2), space="tiny", task=task)
print("begun", flush=True)
found = train_network(net, task, protocol("quick", epochs=12), seed=4, device="cpu", checkpoint=Path(sys.argv[1]),
                      on_epoch=lambda epoch, figures: print(epoch, flush=True), measure_every=True)
digest = hashlib.sha256()
for value in net.state_dict().values():
    digest.update(value.numpy().tobytes())
print("done", digest.hexdigest(), repr(found.figures["valid_score"]), repr(found.figures["train_loss"]))
"""


def history(folder: Path) -> list[dict]:
    """Return what a run's log says, without what a clock or a folder decides."""
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    for event in events:
        for key in ("seconds", "elapsed", "id", "created"):
            event.pop(key, None)
    return [event for event in events if event["event"] in ("proposed", "report", "finished", "epoch", "final")]


def without_repeats(events: list[dict]) -> list[dict]:
    """Return events once each: a trial that was killed is evaluated again and reports again."""
    return [event for index, event in enumerate(events) if event not in events[:index]]


def test_a_search_killed_at_random_moments_is_undisturbed(tmp_path):
    assert eclose(*SEARCH, "--out", str(tmp_path / "whole")).returncode == 0
    expected = history(tmp_path / "whole")
    killed, rng = tmp_path / "killed", random.Random(7)
    moments = sorted(rng.sample(range(4, len(expected) - 2), KILLS))
    command = [sys.executable, "-m", "eclose", *SEARCH, "--out", str(killed)]
    kills = 0
    for wanted in moments:
        process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        log = killed / "events.jsonl"
        while process.poll() is None and not (log.exists() and log.read_bytes().count(b"\n") >= wanted):
            time.sleep(0.005)
        time.sleep(rng.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        command = [sys.executable, "-m", "eclose", "resume", str(killed)]
    assert eclose("resume", str(killed)).returncode == 0
    assert kills >= KILLS - 1
    assert without_repeats(history(killed)) == expected
    assert (killed / "best.term").read_text() == (tmp_path / "whole" / "best.term").read_text()
    assert (killed / "best.safetensors").read_bytes() == (tmp_path / "whole" / "best.safetensors").read_bytes()


def test_a_training_killed_at_random_moments_is_undisturbed(tmp_path):
    script = tmp_path / "training.py"
    script.write_text(TRAINING)

    def run(file: Path) -> subprocess.Popen:
        command = [sys.executable, str(script), str(file)]
        return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)

    whole = run(tmp_path / "whole.pt").communicate(timeout=120)[0].splitlines()[-1]
    assert whole.startswith("done")
    rng = random.Random(3)
    for wanted in sorted(rng.sample(range(10), KILLS)):
        process = run(tmp_path / "killed.pt")
        for line in process.stdout:
            if line.strip().isdigit() and int(line) >= wanted:
                break
        time.sleep(rng.random() * 0.15)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert run(tmp_path / "killed.pt").communicate(timeout=120)[0].splitlines()[-1] == whole


@pytest.mark.parametrize("workers", [2, 4])
def test_any_number_of_workers_writes_one_history(workers, tmp_path):
    arguments = [*SEARCH[:-6], "--set", "budget=10", "--set", "epochs=1", "--set", "retrain=0", "--set", "lag=4"]
    for count in (1, workers):
        out = str(tmp_path / str(count))
        assert eclose(*arguments, "--set", f"workers={count}", "--out", out).returncode == 0
    one, many = (history(tmp_path / str(count)) for count in (1, workers))
    for kind in ("proposed", "finished"):
        in_order = [
            sorted((e for e in events if e["event"] == kind), key=lambda e: e["number"]) for events in (one, many)
        ]
        assert in_order[0] == in_order[1]
