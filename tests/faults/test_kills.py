"""A search that is killed at any moment and resumed writes the history of the undisturbed one."""

import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest

import eclose as ec
from eclose.runs import Run, read_events
from support.processes import ROOT, driver, finish, wait_for
from support.toy_search import history, toy_study

COUNT = 40


def recorded(folder: Path, **settings) -> list[dict]:
    """Return the history that a run's log holds."""
    with Run.resume(folder) as run:
        return toy_study(run=run, **settings).history


def killed(folder: Path, rng: Random, **settings) -> None:
    """Start or resume a search and kill it a random while after it has proposed its next trial."""
    pause = 0.15 * settings.get("workers", 1)  # so that some trials are left at the end
    process = driver(folder, COUNT, pause=pause, **settings)
    wait_for(process, 1)
    time.sleep(rng.random() * 0.2)
    process.kill()
    process.communicate()


def disturbed(folder: Path, kills: int, rng: Random, **settings) -> None:
    for _ in range(kills):
        killed(folder, rng, **settings)
    assert read_events(folder / "events.jsonl").good > 0
    finish(driver(folder, COUNT, **settings))


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_five_times_a_search_gives_the_bits_of_the_undisturbed_one(tmp_path, workers):
    disturbed(tmp_path / "one", 5, Random(workers), workers=workers)
    assert recorded(tmp_path / "one") == history(COUNT)
    trials = [event["number"] for event in read_events(tmp_path / "one" / "events.jsonl").events if _is_proposal(event)]
    assert trials == list(range(COUNT))  # nothing was proposed twice


def _is_proposal(event):
    return event["event"] == "proposed"


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_killed_five_times_a_search_in_a_storage_gives_the_same_bits(tmp_path, kind):
    url = {"sqlite": f"sqlite:///{tmp_path}/studies.db", "journal": f"journal://{tmp_path}/studies.log"}[kind]
    disturbed(tmp_path / "one", 5, Random(7), storage=url)
    assert recorded(tmp_path / "one", storage=url) == history(COUNT)
    assert recorded(tmp_path / "one") == history(COUNT)  # the run's log says the same


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_killed_again_and_again(tmp_path, workers, seed):
    disturbed(tmp_path / "one", 8, Random(f"{workers}/{seed}"), workers=workers, lag=4)
    assert recorded(tmp_path / "one", lag=4) == history(COUNT, lag=4)


def test_a_log_cut_at_any_byte_gives_the_same_bits(tmp_path):
    """Whatever moment a kill or a power cut chose, what is left is a beginning of the log."""
    folder = tmp_path / "one"
    with Run.create(folder, {}) as run:
        toy_study(run=run).run(12)
    content, undisturbed, rng = (folder / "events.jsonl").read_bytes(), history(12), Random(0)
    for _ in range(25):
        (folder / "events.jsonl").write_bytes(content[: rng.randrange(len(content))])
        with pytest.warns(ec.EcloseWarning) if _torn(folder) else nullcontext(), Run.resume(folder) as run:
            study = toy_study(run=run)
            study.run(12)
            assert study.history == undisturbed


def test_a_log_damaged_anywhere_gives_the_same_bits_and_says_what_was_lost(tmp_path):
    folder = tmp_path / "one"
    with Run.create(folder, {}) as run:
        toy_study(run=run).run(12)
    content, undisturbed, rng = (folder / "events.jsonl").read_bytes(), history(12), Random(1)
    for _ in range(15):
        at = rng.randrange(len(content))
        (folder / "events.jsonl").write_bytes(content[:at] + b"\0\0\0" + content[at + 3 :])
        with pytest.warns(ec.EcloseWarning, match=r"events\.jsonl|run\.json") as said, Run.resume(folder) as run:
            study = toy_study(run=run)
            study.run(12)
            assert study.history == undisturbed
        assert any("damaged" in str(each.message) or "dropped" in str(each.message) for each in said)


def _torn(folder):
    return not (folder / "events.jsonl").read_bytes().endswith(b"\n")


def test_a_second_process_on_a_run_folder_is_refused_in_one_line(tmp_path):
    first = driver(tmp_path / "one", COUNT, pause=0.2)
    wait_for(first, 2)
    second = driver(tmp_path / "one", COUNT)
    _, errors = second.communicate(timeout=60)
    assert second.returncode != 0
    assert f"is being driven by process {first.pid} on" in errors.strip().splitlines()[-1]
    first.kill()
    first.communicate()
    finish(driver(tmp_path / "one", COUNT))
    assert recorded(tmp_path / "one") == history(COUNT)


def test_a_second_process_on_a_study_in_a_storage_is_refused_in_one_line(tmp_path):
    url = f"sqlite:///{tmp_path}/studies.db"
    first = driver(tmp_path / "a" / "one", COUNT, pause=0.2, storage=url)
    wait_for(first, 2)
    second = driver(tmp_path / "b" / "one", COUNT, storage=url)
    _, errors = second.communicate(timeout=60)
    assert second.returncode != 0
    assert f"'one' in {url} is driven by process {first.pid} on" in errors.strip().splitlines()[-1]
    first.kill()
    first.communicate()
    finish(driver(tmp_path / "b" / "one", COUNT, storage=url))  # the process is gone, so another folder may go on
    assert recorded(tmp_path / "b" / "one", storage=url) == history(COUNT)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_in_a_terminal_leaves_a_run_that_can_be_resumed(tmp_path, workers):
    process = driver(tmp_path / "one", COUNT, pause=0.1, workers=workers)
    wait_for(process, 6)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "Interrupted: interrupted after" in errors.strip().splitlines()[-1]
    assert not (tmp_path / "one" / "lock").exists()
    finish(driver(tmp_path / "one", COUNT, workers=workers))
    assert recorded(tmp_path / "one") == history(COUNT)


def test_a_full_disk_is_one_clear_error_and_the_run_goes_on_when_there_is_space(tmp_path):
    """A real full disk: the process may write no file beyond a size."""
    folder = tmp_path / "one"
    program = f"""
import resource, signal, sys, warnings
sys.path.insert(0, "tests")
from support.toy_search import drive
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
drive({str(folder)!r}, {COUNT})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "events.jsonl could not be written" in done.stderr.strip().splitlines()[-1]
    assert (folder / "events.jsonl").read_bytes().endswith(b"\n")
    finish(driver(folder, COUNT))
    assert recorded(folder) == history(COUNT)
