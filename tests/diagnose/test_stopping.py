"""The rule of DARTS-ES on sequences whose decision was worked out by hand."""

from __future__ import annotations

import json
import random

import pytest

from eclose.algebra.errors import RequestError
from eclose.diagnose.stopping import EigenvalueRule, Stop


def first_stop(rule: EigenvalueRule, epochs, eigenvalues) -> tuple[int, Stop] | None:
    for epoch, eigenvalue in zip(epochs, eigenvalues, strict=True):
        stop = rule.add(epoch, eigenvalue)
        if stop is not None:
            return epoch, stop
    return None


def test_every_epoch_measured():
    # Epoch 16: newer window 12..16 = (1, 2, 2, 2, 2), mean 9/5, centre 14; older window 8..12, mean 1, centre 10.
    found = first_stop(EigenvalueRule(), range(30), [1.0] * 13 + [2.0] * 17)
    assert found == (16, Stop(epoch=10, newer=1.8, older=1.0))
    assert found[1].ratio == 1.8


def test_a_later_rise():
    # Epoch 16: 12..16 = (1, 1, 1, 1, 2), 6/5 is too little. Epoch 17: 13..17 = (1, 1, 1, 2, 2), 7/5; older 9..13.
    assert first_stop(EigenvalueRule(), range(30), [1.0] * 16 + [2.0] * 14) == (17, Stop(11, 1.4, 1.0))


def test_every_second_epoch_measured():
    # Measurement 11 is of epoch 22; its window's centre 9 of epoch 22 - 2*2 = 18; the older centre 5 of 18 - 2*4 = 10.
    epochs = range(0, 60, 2)
    values = [1.0] * 9 + [3.0] * 21  # from epoch 18 on
    # Measurements 7..11 = (1, 1, 3, 3, 3), mean 11/5; measurements 3..7, mean 1.
    assert first_stop(EigenvalueRule(), epochs, values) == (22, Stop(10, 2.2, 1.0))


def test_a_rise_before_the_earliest_epoch_is_no_reason():
    # From epoch 8 on all is 9 again; the older windows of centre 10 and later see only that.
    assert first_stop(EigenvalueRule(), range(40), [1.0] * 8 + [9.0] * 32) is None
    # With earliest=3: epoch 9 has 5..9 = (1, 1, 1, 9, 9), mean 21/5, centre 7, and 1..5, mean 1, centre 3.
    found = first_stop(EigenvalueRule(earliest=3), range(40), [1.0] * 8 + [9.0] * 32)
    assert found == (9, Stop(3, 4.2, 1.0))


def test_an_older_window_begins_with_the_first_measurement():
    # One epoch in ten: centre 1 is the first with epoch 10; measurements 0..3 = (4, 1, 1, 2), mean 2.
    # Measurements 3..7 = (2, 3, 3, 3, 3), mean 14/5: a ratio of 1.4.
    values = [4.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0]
    assert first_stop(EigenvalueRule(), range(0, 80, 10), values) == (70, Stop(10, 2.8, 2.0))


def test_growth_by_exactly_the_factor_goes_on():
    # 12..16 = (10, 13.75, 13.75, 13.75, 13.75) has mean 13, and 8..12 mean 10.
    assert first_stop(EigenvalueRule(), range(17), [10.0] * 13 + [13.75] * 4) is None
    assert first_stop(EigenvalueRule(), range(17), [10.0] * 13 + [13.75] * 3 + [13.8]) is not None


def test_a_constant_and_a_falling_sequence_go_on():
    assert first_stop(EigenvalueRule(), range(100), [0.3] * 100) is None
    assert first_stop(EigenvalueRule(), range(100), [1.0 / (1 + epoch) for epoch in range(100)]) is None


def test_eigenvalues_below_zero_give_no_ratio():
    assert first_stop(EigenvalueRule(), range(60), [-1.0 - epoch for epoch in range(60)]) is None
    # -1 up to epoch 12, then 5, then 10 from epoch 17 on. Older means: centre 10, 8..12, is -1; centre 11, 9..13, is
    # 1/5 at epoch 17, where the newer window 13..17 = (5, 5, 5, 5, 10) has mean 6.
    values = [-1.0] * 13 + [5.0] * 4 + [10.0] * 3
    assert first_stop(EigenvalueRule(), range(20), values) == (17, Stop(11, 6.0, 0.2))


def test_against_a_list_of_local_averages():
    """The rule as its authors keep it: averages that lag behind, from the third measurement on."""
    drawn = random.Random(0)
    decided = 0
    for _ in range(200):
        frequency = drawn.choice([1, 2, 3, 5])
        epochs = list(range(0, 60, frequency))
        values = [drawn.uniform(0.2, 1.0) + drawn.choice([0.0, 0.01, 0.03]) * epoch for epoch in epochs]
        averages: list[float] = []
        expected = None
        for count, epoch in enumerate(epochs, start=1):
            if count < 3:
                continue
            recent = values[max(0, count - 5) : count]
            averages.append(sum(recent) / len(recent))
            back = epoch - frequency * 2 - frequency * 4
            if back >= 10 and averages[-1] / averages[-5] > 1.3:
                expected = (epoch, back)
                break
        found = first_stop(EigenvalueRule(), epochs, values)
        assert (None if found is None else (found[0], found[1].epoch)) == expected
        decided += expected is not None
    assert 40 < decided < 200  # both answers occurred


def test_a_state_in_plain_data_continues_the_sequence():
    values = [1.0] * 16 + [2.0] * 14
    for cut in range(18):
        rule = EigenvalueRule()
        assert first_stop(rule, range(min(cut, 17)), values[: min(cut, 17)]) is None
        state = json.loads(json.dumps(rule.state_dict()))
        other = EigenvalueRule()
        other.load_state_dict(state)
        start = min(cut, 17)
        assert first_stop(other, range(start, 30), values[start:]) == (17, Stop(11, 1.4, 1.0))
    state["epochs"].append(99)
    assert other.epochs[-1] != 99  # the state given is not held on to


def test_a_search_that_goes_back_forgets_what_came_after():
    rule = EigenvalueRule()
    _, stop = first_stop(rule, range(30), [1.0] * 13 + [2.0] * 17)
    assert rule.decision == stop
    rule.rewind(stop.epoch)
    assert rule.epochs == list(range(11))
    assert rule.decision is None
    assert first_stop(rule, range(11, 40), [1.0] * 29) is None


def test_what_makes_no_sequence_is_refused():
    rule = EigenvalueRule()
    rule.add(4, 1.0)
    with pytest.raises(RequestError, match="4 came after 4"):
        rule.add(4, 1.0)
    with pytest.raises(RequestError, match="epoch 5 is nan"):
        rule.add(5, float("nan"))
    assert rule.epochs == [4]
    with pytest.raises(RequestError, match="odd number"):
        EigenvalueRule(window=4)
    with pytest.raises(RequestError, match="at least one"):
        EigenvalueRule(distance=0)
    with pytest.raises(RequestError, match="above 0"):
        EigenvalueRule(factor=0.0)
