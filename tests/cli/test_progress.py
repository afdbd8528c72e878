"""Lines about epochs where nobody sees a bar: how far, how good, how long still."""

from __future__ import annotations

import pytest

from eclose.cli import progress
from eclose.cli.progress import Watcher


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that a test sets by hand."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def lines(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


def told(clock, epochs, seconds, of, **figures):
    with Watcher() as watch:
        for epoch in epochs:
            clock[0] += seconds
            watch("epoch", (epoch, of, {"train_loss": 0.92, **figures}))


def test_an_epoch_says_what_is_left_by_the_epochs_seen(clock, capsys):
    told(clock, range(8), 60, 50)
    found = lines(capsys)
    assert found[0] == "epoch 1/50: loss 0.9200"  # nothing is known yet
    assert found[1] == "epoch 2/50: loss 0.9200, about 48 min left"
    assert found[6] == "epoch 7/50: loss 0.9200, about 43 min left"


def test_a_resumed_search_counts_the_epochs_it_has_seen_alone(clock, capsys):
    told(clock, range(40, 43), 60, 50)
    assert lines(capsys)[-1] == "epoch 43/50: loss 0.9200, about 7 min left"


def test_the_last_epoch_has_nothing_left(clock, capsys):
    told(clock, range(3), 60, 3)
    assert lines(capsys)[-1] == "epoch 3/3: loss 0.9200"


def test_a_search_that_goes_back_begins_to_count_anew(clock, capsys):
    told(clock, [10, 11, 12, 10, 11], 120, 20)
    found = lines(capsys)
    assert found[3] == "epoch 11/20: loss 0.9200"
    assert found[4] == "epoch 12/20: loss 0.9200, about 16 min left"


def test_the_score_on_held_out_data_is_told_where_there_is_one(clock, capsys):
    told(clock, range(1), 60, 50, valid_score=71.25, valid_loss=1.0)
    assert lines(capsys) == ["epoch 1/50: loss 0.9200, valid score 71.25"]
    told(clock, range(1), 60, 50, valid_score=float("nan"))
    assert lines(capsys) == ["epoch 1/50: loss 0.9200"]


def test_many_quick_epochs_are_few_lines(clock, capsys):
    told(clock, range(100), 1, 100)
    assert len(lines(capsys)) == 10  # one in more than ten seconds


def test_the_training_of_the_best_is_counted_on_its_own(clock, capsys):
    with Watcher() as watch:
        for epoch in range(3):
            clock[0] += 600
            watch("epoch", (epoch, 3, {"train_loss": 1.0}))
        watch("phase", "training the best network for 5 epochs")
        for epoch in range(2):
            clock[0] += 60
            watch("epoch", (epoch, 5, {"train_loss": 1.0}))
    assert lines(capsys)[-1] == "epoch 2/5: loss 1.0000, about 3 min left"


def test_a_bar_begins_where_a_resumed_search_does(monkeypatch):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with Watcher() as watch:
        watch("epoch", (40, 50, {"train_loss": 1.0, "valid_score": 60.0}))
        (task,) = watch._bar.tasks
        assert (task.completed, task.total) == (41, 50)
        assert task.fields["figures"] == "loss 1.0000, valid score 60"
        assert any(type(column).__name__ == "TimeRemainingColumn" for column in watch._bar.columns)
