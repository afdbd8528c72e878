"""A search that breaks says where it broke."""

from __future__ import annotations

import pytest
import torch

from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.finite import broken_alphas, broken_weights, explaining, where
from eclose.train.callbacks import Callback
from eclose.train.loop import TrainingError
from support.small_supernets import search_of


class Breaking(Callback):
    """Puts something that is no number where it is told to, before one step."""

    def __init__(self, step: int, tensor: torch.Tensor):
        self.step, self.tensor = step, tensor

    def before_step(self, loop):
        if loop.position.step == self.step:
            with torch.no_grad():
                self.tensor.view(-1)[0] = torch.nan


def parts(**settings):
    search = search_of("nasbench201", subset=200, channels=4, cells=1, epochs=1, batch_size=20, **settings)
    made = search.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
    return made.supernet, search.loop(made, 0)


def parameter_of(supernet, choice: str, label: str) -> torch.Tensor:
    program = supernet.net.program
    index = supernet.sites[choice].labels.index(label)
    for step in program.steps:
        if step.guard >= 0 and step.layer == "conv":
            guard = program.guards[step.guard]
            if (guard.choice, guard.alternative) == (choice, index):
                return next(supernet.net.layers[step.name].parameters())
    raise AssertionError


def test_all_finite():
    supernet, _ = parts()
    assert broken_alphas(supernet) == broken_weights(supernet) == []
    assert where(supernet).startswith("All alphas and weights are finite")


def test_the_operation_is_named():
    supernet, _ = parts()
    with torch.no_grad():
        parameter_of(supernet, "cell/2_1", "conv")[0] = torch.inf
        supernet.alphas["cell/3_0"][2] = torch.nan
    assert broken_weights(supernet) == ["conv at 'cell/2_1'"]
    assert broken_alphas(supernet) == ["cell/3_0"]
    assert where(supernet) == "Not finite: the alphas of cell/3_0 and the weights of conv at 'cell/2_1'"


def test_broken_weights_say_the_step():
    supernet, loop = parts(step="none")
    loop.callbacks.append(Breaking(2, parameter_of(supernet, "cell/2_1", "conv")))
    with (
        pytest.raises(TrainingError, match=r"train loss is not finite at step 3 of \d+ in epoch 1.*Not finite: "),
        explaining(loop, supernet),
    ):
        loop.run()


def test_broken_alphas_say_the_step_and_the_choice():
    supernet, loop = parts()
    loop.callbacks.append(Breaking(1, supernet.alphas["cell/2_0"]))
    with (
        pytest.raises(TrainingError, match=r"broke at step 2 of \d+ in epoch 1: Not finite: the alphas of cell/2_0"),
        explaining(loop, supernet),
    ):
        loop.run()


def test_data_that_are_no_numbers_are_told_from_parameters():
    supernet, loop = parts(step="none", rate=1e-30, weight_decay=0.0)
    feed = loop.feeds["train"]

    class Broken:
        steps, exact = feed.steps, True

        def batch(self, epoch, step):
            found = feed.batch(epoch, step)
            return found._replace(inputs=found.inputs * (torch.nan if step == 1 else 1.0))

    loop.feeds["train"] = Broken()
    loop.update = lambda groups: None  # nothing moves, so nothing breaks but the loss
    with pytest.raises(TrainingError, match="All alphas and weights are finite"), explaining(loop, supernet):
        loop.run()


def test_other_errors_pass():
    supernet, loop = parts()
    with pytest.raises(RequestError, match="another"), explaining(loop, supernet):
        raise RequestError("another")
