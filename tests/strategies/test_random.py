"""Random search, the catalogue of strategies, and the terms of Optuna's trials."""

import random
import shlex
import subprocess
import sys

import pytest

import eclose as ec
from eclose.algebra.errors import MissingExtra, RequestError
from eclose.algebra.grammar import Grammar
from eclose.spaces._space import Space
from eclose.strategies import STRATEGIES, explained, make
from eclose.strategies.blackbox.random import Random
from eclose.study.in_memory import run_in_memory
from eclose.study.results import Objective
from eclose.tasks.names import read_value
from support.statistics import fits

GRAMMAR = "S -> Sequential(A, A)\nA -> conv(kernel={1,3}) [3] | id"
CONNECTED = Grammar.parse("Net -> Cell(Op, Op, Op, Op, Op, Op)\nOp -> zero [5] | id | conv\nconstrain Cell connected")


def test_terms_are_drawn_by_the_weights_of_the_rules():
    strategy, rng = Random(Grammar.parse(GRAMMAR)), random.Random(0)
    share = {"conv": 3 / 8, "conv(kernel=1)": 3 / 8, "id": 1 / 4}
    expected = {
        ec.parse(f"Sequential({first}, {second})"): share[first] * share[second] for first in share for second in share
    }
    assert fits((strategy.ask(number, rng) for number in range(5000)), expected)


def test_proposals_are_a_function_of_seed_and_number():
    def trials(seed, lag):
        evaluate = lambda term, seed: len(str(term))  # noqa: E731
        return [trial.term for trial in run_in_memory(make("random", CONNECTED), evaluate, 20, seed, lag=lag)]

    assert trials(1, 1) == trials(1, 7)
    assert trials(1, 1) != trials(2, 1)


def test_listing_the_catalogue_imports_no_strategy():
    code = (
        "import sys; from eclose.strategies import STRATEGIES; print([e.name for e in STRATEGIES]);"
        "print([m for m in sys.modules if m.startswith('eclose.strategies.') or m in ('numpy', 'torch')])"
    )
    names, loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.splitlines()
    assert loaded == "[]"
    for name in ("random", "evolution", "reinforce"):
        assert repr(name) in names


@pytest.mark.parametrize("name", ["random", "evolution", "reinforce"])
def test_entries_say_what_they_make(name):
    entry = STRATEGIES.get(name)
    strategy = make(name, CONNECTED, Objective("loss", "minimise"))
    assert (entry.name, entry.kind, strategy.name) == (name, "black-box", name)
    assert strategy.settings == dict(entry.settings)
    text = explained(name)
    shown = dict(word.split("=") for line in text.splitlines() if line.startswith("    ") for word in shlex.split(line))
    assert {key: read_value(value) for key, value in shown.items()} == dict(entry.settings)
    assert entry.source in text
    assert not [line for line in text.splitlines() if len(line) > 125]


def test_settings_that_do_not_exist_are_refused_with_those_that_do():
    with pytest.raises(
        RequestError, match=r"no setting 'populaton'; did you mean 'population'\? \(settings: population=50"
    ):
        make("evolution", CONNECTED, populaton=3)
    with pytest.raises(RequestError, match=r"strategy 'random' has no setting 'x' \(settings: none\)"):
        make("random", CONNECTED, x=1)
    with pytest.raises(RequestError, match="did you mean 'evolution'"):
        make("evolutoin", CONNECTED)


# Optuna


class Answers:
    """A trial that gives the answers it was made with, as Optuna's fixed trials do."""

    def __init__(self, answers):
        self.answers, self.asked = answers, {}

    def suggest_categorical(self, name, choices):
        assert self.asked.setdefault(name, choices) == choices
        return self.answers[name] if name in self.answers else choices[0]


def test_optuna_walks_a_space():
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = Space.from_grammar(CONNECTED)
    target = ec.parse("Cell(conv, id, conv, id, conv, id)")

    def distance(trial):
        term = space.suggest(trial)
        assert term in space
        return sum(mine is not wanted for mine, wanted in zip(term.children, target.children, strict=True))

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(distance, n_trials=80)
    states = [trial.state.name for trial in study.trials]
    assert set(states) == {"COMPLETE", "PRUNED"}  # sampled without regard to the constraint
    assert len(study.best_params) == 6
    assert study.best_value <= 1
    assert str(space.suggest(optuna.trial.FixedTrial(study.best_params)))


def test_what_a_constraint_refuses_is_pruned():
    import optuna

    space = Space.from_grammar(CONNECTED, name="mine")
    trial = Answers({})
    with pytest.raises(optuna.TrialPruned, match="break a constraint of mine"):
        space.suggest(trial)  # zero everywhere
    assert len(trial.asked) == 6
    assert space.suggest(Answers(dict.fromkeys(trial.asked, "id"))) is ec.parse("Cell(id, id, id, id, id, id)")


def test_without_optuna_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match="pip install optuna"):
        Space.from_grammar(CONNECTED).suggest(Answers({}))
