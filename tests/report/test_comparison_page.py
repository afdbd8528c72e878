"""The chart of samples and the page around it: where marks stand, odd numbers, and escaping."""

import re

import pytest

from eclose._api.comparison import Comparison, Found, Row
from eclose.report.comparison_page import comparison_page, comparison_text
from eclose.report.intervals import Sample, intervals

EVIL = "<script>alert('x')</script> & \"quoted\""


def centres(svg):
    return [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]


def test_marks_stand_in_proportion():
    svg = intervals([Sample("a", [0.0, 1.0, 4.0], mean=2.0, interval=(1.0, 3.0))], x="x", title="t")
    zero, one, four = centres(svg)
    assert (four - zero) / (one - zero) == pytest.approx(4, rel=0.01)
    begin, end = map(float, re.search(r'd="M([\d.]+) [\d.]+v8M[\d.]+ [\d.]+H([\d.]+)', svg).groups())
    assert begin == pytest.approx(one, abs=0.2)
    assert end == pytest.approx(zero + 3 * (one - zero), abs=0.5)
    diamond = float(re.search(r'd="M([\d.]+) [\d.]+l5 7', svg)[1])
    assert diamond == pytest.approx((begin + end) / 2, abs=0.2)


def test_a_baseline_far_away_does_not_press_the_others_together():
    searched = Sample("a", [93.0, 94.0])
    far = intervals([searched, Sample("b", [54.3], frames=False)], x="x", title="t")
    near = intervals([searched, Sample("b", [92.5], frames=False)], x="x", title="t")
    assert len(centres(far)) == 2 and ">54.3</text>" in far
    assert len(centres(near)) == 3 and ">92.5</text>" not in near.replace('middle">92.5', "")
    spread = centres(far)[1] - centres(far)[0]
    assert spread > 400


@pytest.mark.parametrize("values", [[], [1.0], [5.0, 5.0], [1e-12, 1e12], [float("nan"), 1.0], [float("inf")]])
def test_odd_numbers(values):
    svg = str(intervals([Sample(EVIL, values)], x=EVIL, title=EVIL))
    assert "nan" not in svg.lower() and "inf" not in svg.lower()
    assert "<script>alert" not in svg


def comparison(rows, seeds, direction="maximise", **request):
    asked = {"space": "mine", "task": "data", "fingerprint": "x", "strategies": {}, "seeds": seeds,
             "retrain_seeds": [0], "protocol": {"name": "quick"}, "table": None, "device": None, "data": None,
             **request}  # fmt: skip
    metric = {"name": "accuracy", "direction": direction, "unit": ""}
    made = [
        Row(name, [Found(seed, "conv", trainings=[{"seed": 0, **({} if score is None else {"score": score}),
                                                   **({"failed": "no"} if score is None else {})}])
                   for seed, score in zip(seeds, scores, strict=True)], direction)
        for name, scores in rows.items()
    ]  # fmt: skip
    return Comparison("runs/c", asked, metric, "test", made)


def test_everything_that_a_user_wrote_is_escaped():
    rows = {EVIL: [0.5, 0.6], "other": [0.1, 0.2]}
    found = comparison(rows, [0, 1], space=EVIL, task=EVIL, strategies={EVIL: {EVIL: EVIL}}).plain()
    assert "<script>alert" not in comparison_page(found)
    assert EVIL in comparison_text(found)


def test_small_scores_have_more_decimals():
    assert "0.5500" in comparison_text(comparison({"a": [0.5, 0.6]}, [0, 1]).plain())
    assert "55.00" in comparison_text(comparison({"a": [50.0, 60.0]}, [0, 1]).plain())


def test_what_is_to_be_small_is_better_small():
    rows = {"a": [1.0] * 7, "b": [2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6]}
    small, large = (comparison(rows, list(range(7)), direction) for direction in ("minimise", "maximise"))
    assert (small.pairs[0]["better"], large.pairs[0]["better"]) == ("a", "b")
    assert small.row("b").best == 2.0
    assert large.row("b").best == 2.6
    assert any("All 7 searches by a found the same network" in note for note in small.notes)


def test_how_many_seeds_a_test_needs():
    for seeds, told in ((5, True), (6, False)):
        rows = {"a": [float(seed) for seed in range(seeds)], "b": [0.5] * seeds}
        notes = comparison(rows, list(range(seeds))).notes
        assert any("At least 6 seeds are needed" in note for note in notes) == told


def test_trainings_that_all_failed_have_no_mean():
    found = comparison({"a": [None, None], "b": [0.1, 0.2]}, [0, 1])
    assert found.plain()["rows"][0]["mean"] is None
    assert found.pairs == []
    assert "2 trainings of networks found by a failed." in found.notes
    assert "2 retrainings" in found.table()
    assert "2 retrainings" in comparison_page(found.plain())
