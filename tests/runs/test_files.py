"""Files that are never half written, checkpoints that fall back, the lock, the environment."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from eclose.algebra.errors import RequestError
from eclose.runs import CheckpointFile, RunError, RunLock, environment, replace_file, write_text
from eclose.runs import files as files_module
from eclose.runs.environment import differences
from eclose.runs.files import sweep


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def failing(number):
    def fail(*arguments):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("call", ["write_all", "flush_file"])
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "choose a folder where you may write"),
        (errno.EIO, "written: "),
    ],
)
def test_a_failed_write_leaves_the_file_as_it_was(tmp_path, monkeypatch, call, number, message):
    path = tmp_path / "best.term"
    write_text(path, "old")
    with monkeypatch.context() as patch:
        patch.setattr(files_module, call, failing(number))
        with pytest.raises(RunError, match=message):
            write_text(path, "new")
    assert path.read_text() == "old" and names(tmp_path) == ["best.term"]
    write_text(path, "new")
    assert path.read_text() == "new"


def test_a_writer_that_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "weights"
    write_text(path, "old")

    def write(temporary: Path):
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(path, write, keep=tmp_path / "previous")
    assert path.read_text() == "old" and names(tmp_path) == ["weights"]


def test_what_a_kill_leaves_is_swept(tmp_path):
    (tmp_path / "checkpoint.pt.123.tmp").write_text("half")
    (tmp_path / "checkpoint.pt").write_text("whole")
    sweep(tmp_path)
    assert names(tmp_path) == ["checkpoint.pt"]


# ---- checkpoints


def checkpoint(path):
    return CheckpointFile(path, torch.save, lambda file: torch.load(file, weights_only=True))


def test_the_newest_checkpoint_is_read_and_the_one_before_kept(tmp_path):
    file = checkpoint(tmp_path / "checkpoint.pt")
    assert file.read() is None
    for step in range(3):
        file.write({"step": step, "weights": torch.arange(1000)})
    assert file.read()["step"] == 2 and file.notes == []
    assert torch.load(tmp_path / "checkpoint.previous.pt", weights_only=True)["step"] == 1
    file.remove()
    file.remove()
    assert names(tmp_path) == []


@pytest.mark.parametrize("where", ["empty", "truncated", "flipped", "junk", "pickle"])
def test_a_damaged_checkpoint_gives_the_one_before_and_says_so(tmp_path, where):
    path = tmp_path / "checkpoint.pt"
    file = checkpoint(path)
    for step in range(2):
        file.write({"step": step, "weights": torch.arange(1000)})
    content = bytearray(path.read_bytes())
    if where == "flipped":
        content[content.find(torch.arange(1000).numpy().tobytes()[:400]) + 99] ^= 1  # torch itself does not notice
    damaged = {"empty": b"", "truncated": content[: len(content) // 2], "junk": b"kaputt" * 99, "flipped": content}
    path.write_bytes(damaged.get(where, b"cos\nsystem\n(S'touch pwned'\ntR."))
    assert file.read()["step"] == 0
    assert len(file.notes) == 1 and "checkpoint.pt is damaged" in file.notes[0]
    assert not Path("pwned").exists()


def test_a_checkpoint_that_does_not_fit_is_passed_over(tmp_path):
    file = checkpoint(tmp_path / "checkpoint.pt")
    for step in range(2):
        file.write({"step": step})
    assert file.read(lambda content: "is too new" if content["step"] else "")["step"] == 0
    assert file.notes == ["checkpoint.pt is too new; it is left out"]


# ---- the lock


def test_a_second_holder_is_told_who_holds_the_lock(tmp_path):
    lock = RunLock(tmp_path / "lock")
    with lock:
        assert lock.held
        with pytest.raises(RequestError, match=rf"driven by process {os.getpid()} on") as caught:
            RunLock(tmp_path / "lock").acquire()
        assert "\n" not in str(caught.value)
    assert not lock.held and not (tmp_path / "lock").exists()
    RunLock(tmp_path / "lock").acquire()


def test_the_lock_of_a_killed_process_is_taken_over_and_said(tmp_path):
    program = f"""
import os, signal
from pathlib import Path
from eclose.runs import RunLock
RunLock(Path({str(tmp_path)!r}) / "lock").acquire()
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program])
    holder = json.loads((tmp_path / "lock").read_text())["process"]
    with RunLock(tmp_path / "lock") as lock:
        assert f"the lock of process {holder}" in lock.note and "taken over" in lock.note


def test_a_lock_of_another_machine_needs_force(tmp_path):
    path = tmp_path / "lock"
    path.write_text(json.dumps({"host": "elsewhere", "process": 12, "born": "1", "since": "2020-01-01"}))
    with pytest.raises(RequestError, match=r"left locked by process 12 on elsewhere .*--force"):
        RunLock(path).acquire()
    lock = RunLock(path)
    lock.acquire(force=True)
    assert lock.held
    lock.release()


def test_an_unreadable_lock_names_nobody(tmp_path):
    (tmp_path / "lock").write_bytes(b"\xff\x00{")
    with RunLock(tmp_path / "lock") as lock:
        assert lock.note == ""


# ---- the environment


def test_only_what_changes_bits_is_a_difference():
    here = environment(2)
    assert differences(here, json.loads(json.dumps(here))) == []
    other = json.loads(json.dumps(here))
    other["threads"], other["versions"]["torch"], other["versions"]["optuna"] = 4, "1.0", "1.0"
    found = differences(here, other)
    assert found[0] == "threads was 2, is 4" and found[1].startswith("torch was") and len(found) == 2
    patch = {**here, "versions": {**here["versions"], "python": "3.11.99"}}
    minor = {**here, "versions": {**here["versions"], "python": "2.7.1"}}
    assert differences({**here, "versions": {**here["versions"], "python": "3.11.0"}}, patch) == []
    assert len(differences(here, minor)) == 1


def test_threads_are_what_the_variables_say(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert environment()["threads"] == 3
