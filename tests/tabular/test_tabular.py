"""The NAS-Bench-201 table against what its authors and others have published of it."""

import pickle
from itertools import product
from statistics import mean, median

import numpy as np
import pytest

import eclose as ec
from eclose.algebra.errors import RequestError
from eclose.spaces.nasbench_strings import nb201_cell, nb201_string, nb201_unique_string, read_nb201
from eclose.study.in_memory import run_in_memory
from eclose.study.study import Study
from eclose.tabular import tabular_task
from eclose.tabular.nasbench201 import CELLS, FOLDER, HARDWARE, NAMES, table

SKIPS = "|skip_connect~0|+|skip_connect~0|skip_connect~1|+|skip_connect~0|skip_connect~1|skip_connect~2|"
DRNAS = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
FIRST = "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|"


def final(data_set, cell):
    found = tabular_task(f"{data_set}@200").final(cell)
    return round(found["validation"], 2), round(found["test"], 2)


# What is published


@pytest.mark.parametrize(
    ("cell", "published"),
    [
        (SKIPS, [(39.77, 54.30), (15.03, 15.61), (16.43, 16.32)]),
        (DRNAS, [(91.55, 94.36), (73.49, 73.51), (46.37, 46.34)]),
    ],
)
def test_known_cells_score_what_papers_say(cell, published):
    assert [final(name, read_nb201(cell)) for name in NAMES] == published


def test_official_indices():
    assert [table().row(read_nb201(cell)) for cell in (FIRST, SKIPS, DRNAS)] == [0, 1835, 9930]
    resnet_like = table().cell(11472)
    assert [final(name, resnet_like)[1] for name in NAMES] == [93.91, 70.89, 44.23]


@pytest.mark.parametrize(
    ("data_set", "average", "middle", "best"),
    [
        ("cifar10", 87.06, 90.75, 94.37),
        ("cifar100", 61.41, 65.29, 73.51),
        ("imagenet16-120", 33.59, 36.39, 47.31),
    ],
)
def test_the_distribution_of_test_accuracy(data_set, average, middle, best):
    accuracies = table().accuracy(data_set, "test", 200).tolist()
    assert len(accuracies) == CELLS
    assert (round(mean(accuracies), 2), round(median(accuracies), 2), round(max(accuracies), 2)) == (
        average,
        middle,
        best,
    )


def test_the_best_cells():
    best = {name: table().cell(int(table().accuracy(name, "test", 200).argmax())) for name in NAMES}
    conv3, conv1, skip = "nor_conv_3x3", "nor_conv_1x1", "skip_connect"
    assert best["cifar10"] == nb201_cell([conv3, conv3, conv3, skip, conv3, conv1])
    assert best["imagenet16-120"] == nb201_cell([conv1, conv1, conv3, skip, conv3, conv3])
    assert nb201_string(best["cifar100"]) == DRNAS
    assert round(float(table().accuracy("cifar10", "validation", 200)[table().row(best["cifar10"])]), 2) == 91.61


def test_picking_by_short_training_gives_what_is_published():
    picked = {}
    for name in NAMES:
        row = int(table().accuracy(name, "validation", 12).argmax())
        picked[name] = final(name, table().cell(row))[1]
    assert picked == {"cifar10": 94.37, "cifar100": 72.28, "imagenet16-120": 46.48}


def test_short_training_ranks_as_published():
    def ranks(values):
        order = np.argsort(values, kind="stable")
        found = np.empty(len(values))
        found[order] = np.arange(len(values))
        for value in np.unique(values):  # ties share their mean rank
            found[values == value] = found[values == value].mean()
        return found

    for name, published in zip(NAMES, (0.77, 0.82, 0.82), strict=True):
        short, long = table().accuracy(name, "validation", 12), table().accuracy(name, "test", 200)
        assert round(float(np.corrcoef(ranks(short), ranks(long))[0, 1]), 2) == published
    short, long = table().accuracy("cifar10", "validation", 12), table().accuracy("cifar10", "validation", 200)
    assert round(float(np.corrcoef(short, long)[0, 1]), 2) == 0.91
    assert round(float(table().accuracy("cifar10", "test", 12).max()), 2) == 89.16


def test_training_times():
    seconds = table().training_seconds("cifar10", 200)
    assert (round(float(seconds.min())), round(float(seconds.mean())), round(float(seconds.max()))) == (542, 1828, 3461)
    assert (table().training_seconds("cifar100", 200) == 2 * seconds).all()
    assert np.allclose(table().training_seconds("cifar10", 12), seconds * 0.06)


def test_training_runs_average_to_the_accuracies():
    """The runs come from another source than the test accuracies; equal parts make them their mean."""
    assert [int((table().runs == count).sum()) for count in (2, 3)] == [7456, 8169]
    for name in NAMES:
        valid, test = table().accuracy(name, "validation", 200), table().accuracy(name, "test", 200)
        for row in range(0, CELLS, 97):
            wanted = valid[row] if name == "cifar10" else (valid[row] + test[row]) / 2
            assert mean(table().single_runs(name, row)) == pytest.approx(wanted, abs=1e-9)


def test_every_cell_has_a_row_of_its_own():
    operations = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
    cells = [nb201_cell(each) for each in product(operations, repeat=6)]
    assert sorted(table().row(cell) for cell in cells) == list(range(CELLS))
    assert all(table().cell(table().row(cell)) is cell for cell in cells[::13])
    # The same function was trained more than once, and what was measured differs.
    same = {}
    for cell in cells:
        same.setdefault(nb201_unique_string(cell), []).append(table().row(cell))
    assert len(same) == 6466
    test = table().accuracy("cifar10", "test", 200)
    assert any(len({float(test[row]) for row in rows}) > 1 for rows in same.values())


