"""Thirty steps of every strategy that moves alphas: the loss on data that no step has seen falls."""

from __future__ import annotations

import statistics

import pytest
import torch

from eclose.spaces import Space
from eclose.strategies import STRATEGIES
from eclose.strategies.gradient.named import recipe_of
from support.small_supernets import around, search_of

ROW = """
Net -> Sequential(conv(channels=8), Edge, Edge, head)
Edge -> id | conv(kernel=3) | conv(kernel=1) | relu
"""
STEPS, EPOCHS, DRAWS = 30, 15, 4
RATE = 0.1  # of the weights: thirty steps are few
FALL = 0.05  # nats; a search that does not learn stays where it is
GRADIENT = [entry.name for entry in STRATEGIES if STRATEGIES.get(entry.name).kind == "gradient"]
WITH_ALPHAS = [name for name in GRADIENT if STRATEGIES.get(name).settings["step"] != "none"]
OWN = {"drnas-progressive": {"stages": f"{EPOCHS}:4:0"}, "sdarts-adv": {"attack_steps": 2}}


def search_with(name: str, seed: int):
    settings = {
        "frozen": 0,
        "rate": RATE,
        "epochs": EPOCHS,
        "batch_size": 50,
        "crop": 0,
        "flip": False,
        **OWN.get(name, {}),
    }
    space = Space.from_grammar(ROW, name="row")
    recipe = recipe_of(STRATEGIES.get(name), space.name, settings)
    return search_of(space, subset=200, seed=seed, **recipe.plain())


def probed(search, made) -> float:
    """Return the mean loss on the held data under the strategy's own mixture, with the same draws every time."""
    context = around(search, made)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(5)
        drawn = [made.rule(made.supernet.alphas, "weights") for _ in range(DRAWS)]
        return statistics.mean(context.score(weights)["loss"] for weights in drawn)


@pytest.mark.parametrize("name", WITH_ALPHAS)
def test_the_loss_falls(name):
    falls = []
    for seed in range(3):
        search = search_with(name, seed)
        made = search.made(0)
        made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(seed))
        loop = search.loop(made, 0)
        assert loop.position.steps * EPOCHS >= STEPS
        before = probed(search, made)
        loop.run()
        falls.append(before - probed(search, made))
    assert statistics.median(falls) > FALL, falls
