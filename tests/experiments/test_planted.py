"""The constructions of the planted studies are what they say: by trained networks, and by arithmetic alone."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import eclose as ec

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def planted():
    """The modules of the study, which stand beside the library and are not part of it."""
    if not (ROOT / "experiments" / "planted").is_dir():
        pytest.skip("this copy of the sources has no experiments")
    sys.path.insert(0, str(ROOT))
    try:
        names = ("constructions", "rows", "running", "tables")
        yield {name: importlib.import_module(f"experiments.planted.{name}") for name in names}
    finally:
        sys.path.remove(str(ROOT))


def arrays(task, part):
    inputs, targets = task.part(part).resident()
    return np.asarray(inputs, dtype=np.float64), np.asarray(targets)


def accuracy_of_best_linear_rule(features, labels):
    """Fit a linear rule by least squares on one half, return its accuracy on the other."""
    half = len(features) // 2
    design = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    weights, *_ = np.linalg.lstsq(design[:half], 2.0 * labels[:half] - 1, rcond=None)
    return ((design[half:] @ weights > 0) == labels[half:]).mean()


def windows(images, offsets):
    """Return what stands at some offsets of every position, zeros outside, as rows of numbers."""
    size = images.shape[2]
    padded = np.pad(images, ((0, 0), (0, 0), (3, 3), (3, 3)))
    parts = [padded[:, :, 3 + down : 3 + down + size, 3 + right : 3 + right + size] for down, right in offsets]
    return np.concatenate([part.transpose(0, 2, 3, 1).reshape(-1, images.shape[1]) for part in parts], axis=1)


SEEN = {
    0: [(0, -1), (0, 0), (0, 1)],
    1: [(-1, 0), (0, 0), (1, 0)],
    2: [(0, -2), (0, 0), (0, 2)],
    3: [(-2, 0), (0, 0), (2, 0)],
}


def test_each_bit_is_seen_through_one_window_and_no_other(planted):
    images, labels = arrays(planted["constructions"].TRUTH.task(0), "search")
    for bit in range(4):
        wanted = labels[:, bit].reshape(-1)
        for window, offsets in SEEN.items():
            found = accuracy_of_best_linear_rule(windows(images, offsets), wanted)
            # a tenth of the bits is wrong
            assert (found > 0.87) if window == bit else (found < 0.56), (bit, window, found)


def test_the_bit_without_a_sign_is_seen_by_no_linear_window(planted):
    images, labels = arrays(planted["constructions"].TRUTH.task(0), "search")
    wanted = labels[:, 4].reshape(-1)
    every = [(down, right) for down in range(-3, 4) for right in range(-3, 4)]
    assert accuracy_of_best_linear_rule(windows(images, every), wanted) < 0.56
    here = windows(images, [(0, 0)])
    products = np.stack([here[:, a] * here[:, b] for a in range(4) for b in range(a, 4)], axis=1)
    assert accuracy_of_best_linear_rule(products, wanted) > 0.7


def test_of_the_trap_a_linear_network_can_learn_one_bit_of_two(planted):
    images, labels = arrays(planted["constructions"].TRAP.task(0), "search")
    every = windows(images, [(down, right) for down in range(-3, 4) for right in range(-3, 4)])
    inner = labels.reshape(-1)
    assert accuracy_of_best_linear_rule(every, inner // 2) > 0.95
    assert accuracy_of_best_linear_rule(every, inner % 2) < 0.56
    assert accuracy_of_best_linear_rule(np.abs(every), inner % 2) > 0.8


@pytest.mark.parametrize("name", ["truth", "trap"])
@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_chosen_is_read_off_a_network_in_either_order(planted, name, reverse):
    construction = planted["constructions"].STUDIES[name]
    space = construction.space(reverse=reverse)
    assert space.count() == np.prod([len(edge) for edge in construction.edges])
    for seed in range(5):
        term = space.sample(seed)
        chosen = construction.chosen(term)
        assert ec.parse(construction.term(chosen)) is term
        wanted = construction.right or (planted["constructions"].SKIP,) * len(construction.edges)
        right = sum(ec.parse(edge[k]) is ec.parse(text) for edge, k, text in zip(construction.edges, chosen, wanted,
                                                                                  strict=True))  # fmt: skip
        assert construction.count(chosen) == right


def trained(construction, task, chosen, epochs):
    return ec.evaluate(construction.term(chosen), task, "quick", epochs=epochs, batch_size=32, rate=0.01,
                       device="cpu")["score"]  # fmt: skip


@pytest.mark.slow
def test_the_planted_network_is_the_best_of_its_neighbourhood_by_a_margin(planted):
    construction = planted["constructions"].TRUTH
    task, truth = construction.task(3), construction.truth
    best = trained(construction, task, truth, 8)
    for edge, alternatives in enumerate(construction.edges):
        for index in range(len(alternatives)):
            if index != truth[edge]:
                other = trained(construction, task, (*truth[:edge], index, *truth[edge + 1 :]), 8)
                assert other < best - 5, (edge, alternatives[index], other, best)


@pytest.mark.slow
def test_the_network_of_skips_is_worse_than_those_with_convolutions(planted):
    construction = planted["constructions"].TRAP
    task = construction.task(3)
    skips, one, four = (trained(construction, task, chosen, 15) for chosen in ((0,) * 4, (1, 0, 0, 0), (1,) * 4))
    assert skips < 53
    assert one > skips + 15
    assert four > skips + 5


@pytest.mark.slow
def test_a_job_gives_the_same_in_a_process_of_its_own_and_is_not_done_twice(planted, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    running, rows = planted["running"], planted["rows"]
    found = [row for row in rows.rows("trap", 2, quick=True) if row.name in ("gdas", "nasp")]
    jobs = running.search_jobs("trap", found, 1, rows.judge(quick=True))
    file = tmp_path / "outcomes.jsonl"
    outcomes = {outcome["key"]: outcome for outcome in running.run(jobs, file, 2, {"processor": "any"})}
    assert set(outcomes) == {job.key for job in jobs}
    here = running.done(jobs[0])
    timeless = ("key", "row", "seed", "chosen", "count", "accuracy", "search_score")
    assert [here[key] for key in timeless] == [outcomes[jobs[0].key][key] for key in timeless]

    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20])  # torn while it was written
    lost = json.loads(lines[-1])["key"]
    assert [outcome["key"] for outcome in running.run(jobs, file, 2, {"processor": "any"})] == [lost]
    assert list(running.run(jobs, file, 2, {"processor": "any"})) == []
    assert set(running.kept(file)) == set(outcomes)


def test_the_table_says_what_the_outcomes_say(planted, tmp_path):
    running, tables, rows = planted["running"], planted["tables"], planted["rows"]
    row = rows.Row("darts", "darts")
    jobs = running.search_jobs("trap", [row, rows.Row("darts, reversed", "darts", reverse=True)], 2, {})
    file = tmp_path / "outcomes.jsonl"
    counts = {("darts", 0): 4, ("darts", 1): 2, ("darts, reversed", 0): 4, ("darts, reversed", 1): 3}
    with file.open("w") as stream:
        for job in jobs:
            count = counts[job.row, job.seed]
            outcome = {"key": job.key, "row": job.row, "seed": job.seed, "chosen": [], "count": count,
                       "accuracy": 50.0 + count, "seconds": 1.0}  # fmt: skip
            stream.write(json.dumps(outcome) + "\n")
    figures = tables.summarised("trap", jobs, [], (file, tmp_path / "none.jsonl"))
    first = figures["rows"][0]
    assert (first["mean"], first["full"], first["seeds"], first["accuracy"]) == (3.0, 1, 2, 53.0)
    # two values 1 either side of their mean: t(0.975, 1) = 12.706 times sqrt(2) / sqrt(2)
    assert first["interval"] == pytest.approx((3 - 12.7062, 3 + 12.7062), abs=1e-3)
    assert figures["order"][0]["count"]["difference"] == 0.5
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- trap: begin -->\nold\n<!-- trap: end -->\nafter\n")
    tables.place(page, "trap", tables.text(figures))
    assert "| darts | 3.00 |" in page.read_text() and "old" not in page.read_text()
    assert page.read_text().startswith("before\n") and page.read_text().endswith("\nafter\n")
