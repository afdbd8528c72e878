"""Gradient searches that are asked for: wrong requests are refused in words, unusual right ones work."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import eclose as ec
from eclose.algebra.errors import EcloseError, LimitError, RequestError
from eclose.train.loop import TrainingError

DIGITS = "digits:subset=120"
SMALL = {"epochs": 1, "channels": 4, "cells": 1, "batch_size": 50, "retrain": 0, "crop": 0, "frozen": 0}
OWN = {key: value for key, value in SMALL.items() if key not in ("channels", "cells")}
EDGES = "Net -> Sequential(conv(channels=8), Edge, Edge, head)\nEdge -> id | conv(kernel=3) | relu"
RECURSIVE = "Net -> Sequential(conv(channels=4), X, head)\nX -> conv(kernel=3) | Sequential(X, X)"
VAST = "\n".join(
    ["Net -> Sequential(conv(channels=4), A1, head)",
     *(f"A{n} -> Sequential(A{n + 1}, A{n + 1}) | Sequential(A{n + 1}, relu, A{n + 1})" for n in range(1, 20)),
     "A20 -> relu | tanh"]
)  # fmt: skip


@pytest.mark.parametrize(
    ("strategy", "settings", "message"),
    [
        ("darts-2nd", {"mixture": "hard-gumbel"}, "second-order.*goes with the mixtures softmax and simplex"),
        ("darts", {"architecture_rat": 0.1}, "unknown setting 'architecture_rat'; did you mean 'architecture_rate'"),
        ("darts", {"budget": 3}, "darts trains one supernet, so budget= means nothing; epochs= says how long"),
        ("darts", {"workers": 2}, "so workers= means nothing"),
        ("darts", {"channels": 6, "partial": 4}, "partial.k=4. cannot divide 6 channels evenly; k=1, k=2"),
        ("drnas-progressive", {"stages": "1:4:0 1:2:0", "epochs": 3}, "take 2 epochs, epochs=3; set both"),
        ("darts", {"split": 0.999999}, "split=0.999999.*some, and not all"),
        ("darts", {"split": 0.000001}, "split=1e-06.*some, and not all"),
        ("darts", {"split": 1.0}, "split must be a share of the data below 1"),
        ("darts", {"epochs": "soon"}, "epochs is a whole number such as 50, not 'soon'"),
        ("darts", {"mixture": "sofmax"}, "unknown mixture 'sofmax'; did you mean 'softmax'"),
        ("gdas", {"capture": "on"}, "cannot be captured: every step takes another path"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(strategy, settings, message, tmp_path):
    with pytest.raises(RequestError, match=message):
        ec.search("nasbench201", DIGITS, strategy, out=tmp_path / "run", **{**SMALL, **settings})
    assert not (tmp_path / "run").exists()


def test_the_names_that_are_known_are_listed_once():
    with pytest.raises(RequestError) as refused:
        ec.search("nasbench201", DIGITS, "darts", zzz=1)
    names = str(refused.value).partition("settings: ")[2].rstrip(")").split(", ")
    assert {"epochs", "architecture_rate", "retrain"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("grammar", "strategy", "kind", "message"),
    [
        ('Net -> Sequential(conv(channels=8), choice(relu, name="a"), head)', "darts", RequestError,
         "the choice 'a' of .* has a single alternative; write it alone"),
        ("Net -> Sequential(conv(channels=8), relu, head)", "darts", RequestError, "leaves nothing to decide"),
        (RECURSIVE, "darts", LimitError, "a recursive grammar cannot be relaxed"),
        (VAST, "darts", LimitError, r"has 1,191,137,596,760 nodes, more than the limit of 100,000"),
        (RECURSIVE, "rs-ws", LimitError, "a recursive grammar cannot be relaxed"),
    ],
)  # fmt: skip
def test_spaces_without_a_supernet_are_refused(grammar, strategy, kind, message, tmp_path):
    with pytest.raises(kind, match=message) as refused:
        ec.search(grammar, DIGITS, strategy, out=tmp_path / "run", **OWN)
    assert getattr(refused.value, "exit_status", 2) == 2
    assert not (tmp_path / "run").exists()


def test_a_table_has_nothing_to_train_on():
    with pytest.raises(RequestError, match="is a table with nothing to train on; search on the data"):
        ec.search("nasbench201", "tabular:cifar10@12", "darts", **SMALL)


def test_channels_of_terms_that_say_their_own_are_refused():
    with pytest.raises(RequestError, match="has no channels to set; its terms say them themselves"):
        ec.search(EDGES, DIGITS, "darts", channels=4, **OWN)


def test_edge_normalisation_of_a_space_without_meeting_edges_is_a_note(tmp_path):
    with pytest.warns(ec.EcloseWarning, match="edge_normalisation changes nothing"):
        found = ec.search(EDGES, DIGITS, "pc-darts", out=tmp_path / "run", **OWN)
    assert found.best.term in ec.Grammar.parse(EDGES)


def test_partial_channels_of_a_choice_between_whole_layers_are_refused():
    with pytest.raises(RequestError, match="need choices between single operations that keep channels"):
        ec.search("layer-choice", DIGITS, "pc-darts", partial=2, **OWN)


def points(count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    return (rng.normal(size=(count, 1, 8, 8)) + labels[:, None, None, None]).astype("float32"), labels


@pytest.mark.parametrize("held", [3, 4])
def test_without_a_split_the_valid_part_is_that_of_the_task_however_small(held):
    task = ec.Task(points(90), points(held, 1), points(30, 2), allow_missing_classes=True)
    found = ec.search("nasbench201", task, "darts", split=0.0, **SMALL)
    assert {"valid_loss", "train_loss"} <= found.history[0].keys()


def test_a_loader_is_not_cut_but_has_its_own_valid_part():
    def loader(count, seed):
        inputs, labels = points(count, seed)
        data = TensorDataset(torch.from_numpy(inputs), torch.from_numpy(labels))
        return DataLoader(data, batch_size=30)

    task = ec.Task(loader(90, 0), loader(60, 1), loader(30, 2))
    found = ec.search("nasbench201", task, "darts", **{**SMALL, "epochs": 2, "retrain": 1})
    assert found.final["part"] == "test"
    assert len(found.history) == 2
    assert all(math.isfinite(entry["valid_loss"]) for entry in found.history)
    assert found.best.term in ec.space("nasbench201").grammar


@pytest.mark.parametrize("settings", [{}, {"selection": "sampled", "samples": 12}])
def test_a_regression_is_searched_in_its_own_direction(settings):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(120, 1, 8, 8)).astype("float32")
    targets = inputs.mean((2, 3)).astype("float32")
    task = ec.Task((inputs, targets), (inputs[:40], targets[:40]))
    assert task.metric.direction == "minimise"
    found = ec.search(EDGES, task, "darts", **{**OWN, "epochs": 2}, **settings)
    assert math.isfinite(found.best.score)
    assert found.best.score >= 0
    from eclose.strategies.gradient.recipe import Recipe
    from eclose.strategies.gradient.search import GradientSearch
    from eclose.strategies.gradient.selection import Context
    from eclose.strategies.gradient.selection.sampled import sampled

    if not settings:
        return
    # brute force: with these samples all nine architectures are drawn, and the smallest error wins
    recipe = Recipe(**{**found.request["settings"], "samples": 200})
    search = GradientSearch(ec.Space.from_grammar(EDGES, name="edges"), task, recipe, device="cpu")
    search.search()
    made = search.made(0)
    context = Context(made.supernet, made.rule, recipe, task, search.feeds(), search.plain, search.device)
    chosen = sampled(context)
    names = list(made.supernet.sites)
    scores = [
        context.discrete({names[0]: (one,), names[1]: (other,)})["score"] for one in range(3) for other in range(3)
    ]
    assert chosen.score == pytest.approx(min(scores))
    assert chosen.score < max(scores)


def test_tokens_are_searched_in_the_transformer_space():
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 7, size=(60, 12))
    labels = (inputs[:, 0] > 3).astype("int64")
    task = ec.Task((inputs, labels), input=ec.Tokens(12, 7), classes=2)
    found = ec.search("transformer", task, "darts", **OWN)
    assert found.best.term in ec.space("transformer").grammar
    assert math.isfinite(found.history[0]["valid_loss"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": 1e30, "clip": 0.0}, r"step \d+ of \d+ in epoch 1.*Not finite: .*cell/1_0"),
        ({"architecture_rate": 1e38, "epochs": 3}, r"step \d+ of \d+ in epoch \d.*Not finite: the alphas of cell/"),
    ],
)
def test_a_search_that_breaks_says_where_and_what(settings, message, tmp_path):
    with pytest.raises(TrainingError, match=message) as broken:
        ec.search("nasbench201", DIGITS, "darts", out=tmp_path / "run", **{**SMALL, **settings})
    assert isinstance(broken.value, EcloseError)
    assert broken.value.exit_status == 1


def test_a_comparison_says_what_a_search_without_trials_took(tmp_path):
    small = {key: value for key, value in SMALL.items() if key != "retrain"}
    found = ec.compare(
        "nasbench201", DIGITS, "gdas", seeds=1, out=tmp_path / "c", table="tabular:cifar10@200", budget=1,
        search_protocol="quick", per_strategy={"gdas": small, "random": {"epochs": 1}},
    )  # fmt: skip
    (search,) = found.row("gdas").searches
    assert search.seconds is not None
    assert 0 < search.seconds < 120
    assert math.isfinite(search.score)
