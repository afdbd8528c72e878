"""`eclose compare` as a process: its output, its progress, Ctrl-C, and wrong requests in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from support.command_line import eclose, refused
from support.processes import heeding_interrupts

TABLE = ("compare", "--space", "nasbench201", "--task", "tabular:cifar10@12->200")
DIGITS = ("compare", "--space", "tiny", "--task", "digits:subset=120", "--device", "cpu")


def test_a_comparison_on_a_table(tmp_path):
    arguments = (
        *TABLE, "--strategy", "evolution", "--seeds", "2,7", "--budget", "8", "--set", "evolution.population=3",
        "--set", "tournament=2", "--out", str(tmp_path / "c"),
    )  # fmt: skip
    done = eclose(*arguments)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[3:6]] == ["evolution", "random", "skip-only"]
    assert "54.30" in lines[5]
    assert re.findall(r"search (\d) of 4: (\w+), seed (\d)", done.stderr) == [
        ("1", "evolution", "2"),
        ("2", "random", "2"),
        ("3", "evolution", "7"),
        ("4", "random", "7"),
    ]
    assert (tmp_path / "c" / "comparison.html").exists()
    again = eclose(*arguments, "--json")
    assert again.stderr == ""
    found = json.loads(again.stdout)
    assert found == json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert found["request"]["strategies"]["evolution"] == {"budget": 8, "tournament": 2, "population": 3}
    assert eclose("resume", str(tmp_path / "c" / "random" / "seed-7")).returncode == 0
    message = refused(*arguments, "--set", "duplicates=allow")
    assert "holds another comparison" in message and "strategies" in message


def test_ctrl_c_ends_it_and_the_same_command_goes_on(tmp_path):
    arguments = (
        *DIGITS, "--strategy", "random", "--seeds", "2", "--retrain-seeds", "2", "--budget", "2", "--set", "epochs=2",
        "--set", "final.epochs=1", "--out",
    )  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "eclose", *arguments, str(tmp_path / "c")],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=heeding_interrupts,
    )
    log = tmp_path / "c" / "random" / "seed-0" / "events.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and b"proposed" in log.read_bytes()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    if process.returncode != 0:  # it may have been faster than the signal
        assert process.returncode == 130, errors
        assert "the same command goes on where it was" in errors
        assert "Traceback" not in errors
    rows = [
        json.loads(eclose(*arguments, str(tmp_path / name), "--json").stdout)["rows"] for name in ("c", "undisturbed")
    ]
    interrupted, undisturbed = ([search["mean"] for search in row[0]["searches"]] for row in rows)
    assert interrupted == undisturbed


WRONG = [
    (TABLE, "with --out"),
    ((*TABLE, "--out", "c"), "say which strategies are compared"),
    ((*TABLE, "--strategy", "evoluton", "--out", "c"), "did you mean 'evolution'?"),
    ((*TABLE, "--strategy", "random", "--seeds", "0", "--out", "c"), "seeds must be at least 1"),
    ((*TABLE, "--strategy", "random", "--seeds", "three", "--out", "c"), "--seeds is a number of seeds or a list"),
    ((*TABLE, "--strategy", "random", "--retrain-seeds", "2", "--out", "c"), "retrain_seeds= means nothing"),
    ((*TABLE, "--strategy", "random", "--table", "tabular:cifar10@200", "--out", "c"), "is a table already"),
    ((*DIGITS, "--strategy", "random", "--table", "tabular:cifar10@200", "--out", "c"), "not of tiny"),
    ((*DIGITS, "--strategy", "random", "--set", "popluation=3", "--out", "c"), "unknown setting 'popluation'"),
    ((*TABLE, "--strategy", "evolution", "--set", "popluation=3", "--out", "c"), "did you mean 'population'?"),
    ((*TABLE, "--strategy", "evolution", "--set", "evolutin.population=3", "--out", "c"), "did you mean 'evolution'?"),
    ((*TABLE, "--strategy", "random", "--set", ".budget=3", "--out", "c"), "written STRATEGY.KEY"),
    ((*TABLE, "--strategy", "random", "--budget", "3", "--set", "budget=3", "--out", "c"), "give one of them"),
    ((*TABLE, "--strategy", "random", "--set", "protocol=quick", "--out", "c"), "--protocol quick"),
    ((*TABLE, "--strategy", "random", "--set", "table=x", "--out", "c"), "no setting of a search"),
    ((*TABLE, "--strategy", "random", "--budget", "soon", "--out", "c"), "a budget is"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_request_gives_one_clear_line(arguments, message, tmp_path):
    assert message in refused(*arguments, folder=tmp_path)
    assert not (tmp_path / "c").exists()


def test_a_folder_that_is_taken_is_refused(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.tex").write_text("years of work")
    assert "is not empty" in refused(*TABLE, "--strategy", "random", "--out", "c", folder=tmp_path)
    assert (tmp_path / "c" / "thesis.tex").read_text() == "years of work"
