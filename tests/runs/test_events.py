"""The log: only ever appended, and good again after any damage."""

import errno
import json
import os
from random import Random

import pytest

from eclose.runs import EventLog, RunError, read_events
from eclose.runs import events as events_module


def filled(path, count=5):
    log = EventLog(path)
    for number in range(count):
        log.append({"event": "n", "number": number, "text": "é\n"})
    log.close()
    return path.read_bytes()


def numbers(path):
    return [event["number"] for event in read_events(path).events]


def test_what_is_appended_is_read_back(tmp_path):
    path = tmp_path / "events.jsonl"
    content = filled(path)
    assert content.count(b"\n") == 5
    assert numbers(path) == [0, 1, 2, 3, 4] and read_events(path).note == ""
    log = EventLog(path)
    log.append({"event": "n", "number": 5}, durable=True)
    assert [event["number"] for event in log.events] == [0, 1, 2, 3, 4, 5]
    log.close()
    log.close()
    assert path.read_bytes().startswith(content)


def test_a_log_cut_anywhere_keeps_every_whole_line(tmp_path):
    path = tmp_path / "events.jsonl"
    content = filled(path)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        whole = content[:length].count(b"\n")
        log = EventLog(path)
        assert len(log.events) == whole
        assert bool(log.note) == (not content[:length].endswith(b"\n") and length > 0)
        log.append({"event": "n", "number": 77})
        log.close()
        assert numbers(path) == [*range(whole), 77]


def test_a_damaged_stretch_is_set_aside_with_all_after_it(tmp_path):
    path = tmp_path / "events.jsonl"
    content = filled(path)
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\0\0garbage\n", *lines[3:]]))
    reading = read_events(path)
    assert "damaged at line 3" in reading.note and len(reading.events) == 2
    log = EventLog(path)
    assert len(log.events) == 2 and "kept in events.jsonl.damaged" in log.note
    log.close()
    assert path.read_bytes() == b"".join(lines[:2])
    assert (tmp_path / "events.jsonl.damaged").read_bytes() == b"".join([b"\0\0garbage\n", *lines[3:]])


def test_random_damage_never_raises_and_never_invents_events(tmp_path):
    path, rng = tmp_path / "events.jsonl", Random(0)
    content = filled(path)
    for _ in range(300):
        broken = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(broken))
            broken[at : at + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 4))
        path.write_bytes(broken)
        before = read_events(path)
        log = EventLog(path)
        assert log.events == before.events
        log.append({"event": "after"})
        log.close()
        again = read_events(path)
        assert again.events == [*before.events, {"event": "after"}] and again.note == ""


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append({"event": "first"})
    before = path.read_bytes()

    def half(descriptor, line):
        os.write(descriptor, line[: len(line) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(events_module, "write_all", half)
        with pytest.raises(RunError, match=r"the disk is full: .*events\.jsonl.*Nothing recorded before is lost"):
            log.append({"event": "second"})
    assert path.read_bytes() == before and len(log.events) == 1
    log.append({"event": "third"})
    log.close()
    assert [event["event"] for event in read_events(path).events] == ["first", "third"]


def test_a_disk_that_fails_to_flush_is_said(tmp_path, monkeypatch):
    log = EventLog(tmp_path / "events.jsonl")

    def failing(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(RunError, match="could not be written: Input/output error"):
            log.append({"event": "first"}, durable=True)
    log.close()


def test_what_json_cannot_write_leaves_the_log_as_it_was(tmp_path):
    log = EventLog(tmp_path / "events.jsonl")
    for value in (float("nan"), object()):
        with pytest.raises((ValueError, TypeError)):
            log.append({"event": "bad", "value": value})
    assert log.events == [] and (tmp_path / "events.jsonl").read_bytes() == b""
    log.close()


def test_truncating_goes_back_to_the_end_of_an_event(tmp_path):
    path = tmp_path / "events.jsonl"
    filled(path)
    log = EventLog(path)
    ends = [len(b"".join(path.read_bytes().splitlines(keepends=True)[: n + 1])) for n in range(5)]
    assert log.offset == ends[-1] and log.beginning == ends[0]
    assert log.truncate(ends[2]) == 2
    with pytest.raises(RunError, match="no event that ends at byte 7"):
        log.truncate(7)
    log.append({"event": "n", "number": 9})
    log.close()
    assert numbers(path) == [0, 1, 2, 9]


def test_lines_are_plain_json(tmp_path):
    content = filled(tmp_path / "events.jsonl")
    assert [json.loads(line)["number"] for line in content.splitlines()] == [0, 1, 2, 3, 4]
