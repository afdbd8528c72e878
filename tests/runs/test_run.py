"""The run folder: made once, driven by one, read by any, and good again after any damage."""

import errno
import json
import os
import sys

import pytest
import torch

import eclose as ec
from eclose.runs import Run, RunError, files

REQUEST = {"space": "nasbench201", "seed": 3, "budget": 40}


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def load(path):
    return torch.load(path, weights_only=True)


@pytest.fixture
def folder(tmp_path):
    """A closed run folder with two events after the first."""
    path = tmp_path / "runs" / "one"
    with Run.create(path, REQUEST, grammar="Net -> conv | id\n") as run:
        run.append("step", number=0)
        run.append("step", number=1)
    return path


def test_a_new_run_says_what_it_is(folder):
    plain = json.loads((folder / "run.json").read_text())
    assert plain["request"] == REQUEST and plain["format"] == 1
    assert plain["environment"]["versions"]["torch"] and plain["environment"]["threads"] >= 1
    assert (folder / "space.grammar").read_text() == "Net -> conv | id\n"
    assert names(folder) == ["events.jsonl", "run.json", "space.grammar"]
    run = Run.open(folder)
    assert run.request == REQUEST and run.grammar == "Net -> conv | id\n" and run.notes == []
    assert [event["number"] for event in run.of_kind("step")] == [0, 1]
    with pytest.raises(RunError, match="open for reading"):
        run.append("step", number=2)


def test_the_log_alone_suffices_to_resume(folder):
    for name in ("run.json", "space.grammar"):
        (folder / name).unlink()
    with pytest.warns(ec.EcloseWarning, match="run.json is missing"), Run.resume(folder) as run:
        assert run.request == REQUEST and len(run.of_kind("step")) == 2
    assert json.loads((folder / "run.json").read_text())["request"] == REQUEST
    assert (folder / "space.grammar").read_text() == "Net -> conv | id\n"


def test_a_log_that_lost_its_beginning_starts_again_from_the_request(folder):
    content = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(b"\0" * 100 + content[100:])
    with pytest.warns(ec.EcloseWarning) as said, Run.resume(folder) as run:
        assert run.request == REQUEST and len(run.events) == 1 and run.grammar == "Net -> conv | id\n"
    assert any("starts again from its request" in str(each.message) for each in said)
    assert (folder / "events.jsonl.damaged").read_bytes() == b"\0" * 100 + content[100:]
    assert Run.resume(folder).request == REQUEST


def test_a_run_of_which_nothing_is_left_cannot_be_recovered(folder):
    (folder / "events.jsonl").write_bytes(b"junk\n")
    (folder / "run.json").write_text("{")
    with pytest.raises(RunError, match="both damaged"):
        Run.resume(folder)
    assert not (folder / "lock").exists()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: path.write_text("x"), "is a file; a run needs a folder"),
        (lambda path: (path.mkdir(), (path / "thesis.tex").write_text("x")), "exists and is not empty"),
        (lambda path: Run.create(path, {}).close(), "holds a run already; continue it with `eclose resume"),
    ],
)
def test_a_taken_folder_is_refused_and_left_alone(tmp_path, prepare, message):
    path = tmp_path / "taken"
    prepare(path)
    before = sorted(path.rglob("*"))
    with pytest.raises(ec.RequestError, match=message):
        Run.create(path, {})
    assert sorted(path.rglob("*")) == before


def test_a_folder_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    def refused(*arguments, **named):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        with pytest.raises(RunError, match=r"cannot be written .*Read-only file system.*; choose a folder"):
            Run.create(tmp_path / "one", {})
    with pytest.raises(RunError, match="could not be written"):
        (tmp_path / "file").write_text("")
        Run.create(tmp_path / "file" / "below", {})
    Run.create(tmp_path / "one", {}).close()


def test_a_run_killed_at_its_very_beginning_can_be_made_again(tmp_path):
    path = tmp_path / "one"
    path.mkdir()
    (path / "lock").write_text("")
    (path / "events.jsonl").write_bytes(b'{"event":"run","for')
    (path / "run.json.77.tmp").write_text("{")
    with Run.create(path, REQUEST) as run:
        assert len(run.events) == 1
    assert names(path) == ["events.jsonl", "run.json"]


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(ec.RequestError, match="no such folder"):
        Run.open(tmp_path / "none")
    with pytest.raises(ec.RequestError, match=r"neither run\.json nor events\.jsonl"):
        Run.resume(tmp_path)
    assert names(tmp_path) == []


def test_another_environment_is_refused_without_force(folder, monkeypatch):
    threads = Run.open(folder).environment["threads"]
    with pytest.raises(ec.RequestError, match=rf"same bits: threads was {threads}, is {threads + 1}\. .*--force"):
        Run.resume(folder, threads=threads + 1)
    assert not (folder / "lock").exists()
    with (
        pytest.warns(ec.EcloseWarning, match="may differ in its bits"),
        Run.resume(folder, threads=threads + 1, force=True) as run,
    ):
        assert run.of_kind("forced")[0]["changes"] == [f"threads was {threads}, is {threads + 1}"]
    monkeypatch.setattr(sys.modules["eclose.runs.environment"], "_versions", lambda: {"torch": "1.0", "numpy": "1.0"})
    with pytest.raises(ec.RequestError, match=r"torch was .*, is 1\.0; numpy was"):
        Run.resume(folder)


