"""The public functions that find a network: from Python, with one's own data, spaces and grammars."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import eclose as ec
from eclose.algebra.errors import EcloseError, RequestError


def points(count: int, seed: int):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    return (rng.normal(size=(count, 1, 8, 8)) + labels[:, None, None, None]).astype("float32"), labels


def task(**options) -> ec.Task:
    return ec.Task(points(90, 0), points(30, 1), points(30, 2), **options)


def test_a_search_of_ones_own_data_in_memory():
    run = ec.search("tiny", task(), "random", budget=3, epochs=2)
    assert len(run.history) == 3
    assert run.best.term in ec.space("tiny")
    assert run.best.score == max(trial["objectives"]["score"] for trial in run.history)
    assert isinstance(run.best.model, torch.nn.Module)
    assert run.final["part"] == "test"
    assert run.path is None
    with pytest.raises(RequestError, match="give out="):
        run.report()
    assert "3 trials" in repr(run)


def test_the_same_seed_gives_the_same_run():
    one, two = (
        ec.search("tiny", task(), "evolution", budget=4, epochs=1, population=2, tournament=2, seed=5) for _ in "ab"
    )
    assert one.history == two.history
    assert one.final == two.final
    other = ec.search("tiny", task(), "evolution", budget=4, epochs=1, population=2, tournament=2, seed=6)
    assert other.history != one.history


def test_a_search_in_memory_has_the_history_of_one_in_a_folder(tmp_path):
    settings = {"budget": 3, "epochs": 1, "retrain": 0, "lag": 2}
    kept = ec.search("tiny", task(), "evolution", out=tmp_path / "run", **settings)
    assert ec.search("tiny", task(), "evolution", **settings).history == kept.history


def test_a_grammar_of_ones_own_is_searched_and_resumed(tmp_path):
    grammar = "Net -> Sequential(Op, Op)\nOp -> conv(kernel={1, 3}) | sep_conv_3x3"
    run = ec.search(grammar, task(), "random", out=tmp_path / "run", budget=3, epochs=1)
    assert (tmp_path / "run" / "space.grammar").read_text() == grammar
    again = ec.resume(tmp_path / "run", task=task())
    assert again.history == run.history
    assert again.best.term is run.best.term
    x = torch.randn(2, 1, 8, 8)
    assert torch.equal(again.best.model.eval()(x), run.best.model.eval()(x))
    with pytest.raises(RequestError, match="given from Python"):
        ec.resume(tmp_path / "run")
    with pytest.raises(RequestError, match="not the task"):
        ec.resume(tmp_path / "run", task=ec.Task(points(90, 9), points(30, 1)))


def test_what_a_folder_cannot_hold_is_refused(tmp_path):
    grammar = ec.Grammar.parse("Net -> conv | id | relu", where=lambda term: term.name != "id")
    with pytest.raises(RequestError, match="which a run's folder cannot hold"):
        ec.search(grammar, task(), "random", out=tmp_path / "run", budget=1, epochs=1)
    assert not (tmp_path / "run").exists()
    assert ec.search(grammar, task(), "random", budget=1, epochs=1, retrain=0).best.term.name != "id"


def test_several_objectives_have_a_front(tmp_path):
    run = ec.search(
        "tiny", task(), "random", out=tmp_path / "run", budget=4, epochs=1, objectives=("score", "parameters")
    )
    assert set(run.history[0]["objectives"]) >= {"score", "parameters"}
    assert run.request["objectives"] == {"score": "maximise", "parameters": "minimise"}


def test_a_table_is_searched_with_further_objectives():
    run = ec.search(
        "nasbench201",
        "tabular:cifar10@12->200",
        "random",
        budget=10,
        objectives={"score": "maximise", "raspi4_latency": "minimise"},
    )
    assert all("raspi4_latency" in trial["objectives"] for trial in run.history if trial["status"] == "done")
    assert set(run.final["values"]) == {"validation", "test"}


@pytest.mark.parametrize("policy", ["reject", "reuse", "allow"])
def test_what_happens_to_repeated_networks(policy):
    run = ec.search(
        "Net -> conv(kernel={1, 3}) | id",
        task(),
        "random",
        budget=3 if policy == "reject" else 6,
        epochs=1,
        retrain=0,
        duplicates=policy,
    )
    terms = [trial["term"] for trial in run.history]
    if policy == "reject":
        assert len(set(terms)) == 3
    if policy == "reuse":
        sources = [trial for trial in run.history if "source" in trial]
        assert all(run.history[trial["source"]]["objectives"] == trial["objectives"] for trial in sources)
        assert sources


def test_a_search_in_a_study_of_optuna(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    run = ec.search("tiny", task(), "random", out=tmp_path / "run", budget=3, epochs=1, storage=url)
    import optuna

    study = optuna.load_study(study_name="run", storage=url)
    assert study.best_value == run.best.score
    assert (tmp_path / "run" / "events.jsonl").exists()


def test_evaluate_a_term_or_a_model():
    result = ec.evaluate("Sequential(conv, relu)", task(), epochs=2)
    assert result["part"] == "test"
    assert result["parameters"] == ec.cost("Sequential(conv, relu)", task=task()).parameters
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    assert ec.evaluate(model, task(), "quick", epochs=40)["score"] > 40
    assert ec.evaluate("Sequential(conv, relu)", task(), epochs=2)["score"] == result["score"]


WRONG = [
    ({"strategy": "evolutoin"}, "did you mean 'evolution'"),
    ({"budgt": 3}, "did you mean 'budget'"),
    ({"objectives": ("scroe",)}, "did you mean 'score'"),
    ({"seed": "now"}, "a seed is a whole number"),
    ({"epochs": "many"}, "whole number"),
    ({"workers": "two"}, "workers is a whole number"),
    ({"data": "/tmp"}, "goes with a task's name"),
    ({"protocol": "quik"}, "did you mean 'quick'"),
    ({"device": "tpu9"}, "unknown device"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_a_wrong_request_is_refused_before_anything_is_made(settings, message, tmp_path):
    with pytest.raises(EcloseError, match=message):
        ec.search("tiny", task(), out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_a_refused_request_leaves_no_folder_behind(tmp_path):
    with pytest.raises(EcloseError):
        ec.search("tiny", task(), out=tmp_path / "run", budget=1, epochs=1, storage="nonsense://here")
    assert not (tmp_path / "run").exists()
    with pytest.raises(RequestError, match="there is no folder"):
        ec.evaluate("conv", task(), epochs=1, out=tmp_path / "none" / "result.json")
    with pytest.raises(RequestError, match="a seed is a whole number"):
        ec.evaluate("conv", task(), seed=None)


def test_a_space_that_cannot_take_the_data_is_refused_before_the_start(tmp_path):
    with pytest.raises(RequestError, match="no network of 8 drawn from transformer fits"):
        ec.search("transformer", task(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_that_mean_nothing_on_a_table_are_refused():
    cell = str(ec.space("nasbench201").sample(0))
    for settings in ({"protocol": "darts-cifar"}, {"epochs": 3}, {"epocs": 3}):
        with pytest.raises(RequestError, match="nothing is trained"):
            ec.evaluate(cell, "tabular:cifar10@200", **settings)
    with pytest.raises(RequestError, match="retrain= means nothing"):
        ec.search("nasbench201", "tabular:cifar10@200", retrain=3)


def test_a_resumed_run_compares_space_and_data(tmp_path, monkeypatch):
    from eclose.spaces import SPACES

    one = ec.Space.from_grammar("Net -> conv(kernel={1, 3}) | id", name="changing")
    other = ec.Space.from_grammar("Net -> conv(kernel={5, 7}) | id", name="changing")
    ec.register(one)
    monkeypatch.setattr(SPACES, "_entries", dict(SPACES._entries))
    ec.search("changing", "digits:subset=100", "random", out=tmp_path / "run", budget=1, epochs=1, retrain=0)
    assert len(ec.resume(tmp_path / "run").history) == 1
    SPACES._entries.pop("changing")
    ec.register(other)
    with pytest.raises(RequestError, match="its grammar has changed"):
        ec.resume(tmp_path / "run")


def test_a_disk_that_fills_up_ends_the_search_and_loses_nothing(tmp_path, monkeypatch):
    from eclose.runs import files

    settings = {"budget": 4, "epochs": 1, "retrain": 0}
    expected = ec.search("tiny", "digits:subset=100", "random", out=tmp_path / "whole", **settings).history
    real, written = files.os.write, []

    def full(descriptor, content):
        written.append(len(content))
        if sum(size > 20_000 for size in written) > 2:  # the third checkpoint finds no room
            raise OSError(28, "No space left on device")
        return real(descriptor, content)

    monkeypatch.setattr(files.os, "write", full)
    with pytest.raises(EcloseError, match="the disk is full") as raised:
        ec.search("tiny", "digits:subset=100", "random", out=tmp_path / "run", **settings)
    assert raised.value.exit_status == 1
    monkeypatch.undo()
    assert ec.resume(tmp_path / "run").history == expected


def test_the_wrong_kind_of_thing_is_refused():
    with pytest.raises(RequestError, match="a task is given by"):
        ec.search("tiny", 3)
    with pytest.raises(RequestError, match="a space is given by"):
        ec.search(3, task())
    with pytest.raises(RequestError, match="holds the terms of nasbench201"):
        ec.search("tiny", "tabular:cifar10@200")
    with pytest.raises(RequestError, match="can be evaluated"):
        ec.evaluate(3, task())


def test_the_test_part_is_closed_while_a_search_runs():
    seen = []

    def loss(outputs, targets):
        try:
            given.part("test").resident()
        except RequestError as error:
            seen.append(str(error))
        return torch.nn.functional.cross_entropy(outputs, targets)

    given = task(loss=loss, metric="accuracy")
    ec.search("tiny", given, "random", budget=1, epochs=1, retrain=0)
    assert seen
    assert "cannot be read during a search" in seen[0]
