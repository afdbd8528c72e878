"""Searching, resuming, evaluating and reporting, as processes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import pytest

from support.command_line import eclose, refused
from support.processes import heeding_interrupts

TABLE = ("--space", "nasbench201", "--task", "tabular:cifar10@12->200")
DIGITS = (
    "--space",
    "tiny",
    "--task",
    "digits:subset=200",
    "--set",
    "epochs=1",
    "--set",
    "budget=3",
    "--set",
    "retrain=1",
)


class Page(HTMLParser):
    """Collects what a page would fetch, and its text."""

    def __init__(self):
        super().__init__()
        self.fetched, self.text = [], []

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("src", "href") and value and not value.startswith(("data:", "#")):
                self.fetched.append(value)

    def handle_data(self, data):
        self.text.append(data)


def test_a_search_of_a_table_ends_with_a_report(tmp_path):
    out = tmp_path / "run"
    done = eclose(
        "search", *TABLE, "--strategy", "evolution", "--set", "budget=30", "--set", "population=5", "--out", str(out)
    )
    assert done.returncode == 0, done.stderr
    assert "Cell(" in done.stdout
    assert "trial 30/30" in done.stderr
    page = Page()
    page.feed((out / "report.html").read_text())
    assert page.fetched == []
    assert "nasbench201" in " ".join(page.text)
    assert (out / "best.term").read_text().startswith("Cell(")
    found = json.loads(eclose("evaluate", str(out), "--task", "tabular:cifar10@200", "--json").stdout)
    assert 10 < found["test"] < 95
    assert eclose("report", str(out), "--out", str(tmp_path / "other.html")).returncode == 0
    assert (tmp_path / "other.html").exists()
    assert eclose("draw", str(out)).returncode == 0


def test_a_simulated_clock_ends_a_search(tmp_path):
    done = eclose(
        "search", *TABLE, "--strategy", "random", "--set", "budget=2000s", "--out", str(tmp_path / "run"), "--json"
    )
    found = json.loads(done.stdout)
    assert 5 < found["trials"] < 100
    assert set(found["final"]["values"]) == {"validation", "test"}


def test_a_search_that_trains(tmp_path):
    done = eclose("search", *DIGITS, "--strategy", "random", "--out", str(tmp_path / "run"), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["trials"] == 3
    assert found["final"]["part"] == "test"
    assert (tmp_path / "run" / "best.safetensors").exists()
    again = json.loads(eclose("resume", str(tmp_path / "run"), "--json").stdout)
    assert again["best"] == found["best"]


def test_interrupted_with_ctrl_c_says_how_to_go_on(tmp_path):
    arguments = (*DIGITS[:-2], "--set", "retrain=0", "--strategy", "random", "--out", str(tmp_path / "run"))
    process = subprocess.Popen(
        [sys.executable, "-m", "eclose", "search", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=heeding_interrupts,
    )
    log = tmp_path / "run" / "events.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and b"proposed" in log.read_bytes()):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    if process.returncode != 0:  # it may have been faster than the signal
        assert process.returncode == 130
        assert "eclose resume" in errors
        assert "Traceback" not in errors
    assert eclose("resume", str(tmp_path / "run")).returncode == 0


def test_a_dry_run_says_what_it_would_take():
    found = json.loads(eclose("search", *DIGITS, "--dry-run", "--json").stdout)
    assert found["fits"]
    assert found["seconds_a_step"] > 0
    assert found["predicted_bytes"] > 0
    assert "one step takes" in eclose("search", *DIGITS, "--dry-run").stdout
    huge = eclose("search", *DIGITS, "--set", "batch_size=1000000000", "--dry-run")
    assert huge.returncode == 1
    assert "accumulate=" in huge.stdout


def test_the_folder_of_a_run_knows_its_space_and_its_data(tmp_path):
    out = str(tmp_path / "run")
    settings = ("--set", "budget=1", "--set", "epochs=1", "--set", "retrain=1")
    assert eclose("search", "--space", "tiny", "--task", "digits:subset=120", *settings, "--out", out).returncode == 0
    built = json.loads(eclose("build", out, "--json").stdout)
    assert built["input"] == [1, 8, 8]
    assert built["output"] == [10]
    assert json.loads(eclose("cost", out, "--json").stdout)["parameters"] == built["parameters"]
    judged = json.loads(eclose("evaluate", out, "--task", "digits:subset=120", "--set", "epochs=1", "--json").stdout)
    assert judged["parameters"] == built["parameters"]
    assert judged["task"] == "digits:subset=120"


def test_progress_that_nobody_reads_does_not_end_the_work(tmp_path):
    arguments = ("search", *TABLE, "--strategy", "random", "--set", "budget=20", "--out", str(tmp_path / "run"))
    command = shlex.join([sys.executable, "-m", "eclose", *arguments])
    subprocess.run(["bash", "-c", f"{command} 2>&1 | head -1"], check=True, capture_output=True, timeout=60)
    assert (tmp_path / "run" / "best.term").exists()


def test_evaluate_a_term(tmp_path):
    done = eclose(
        "evaluate", "Sequential(conv, relu)", "--task", "digits:subset=200", "--set", "epochs=1", "--json",
        "--out", str(tmp_path / "result.json"),
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["part"] == "test"
    assert json.loads((tmp_path / "result.json").read_text()) == found


WRONG = [
    (("search", "--task", "digits"), "say what is searched"),
    (("search", *DIGITS), "say where the run is kept"),
    (("search", "--space", "tiny", "--task", "digts", "--out", "r"), "did you mean 'digits'?"),
    (("search", *DIGITS, "--strategy", "evoluton", "--out", "r"), "did you mean 'evolution'?"),
    (("search", *DIGITS, "--set", "popluation=3", "--out", "r"), "did you mean 'population'?"),
    (("search", *DIGITS, "--set", "epochs", "--out", "r"), "--set takes KEY=VALUE"),
    (("search", *DIGITS, "--set", "epochs=2", "--out", "r"), "--set gives epochs twice"),
    (("search", "--space", "tiny", "--task", "digits", "--set", "epochs=0", "--out", "r"), "epochs must be at least 1"),
    (("search", "--space", "tiny", "--task", "digits", "--set", "budget=0", "--out", "r"), "more than nothing"),
    (("search", "--space", "tiny", "--task", "digits", "--set", "budget=soon", "--out", "r"), "a budget is"),
    (("search", "--space", "tiny", "--task", "digits", "--set", "workers=0", "--out", "r"), "at least 1"),
    (
        ("search", "--space", "tiny", "--task", "digits", "--set", "duplicates=rejct", "--out", "r"),
        "did you mean 'reject'?",
    ),
    (("search", "--space", "tiny", "--task", "digits", "--device", "gpu", "--out", "r"), "unknown device"),
    (("search", "--space", "tiny", "--task", "tabular:cifar10@200", "--out", "r"), "holds the terms of nasbench201"),
    (("search", "--space", "nasbench201", "--task", "tabular:cifar10@13", "--out", "r"), "12 and for 200"),
    (("search", "--space", "tiny", "--task", "cifar10", "--data", "/no/such", "--out", "r"), "does not exist"),
    (("search", "--grammar", "none.grammar", "--task", "digits", "--out", "r"), "there is no file none.grammar"),
    (("resume", "nothing-here"), "there is no run in nothing-here"),
    (("report", "nothing-here"), "there is no run in nothing-here"),
    (("evaluate", "covn", "--task", "digits"), "did you mean 'conv'?"),
    (("evaluate", "conv", "--task", "digits", "--protocol", "quik"), "did you mean 'quick'?"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_request_gives_one_clear_line(arguments, message, tmp_path):
    assert message in refused(*arguments, folder=tmp_path)
    assert not (tmp_path / "r").exists()


def test_a_missing_data_set_says_which_files_go_where(tmp_path):
    message = refused("search", "--space", "tiny", "--task", "cifar10", "--data", str(tmp_path), "--out", "r")
    assert str(tmp_path) in message
    assert "data_batch" in message or "cifar-10" in message


def test_a_folder_that_is_taken_is_refused(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.tex").write_text("years of work")
    assert "not empty" in refused("search", *DIGITS, "--out", "r", folder=tmp_path)
    assert (tmp_path / "r" / "thesis.tex").read_text() == "years of work"


@pytest.mark.slow
def test_the_demonstration_compares_and_reports(tmp_path):
    done = eclose("demo", "--out", str(tmp_path / "demo"), "--json", timeout=600)
    found = json.loads(done.stdout)
    assert [row[0] for row in found["rows"]] == ["found", "fixed baseline"]
    assert all(row[1] > 95 for row in found["rows"])
    assert (tmp_path / "demo" / "report.html").exists()
