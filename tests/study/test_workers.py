"""One history for any number of workers, and workers that die, hang or hoard are failed trials."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import eclose as ec
from eclose.runs import RunError
from eclose.study.executors import Job
from eclose.study.in_memory import run_in_memory
from eclose.study.results import Objective
from eclose.study.workers import WorkerProcesses
from support.processes import ROOT
from support.toy_search import Faulty, Toy, always_failing, history, toy_study

COUNT = 24


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_one_history_for_any_number_of_workers(workers):
    undisturbed = history(COUNT, lag=6)
    assert {trial["status"] for trial in undisturbed} == {"done", "failed"}
    study = toy_study(lag=6, workers=workers, evaluate=Toy(pause=0.02))
    study.run(COUNT)
    assert study.history == undisturbed
    if workers == 4:
        assert [trial.order for trial in study.trials] != list(range(COUNT))  # they did overtake each other


def test_the_first_session_s_workers_decide_the_lag():
    study = toy_study(lag=None, executor=WorkerProcesses(4))
    assert study.settings["lag"] == 12


def test_an_asynchronous_study_tells_results_as_they_come_in():
    study = toy_study(workers=2, evaluate=Toy(pause=0.02), asynchronous=True)
    study.run(12)
    told = study.strategy.told
    assert told == [trial.number for trial in sorted(study.trials, key=lambda trial: trial.order)][: len(told)]
    assert len(told) >= 10


def faulty(how, count=6, **limits):
    """Return the trials of an evaluator that ends badly for odd seeds; their seeds are those of an honest run."""
    study = toy_study(evaluate=Faulty(how), executor=WorkerProcesses(2, **limits), duplicates="allow")
    study.run(count)
    assert all((trial.status == "failed") == bool(trial.seed % 2) for trial in study.trials)
    assert {trial.status for trial in study.trials} == {"done", "failed"}
    return next(trial.result.reason for trial in study.trials if trial.status == "failed")


@pytest.mark.parametrize(
    ("how", "reason"),
    [("killed", "killed by SIGKILL"), ("exit", "exit status 7"), ("nan", "score is nan"), ("text", "returned str")],
)
def test_a_worker_that_crashes_is_a_failed_trial_and_the_others_go_on(how, reason):
    assert reason in faulty(how)


def test_a_trial_that_takes_too_much_memory_is_ended():
    assert "more memory than the limit of 256 MiB" in faulty("memory", 4, memory_limit=256 * 2**20)


def test_a_trial_that_takes_too_long_is_ended():
    began = time.monotonic()
    assert "longer than the limit of 0.3 s" in faulty("time", 4, time_limit=0.3)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(("how", "reason"), [("system exit", "SystemExit: 3"), ("inf", "score is inf")])
def test_in_this_process_too_a_bad_end_is_a_failed_trial(how, reason):
    trials = run_in_memory(toy_study().strategy, Faulty(how), 8)
    reasons = {trial.result.reason for trial in trials if trial.seed % 2}
    assert reasons == {reason}


def test_a_study_of_which_no_trial_finishes_says_so():
    with pytest.raises(RunError, match=r"none of the .* trials finished; trial 0 failed: RuntimeError: no data"):
        toy_study(evaluate=always_failing).run(3)
    with pytest.raises(RunError, match="none of the first 10 trials finished"):
        toy_study(evaluate=always_failing, executor=WorkerProcesses(2)).run(30)


def test_an_evaluator_that_cannot_be_sent_is_refused():
    with pytest.raises(ec.RequestError, match="cannot be sent to worker processes"):
        toy_study(evaluate=lambda term, seed, report=None: 1.0, workers=2).run(3)


def test_a_worker_that_lacks_the_user_s_module_says_so():
    executor = WorkerProcesses(1, imports=["no_such_module_of_the_user"])
    with pytest.raises(ec.RequestError, match="no_such_module_of_the_user"):
        toy_study(executor=executor).run(3)


def test_a_callback_that_fails_is_not_taken_for_a_dead_worker():
    def broken(progress):
        raise BrokenPipeError("the terminal is gone")

    study = toy_study(executor=WorkerProcesses(2))
    with pytest.raises(BrokenPipeError):
        study.run(4, broken)
    with pytest.raises(RunError, match="open it anew"):
        study.run(4)


def test_closing_ends_the_processes():
    executor = WorkerProcesses(2)
    executor.start(Toy(), (Objective(),))
    processes = [worker.process for worker in executor._pool]
    executor.submit(Job(0, ec.parse("conv"), 1))
    assert executor.wait(lambda *report: None)[0].number == 0
    executor.close()
    executor.close()
    assert not any(process.is_alive() for process in processes)


def test_workers_end_when_their_driver_is_killed(tmp_path):
    script = """
import os, sys
sys.path.insert(0, "tests")
from support.toy_search import *
from eclose.study.workers import WorkerProcesses

if __name__ == "__main__":
    executor = WorkerProcesses(2)
    executor.start(Toy(1000.0), (Objective(),))
    print(*(worker.process.pid for worker in executor._pool), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    program = tmp_path / "driver.py"
    program.write_text(script)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, cwd=ROOT)
    workers = [int(process) for process in done.stdout.split()]
    assert len(workers) == 2, done.stderr
    until = time.monotonic() + 20
    while any(_runs(process) for process in workers):
        assert time.monotonic() < until
        time.sleep(0.05)


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_progress_counts_what_happened():
    told = []
    study = toy_study()
    study.run(15, told.append)
    finished = [each for each in told if each.happened == "finished"]
    assert [each.done + each.failed for each in finished] == list(range(1, 16))
    assert finished[-1].failed == sum(trial.status == "failed" for trial in study.trials)
    assert finished[-1].best is study.best and finished[-1].total == 15
