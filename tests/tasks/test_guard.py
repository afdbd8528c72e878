"""The test part during a search, copies of tasks, and fingerprints."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import threading

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import eclose
from eclose import Task
from eclose.algebra.errors import RequestError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 5)).astype(np.float32), np.arange(60) % 3


def own(form: str = "arrays") -> Task:
    data = {
        "arrays": (X, Y),
        "dataset": TensorDataset(torch.as_tensor(X), torch.as_tensor(Y)),
        "loader": DataLoader(TensorDataset(torch.as_tensor(X), torch.as_tensor(Y)), batch_size=7),
    }[form]
    return Task(data, data, data, name="mine", classes=3)


TASKS = {**{form: (lambda form=form: own(form)) for form in ("arrays", "dataset", "loader")},
         "digits": lambda: eclose.task("digits")}  # fmt: skip
VIEWS = {
    "resident": lambda part: part.resident(),
    "dataset": lambda part: part.dataset(),
    "loader": lambda part: part.loader(),
    "batches": lambda part: next(part.batches(5)),
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("view", VIEWS)
def test_the_test_part_cannot_be_read_during_a_search(name, view):
    task = TASKS[name]()
    before = task.part("test")
    VIEWS[view](before)
    with task.searching():
        for part in (lambda: before, lambda: task.part("test")):
            with pytest.raises(RequestError, match="cannot be read during a search"):
                VIEWS[view](part())
        for other in ("train", "valid"):
            VIEWS[view](task.part(other))
        with task.searching():
            pass
        with pytest.raises(RequestError):
            task.part("test")
    VIEWS[view](before)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("copied", [lambda task: pickle.loads(pickle.dumps(task)), copy.copy, copy.deepcopy])
def test_copies_made_during_a_search_cannot_read_it_either(name, copied):
    task = TASKS[name]()
    with task.searching():
        during = copied(task)
        part = copied(task.part("valid"))
    for _ in range(2):  # a copy stays as it was made
        with pytest.raises(RequestError, match="cannot be read during a search"):
            during.part("test")
    assert len(during.part("valid")) == len(task.part("valid")) == len(part)
    after = copied(task)
    assert len(after.part("test")) == len(task.part("test"))
    with after.searching(), pytest.raises(RequestError):
        after.part("test")
    assert after.fingerprint() == during.fingerprint() == task.fingerprint()


def _refused(task: Task) -> bool:
    try:
        task.part("test")
    except RequestError:
        return True
    return False


def test_other_processes_cannot_read_it_either():
    task = eclose.task("digits")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with task.searching():
            assert pool.apply(_refused, (task,))
        assert not pool.apply(_refused, (task,))


def test_reading_that_began_before_a_search_stops():
    task = own()
    batches = task.part("test").batches(7)
    next(batches)
    with task.searching(), pytest.raises(RequestError):
        next(batches)


def test_an_error_ends_the_guard_and_threads_share_it():
    task = own()
    with pytest.raises(ZeroDivisionError), task.searching():
        1 / 0  # noqa: B018
    assert task.part("test").resident() is not None
    begun, done = threading.Event(), threading.Event()

    def search():
        with task.searching():
            begun.set()
            done.wait(10)

    thread = threading.Thread(target=search)
    thread.start()
    begun.wait(10)
    assert _refused(task)
    done.set()
    thread.join()
    assert not _refused(task)


def test_the_search_part_holds_no_test_item():
    task = Task((X[:40], Y[:40]), test=(X[40:], Y[40:]))
    seen = {row.tobytes() for row in task.part("search").resident()[0].numpy()}
    assert seen == {row.tobytes() for row in X[:40]}


def quartic(outputs, targets):
    return (outputs - targets) ** 4


def cubic(outputs, targets):
    return (outputs - targets).abs() ** 3


CHANGES = {
    "an input": lambda: Task((np.where(np.arange(300).reshape(60, 5) == 7, X + 1e-6, X), Y)),
    "a target": lambda: Task((X, np.roll(Y, 1))),
    "another split": lambda: Task((X, Y), split_seed=1),
    "more held out": lambda: Task((X, Y), valid_fraction=0.4),
    "no strata": lambda: Task((X, Y), stratify=False),
    "more classes": lambda: Task((X, Y), classes=4, allow_missing_classes=True),
    "another metric": lambda: Task((X, Y), metric="top-5-accuracy"),
    "an own metric": lambda: Task((X, Y), metric=quartic, direction="minimise"),
    "another own metric": lambda: Task((X, Y), metric=cubic, direction="minimise"),
    "an own loss": lambda: Task((X, Y), loss=quartic),
    "another own loss": lambda: Task((X, Y), loss=cubic),
    "normalised": lambda: Task((X, Y), normalise="train"),
    "normalised otherwise": lambda: Task((X, Y), normalise=(0.5, 0.5)),
    "a test part": lambda: Task((X, Y), test=(X, Y)),
    "another order": lambda: Task((X[::-1], Y[::-1])),
    "a shape": lambda: Task((X.reshape(60, 1, 5), Y)),
    "regression": lambda: Task((X, Y.astype(np.float32))),
    "items": lambda: Task([(torch.as_tensor(a), int(b)) for a, b in zip(X, Y, strict=True)], classes=3),
}  # fmt: skip


def test_fingerprints_are_equal_for_equal_tasks_and_differ_for_others():
    plain = Task((X, Y))
    equal = [
        Task((X.copy(), Y.copy())),
        Task((torch.as_tensor(X), torch.as_tensor(Y))),
        Task(TensorDataset(torch.as_tensor(X), torch.as_tensor(Y))),
        Task((X, Y), classes=3, loss="cross-entropy", metric="accuracy", input=(5,)),
        Task((X.astype(np.float64), Y.astype(np.int32))),
        Task((X, Y), name="otherwise"),
    ]
    assert {task.fingerprint() for task in equal} == {plain.fingerprint()}
    assert len(plain.fingerprint()) == 32
    prints = {name: make().fingerprint() for name, make in CHANGES.items()}
    assert len({plain.fingerprint(), *prints.values()}) == 1 + len(CHANGES)


def test_named_tasks_have_fingerprints_of_their_options():
    options = [
        {}, {"permuted": "pixels"}, {"permuted": "rows-columns"}, {"permuted": "pixels", "permutation_seed": 1},
        {"noise": 0.1}, {"noise": 0.1, "noise_seed": 1}, {"subset": 500}, {"valid": 0.3}, {"split_seed": 1},
    ]  # fmt: skip
    prints = [eclose.task("digits", **chosen).fingerprint() for chosen in options]
    assert len(set(prints)) == len(options)
    assert prints == [eclose.task("digits", **chosen).fingerprint() for chosen in options]


def test_a_named_task_travels_as_its_name():
    task = eclose.task("digits:noise=0.1", subset=500)
    sent = pickle.dumps(task)
    assert len(sent) < 1000
    assert pickle.loads(sent).fingerprint() == task.fingerprint()
    assert len(pickle.dumps(own())) > X.nbytes
    assert task.spec.build().fingerprint() == task.fingerprint()