def test_hardware():
    space = ec.space("nasbench201")
    evaluate = tabular_task("cifar10@12->200").evaluator(
        space, objectives=["score", "raspi4_latency", "edgegpu_energy"]
    )
    found = evaluate(read_nb201(FIRST), 0)
    assert evaluate.objectives == {"score": "maximise", "raspi4_latency": "minimise", "edgegpu_energy": "minimise"}
    assert found["raspi4_latency"] == pytest.approx(10.48197682, rel=1e-6)  # of HW-NAS-Bench
    assert found["edgegpu_energy"] == pytest.approx(24.22661433, rel=1e-6)
    for name in NAMES:  # an edge TPU does not run every cell; everything else was measured everywhere
        missing = {quantity: int(np.isnan(table().hardware(name, quantity)).sum()) for quantity in HARDWARE}
        assert missing == dict.fromkeys(HARDWARE, 0) | {"edgetpu_latency": 4699}


def test_what_was_not_measured_is_a_failed_trial_with_its_reason():
    row = int(np.flatnonzero(np.isnan(table().hardware("cifar10", "edgetpu_latency")))[0])
    evaluate = tabular_task("cifar10@12->200").evaluator(objectives=["edgetpu_latency"])
    with pytest.raises(RequestError, match="edgetpu_latency of this cell was not measured"):
        evaluate(table().cell(row), 0)


# Tasks


def test_names():
    task = ec.task("tabular:imagenet16-120@12->200")
    assert (task.tabular, task.space, task.name) == (True, "nasbench201", "tabular:imagenet16-120@12->200")
    assert (task.data_set, task.query, task.report) == ("imagenet16-120", 12, 200)
    for name in ("cifar10@12->200", "cifar100@200", "cifar10@12"):
        assert ec.task(tabular_task(name).name).name == f"tabular:{name}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifar11@200", "did you mean 'cifar10'"),
        ("svhn@200", "known: cifar10, cifar100, imagenet16-120"),
        ("cifar10", "write cifar10@12->200 or cifar100@200"),
        ("cifar10@12->", "write cifar10@12->200"),
        ("cifar10@13->200", "12 and for 200 epochs, not for 13"),
        ("cifar10@12->100", "12 and for 200 epochs, not for 100"),
        ("cifar10@200->12", "cifar10@12->200"),
    ],
)
def test_a_wrong_name_says_what_would_be_right(name, message):
    with pytest.raises(RequestError, match=message):
        tabular_task(name)


def test_a_search_sees_validation_only():
    cell = table().cell(7)
    task = tabular_task("cifar100@12->200")
    seen = task.evaluator(ec.space("nasbench201"))(cell, 3)
    assert set(seen) == {"score", "seconds"}
    assert seen["score"] == table().accuracy("cifar100", "validation", 12)[7]
    assert seen["seconds"] == pytest.approx(table().training_seconds("cifar100", 200)[7] * 12 / 200)
    assert set(task.final(cell)) == {"validation", "test"}
    assert task.final(cell)["test"] == table().accuracy("cifar100", "test", 200)[7]
    assert tabular_task("cifar100@200").evaluator()(cell, 0)["seconds"] == table().training_seconds("cifar100", 200)[7]


def test_another_space_is_refused_by_name():
    evaluate = tabular_task("cifar10@200").evaluator()
    for text in ("Sequential(conv, conv)", "Cell(conv, conv, conv, conv, conv, conv(kernel=5))", "conv"):
        with pytest.raises(RequestError, match="'nasbench201'"):
            evaluate(ec.parse(text), 0)
    with pytest.raises(RequestError, match="did you mean 'raspi4_latency'"):
        tabular_task("cifar10@200").evaluator(objectives=["raspi_latency"])


def test_an_evaluator_pickles_small():
    evaluate = tabular_task("cifar10@12->200").evaluator(objectives={"score": "maximise", "fpga_energy": "minimise"})
    cell = table().cell(99)
    before = evaluate(cell, 0)
    text = pickle.dumps(evaluate)
    assert len(text) < 1000
    again = pickle.loads(text)
    assert again(cell, 0) == before
    assert again.objectives == evaluate.objectives


def test_a_study_takes_its_clock_and_objectives():
    from eclose.strategies import make

    space, task = ec.space("nasbench201"), tabular_task("cifar10@12->200")
    evaluate = task.evaluator(space, objectives=["score", "fpga_latency"])
    study = Study(space, evaluate, make("random", space), seed=4, lag=1, duplicates="allow")
    study.run("2000s")
    spent = [trial.result.objectives["seconds"] for trial in study.trials]
    assert sum(spent[:-1]) < 2000 <= sum(spent)  # simulated, not on the wall
    assert [objective.name for objective in study.objectives] == ["score", "fpga_latency"]
    assert study.front
    trials = run_in_memory(make("random", space), task.evaluator(), "2000s", seed=4)
    assert [trial.term for trial in trials] == [trial.term for trial in study.trials]


def test_the_files_are_small_and_explained():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 4e6
    about = (FOLDER / "README.md").read_text()
    for word in ("MIT", "Apache-2.0", "NATS-Bench", "HW-NAS-Bench", "6,466"):
        assert word in about
