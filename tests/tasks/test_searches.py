"""Searches on a user's own data, of every kind of input and output, from data to a trained network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import eclose as ec

RNG = np.random.default_rng(0)
LABELS = np.arange(24) % 3
PICTURES = (RNG.normal(size=(24, 3, 8, 12)) + LABELS[:, None, None, None]).astype(np.float32)
MAPS = RNG.normal(size=(10, 1, 16, 16)).astype(np.float32)
WORDS = RNG.integers(0, 7, (24, 12))
ITEMS = TensorDataset(torch.as_tensor(PICTURES), torch.as_tensor(LABELS))

CASES = {
    "pictures of another size": ("tiny", lambda: ec.Task((PICTURES, LABELS)), (3,)),
    "uint8 pictures": ("tiny", lambda: ec.Task(((PICTURES * 30 + 128).astype(np.uint8), LABELS)), (3,)),
    "a test part": ("tiny", lambda: ec.Task((PICTURES, LABELS), test=(PICTURES, LABELS)), (3,)),
    "items": ("tiny", lambda: ec.Task([*ITEMS], valid=[*ITEMS], classes=3), (3,)),
    "loaders": ("tiny", lambda: ec.Task(DataLoader(ITEMS, 8), DataLoader(ITEMS, 8), classes=3), (3,)),
    "regression": ("tiny", lambda: ec.Task((PICTURES, PICTURES.mean((1, 2, 3)))), (1,)),
    "several numbers": ("tiny", lambda: ec.Task((PICTURES, PICTURES.mean((2, 3)))), (3,)),
    "an own loss": ("tiny", lambda: ec.Task((PICTURES, PICTURES.mean((2, 3))), loss=torch.nn.L1Loss()), (3,)),
    "yes or no": ("tiny", lambda: ec.Task((PICTURES, LABELS > 1), loss="binary-cross-entropy"), (1,)),
    "a map of numbers": ("unet", lambda: ec.Task((MAPS, np.abs(MAPS))), (1, 16, 16)),
    "a map of several numbers": ("unet", lambda: ec.Task((MAPS, np.repeat(MAPS, 2, 1))), (2, 16, 16)),
    "a map of labels": ("unet", lambda: ec.Task((MAPS, (MAPS[:, 0] > 0).astype(int))), (2, 16, 16)),
    "words to a class": ("transformer", lambda: ec.Task((WORDS, WORDS[:, 0] % 3)), (3,)),
    "words to words": ("transformer", lambda: ec.Task((WORDS, (WORDS + 1) % 7)), (7, 12)),
    "words to a number": ("transformer", lambda: ec.Task((WORDS, WORDS.mean(1))), (1,)),
}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("case", CASES)
def test_from_data_to_a_network(case):
    space, make, shape = CASES[case]
    task = make()
    run = ec.search(space, task, "random", budget=2, epochs=1)
    assert np.isfinite(run.best.score) and len(run.history) == 2
    inputs, targets = next(iter(task.part("valid").batches(5)))
    net = ec.build(run.best.term, space=space, task=task).eval()
    outputs = net(task.prepare(inputs))
    assert tuple(outputs.shape[1:]) == shape
    assert torch.isfinite(task.loss(outputs, targets))


@pytest.mark.slow
def test_what_is_learned_is_there():
    labels = (MAPS[:, 0] > 0).astype(int)
    task = ec.Task((np.repeat(MAPS, 40, 0), np.repeat(labels, 40, 0)))
    run = ec.search("unet", task, "random", budget=1, epochs=6)
    assert run.best.score > 75  # half of the positions are positive
