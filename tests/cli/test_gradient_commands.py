"""Gradient searches from the command line: what is refused, an interruption, a dry run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from support.command_line import eclose, refused
from support.processes import heeding_interrupts


def sets(**settings) -> list[str]:
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


SMALL = sets(channels=4, cells=1, batch_size=50, retrain=0, crop=0)
DIGITS = ("--space", "nasbench201", "--task", "digits:subset=120", *SMALL)
EDGES = "Net -> Sequential(conv(channels=8), Edge, head)\nEdge -> {}"
WRONG = [
    (("darts-2nd", *sets(mixture="hard-gumbel")), "goes with the mixtures softmax and simplex"),
    (("darts", *sets(architecture_rat=0.1)), "did you mean 'architecture_rate'"),
    (("darts", *sets(budget=3)), "budget= means nothing; epochs= says how long"),
    (("darts", *sets(partial=3)), "cannot divide 4 channels evenly"),
    (("drnas-progressive", *sets(stages="1:4:0 1:2:0", epochs=3)), "take 2 epochs, epochs=3"),
    (("darts", *sets(split=0.999999)), "some, and not all, must be in it"),
    (("darts-es", *sets(hessian_every=0)), "whose Hessian was measured"),
    (("drts",), "did you mean 'darts'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_request_gives_one_clear_line(arguments, message, tmp_path):
    assert message in refused("search", *DIGITS, "--strategy", *arguments, "--out", "r", folder=tmp_path)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("rule", "message"),
    [("relu", "nothing to decide"), ("conv | Sequential(Edge, Edge)", "a recursive grammar cannot be relaxed")],
)
def test_a_grammar_without_a_supernet_gives_one_clear_line(rule, message, tmp_path):
    (tmp_path / "own.grammar").write_text(EDGES.format(rule))
    arguments = ("--grammar", "own.grammar", "--task", "digits:subset=120", "--strategy", "darts", "--out", "r")
    assert message in refused("search", *arguments, folder=tmp_path)
    assert not (tmp_path / "r").exists()


def test_a_table_and_a_folder_that_is_taken_are_refused(tmp_path):
    table = ("--space", "nasbench201", "--task", "tabular:cifar10@12", "--strategy", "darts")
    assert "nothing to train on" in refused("search", *table, "--out", "r", folder=tmp_path)
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.tex").write_text("years of work")
    assert "not empty" in refused("search", *DIGITS, "--strategy", "darts", "--out", "r", folder=tmp_path)
    assert (tmp_path / "r" / "thesis.tex").read_text() == "years of work"


def test_a_search_that_breaks_ends_with_one_line_and_status_1(tmp_path):
    done = eclose("search", *DIGITS, "--strategy", "darts", *sets(rate="1e30", clip=0.0), "--out", str(tmp_path / "r"))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("eclose: ")
    assert "in epoch 1" in last
    assert "Not finite" in last


def test_interrupted_halfway_it_says_how_to_go_on(tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "eclose", "search", *DIGITS, "--strategy", "darts", *sets(epochs=30), "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=heeding_interrupts,
    )
    log = out / "events.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and log.read_bytes().count(b'"architecture"') >= 2):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"continue with `eclose resume {out}`" in errors
    assert "Traceback" not in errors
    assert eclose("resume", str(out)).returncode == 0
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["epoch"] for event in events if event["event"] == "epoch"] == list(range(30))
    (end,) = [event for event in events if event["event"] == "search-end"]
    assert end["seconds"] > 0


def test_a_dry_run_predicts_the_supernet_and_measures_its_steps():
    arguments = ("search", *DIGITS, "--strategy", "darts", *sets(epochs=7), "--dry-run")
    found = json.loads(eclose(*arguments, "--json").stdout)
    assert found["fits"]
    assert (found["epochs"], found["steps_an_epoch"], found["batch_size"]) == (7, 2, 50)
    assert found["seconds_a_step"] > 0
    assert found["seconds_in_all"] == pytest.approx(found["seconds_a_step"] * 2 * 7)
    shown = eclose(*arguments).stdout
    assert f"the supernet has {found['parameters']:,} parameters" in shown
    assert "MiB predicted" in shown
    assert "2 of them are an epoch" in shown
    assert "7 epochs: about" in shown


def test_a_dry_run_of_what_does_not_fit_says_what_would():
    done = eclose("search", *DIGITS[:4], *sets(channels=4, cells=1, batch_size=10**9), "--strategy", "darts",
                  "--dry-run")  # fmt: skip
    assert done.returncode == 1
    assert "it does not fit: use batch_size=" in done.stdout
    assert "partial=4" in done.stdout
    assert "fewer channels=" in done.stdout


def test_a_dry_run_of_a_table_is_that_of_trials():
    done = eclose("search", "--space", "nasbench201", "--task", "tabular:cifar10@12", "--dry-run")
    assert "nothing is trained" in done.stdout