def test_the_user_s_code_must_be_named_again(tmp_path):
    path = tmp_path / "one"
    Run.create(path, {"code": ["mine.py"]}).close()
    with pytest.raises(
        ec.RequestError, match=r"began with the user's code mine\.py; resume it with the same, not none"
    ):
        Run.resume(path)
    Run.resume(path, code=["mine.py"]).close()


def test_a_newer_format_is_refused(folder):
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    first = {**json.loads(lines[0]), "format": 2}
    (folder / "events.jsonl").write_bytes(b"".join([json.dumps(first).encode() + b"\n", *lines[1:]]))
    with pytest.raises(ec.RequestError, match="written in format 2; this version of eclose reads up to 1"):
        Run.open(folder)


def test_one_driver_at_a_time_and_any_number_of_readers(folder):
    with Run.resume(folder) as run:
        with pytest.raises(ec.RequestError, match="is being driven by process") as caught:
            Run.resume(folder)
        assert "\n" not in str(caught.value)
        run.append("step", number=2)
        assert len(Run.open(folder).of_kind("step")) == 3


# ---- checkpoints


def stepped(folder, upto, every=2):
    """Drive a computation whose state is a sum; a checkpoint after every second step."""
    with Run.resume(folder) as run:
        state = run.restore(load) or {"next": 0, "sum": 0}
        for number in range(state["next"], upto):
            state["sum"] += number * number
            run.append("step", number=number, sum=state["sum"])
            state["next"] = number + 1
            if number % every == every - 1:
                run.checkpoint(state, torch.save)
        return [event["sum"] for event in run.of_kind("step")]


SUMS = [0, 1, 5, 14, 30, 55, 91, 140]


@pytest.fixture
def stopped(tmp_path):
    path = tmp_path / "one"
    Run.create(path, {}).close()
    assert stepped(path, 5) == SUMS[:5]
    return path


def test_resuming_drops_the_events_after_the_checkpoint(stopped):
    with Run.resume(stopped) as run:
        assert run.restore(load)["next"] == 4
        assert len(run.of_kind("step")) == 4
    assert stepped(stopped, 8) == SUMS


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"kaputt" * 100])
def test_a_damaged_checkpoint_goes_back_to_the_one_before_and_says_so(stopped, content):
    (stopped / "checkpoint.pt").write_bytes(content)
    with pytest.warns(ec.EcloseWarning) as said:
        assert stepped(stopped, 8) == SUMS
    assert any("checkpoint.pt is damaged" in str(each.message) for each in said)
    assert any("going back to the checkpoint before (3 later events are dropped)" in str(each.message) for each in said)


def test_without_a_good_checkpoint_the_run_starts_again_and_says_so(stopped):
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        content = (stopped / name).read_bytes()
        (stopped / name).write_bytes(content[: len(content) // 2])
    with pytest.warns(ec.EcloseWarning) as said:
        assert stepped(stopped, 8) == SUMS
    assert any("starts again from its beginning" in str(each.message) for each in said)


def test_a_log_damaged_before_the_checkpoint_goes_back_with_it(stopped):
    lines = (stopped / "events.jsonl").read_bytes().splitlines(keepends=True)
    (stopped / "events.jsonl").write_bytes(b"".join([*lines[:4], b"\xff" + lines[4][1:], *lines[5:]]))
    with pytest.warns(ec.EcloseWarning) as said:
        assert stepped(stopped, 8) == SUMS
    assert any("belongs to events that the log has lost" in str(each.message) for each in said)


def test_a_checkpoint_of_another_run_is_refused(stopped, tmp_path):
    torch.save({"events": 3, "state": {}}, stopped / "checkpoint.pt")
    with Run.resume(stopped) as run, pytest.raises(RunError, match="of another run"):
        run.restore(load)


def test_a_full_disk_leaves_the_checkpoint_before(stopped, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = (stopped / "checkpoint.pt").read_bytes()
    with Run.resume(stopped) as run:
        with monkeypatch.context() as patch:
            patch.setattr(files, "flush_file", full)
            with pytest.raises(RunError, match="the disk is full"):
                run.checkpoint({"next": 9}, torch.save)
        assert (stopped / "checkpoint.pt").read_bytes() == before
    assert stepped(stopped, 8) == SUMS


def test_the_best_term_and_weights_are_kept(folder):
    with Run.resume(folder) as run:
        assert run.best_term is None
        run.save_best("conv(kernel=3)", lambda path: path.write_bytes(b"weights"))
        assert run.best_term == "conv(kernel=3)"
    assert (folder / "best.safetensors").read_bytes() == b"weights"
