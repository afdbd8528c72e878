"""Regularised evolution against a plain reading of the paper, and against random search."""

import copy
import pickle
import random
from collections import Counter
from statistics import mean

import pytest

import eclose as ec
from eclose.algebra.errors import RequestError
from eclose.algebra.grammar import Grammar
from eclose.strategies.blackbox.evolution import Evolution
from eclose.strategies.blackbox.random import Random
from eclose.study.in_memory import run_in_memory
from eclose.study.results import Objective, Result, best_trial, failed
from support.statistics import fits

GRAMMAR = Grammar.parse("S -> Cell(A, A, A, A, A, A)\nA -> conv | id | zero | avg_pool | max_pool")
TARGET = ec.parse("Cell(conv, id, avg_pool, max_pool, conv, conv)")


def matches(term, seed=0):
    """Return how many operations of a cell are those of the target."""
    return float(sum(mine is wanted for mine, wanted in zip(term.children, TARGET.children, strict=True)))


def best_of(strategy, evaluate, objective, trials, seed):
    found = best_trial(run_in_memory(strategy, evaluate, trials, seed, objectives=(objective,)), objective)
    return found.result.objectives[objective.name]


def told(strategy, count, seed=0):
    rng = random.Random(seed)
    for number in range(count):
        term = strategy.ask(number, rng)
        strategy.tell(number, term, Result(objectives={"score": matches(term)}))
    return strategy


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
def test_it_beats_random_search_in_either_direction(direction):
    objective = Objective("value", direction)
    sign = 1 if direction == "maximise" else -1

    def evaluate(term, seed):
        return {"value": sign * matches(term)}

    evolved = [
        sign * best_of(Evolution(GRAMMAR, objective, population=20, tournament=10), evaluate, objective, 200, seed)
        for seed in range(10)
    ]
    drawn = [sign * best_of(Random(GRAMMAR, objective), evaluate, objective, 200, seed) for seed in range(10)]
    assert mean(evolved) > mean(drawn) + 1
    assert min(evolved) >= 5


def test_history_is_that_of_the_papers_algorithm():
    """The same generator, read by a loop as the paper writes it: append, drop from the left, choose among a sample."""

    class Numbers:
        """A space of whole numbers on a line: a mutant is a neighbour."""

        def sample(self, rng):
            return rng.randrange(1000)

        def mutate(self, term, rng):
            return term + rng.choice((-1, 1)) * rng.randrange(1, 20)

    population, history = [], []
    for number in range(200):
        rng = random.Random(number)
        if number < 20:
            value = Numbers().sample(rng)
        else:
            sample = [population[rng.randrange(20)] for _ in range(5)]
            value = Numbers().mutate(max(sample, key=lambda each: -abs(each - 500)), rng)
            population.pop(0)
        population.append(value)
        history.append(value)

    strategy = Evolution(Numbers(), population=20, tournament=5)
    for number, value in enumerate(history):
        assert strategy.ask(number, random.Random(number)) == value
        strategy.tell(number, value, Result(objectives={"score": -abs(value - 500)}))


def test_the_oldest_leaves_however_good_it_was():
    strategy = Evolution(GRAMMAR, population=5, tournament=50)
    others = [GRAMMAR.unrank(number) for number in range(5)]
    for number, term in enumerate([TARGET, *others]):
        if number:
            assert strategy._parent(random.Random(0)) is TARGET  # the best for as long as it is there
        strategy.tell(number, term, Result(objectives={"score": 6.0 if term is TARGET else 0.0}))
    assert strategy._parent(random.Random(0)) is not TARGET


@pytest.mark.parametrize("crossover", [0.0, 0.5])
def test_asking_changes_nothing(crossover):
    strategy = told(Evolution(GRAMMAR, population=8, tournament=3, crossover=crossover), 30)
    before = pickle.dumps((strategy._members, strategy._failures))
    asked = [strategy.ask(30, random.Random(seed)) for seed in range(20)]
    assert pickle.dumps((strategy._members, strategy._failures)) == before
    assert [copy.deepcopy(strategy).ask(30, random.Random(seed)) for seed in range(20)] == asked
    assert len(set(asked)) > 5


def test_the_same_tells_give_the_same_proposals():
    first, second = (told(Evolution(GRAMMAR, population=8, crossover=0.3), 40, seed=3) for _ in range(2))
    other = told(Evolution(GRAMMAR, population=8, crossover=0.3), 40, seed=4)
    ask = [[each.ask(40, random.Random(seed)) for seed in range(9)] for each in (first, second, other)]
    assert ask[0] == ask[1] != ask[2]


def test_results_may_come_late_or_fail():
    def evaluate(term, seed):
        if seed % 3 == 0:
            raise ValueError("no such luck")
        return matches(term)

    strategy = Evolution(GRAMMAR, population=10, tournament=3)
    trials = run_in_memory(strategy, evaluate, 200, seed=1, lag=13)
    failures = sum(trial.status == "failed" for trial in trials)
    assert 30 < failures < 110
    assert len(strategy._members) == 10
    assert best_trial(trials, Objective()).result.objectives["score"] >= 5


def test_failures_are_made_up_for_by_further_random_terms():
    class Recorded:
        def __init__(self):
            self.calls = []

        def sample(self, rng):
            self.calls.append("sample")
            return TARGET

        def mutate(self, term, rng):
            self.calls.append("mutate")
            return term

    space = Recorded()
    strategy, rng = Evolution(space, population=3, tournament=2), random.Random(0)
    for number in range(7):
        strategy.tell(
            number, strategy.ask(number, rng), failed("") if number < 2 else Result(objectives={"score": 1.0})
        )
    assert space.calls == 5 * ["sample"] + 2 * ["mutate"]


def test_crossover_happens_as_often_as_asked():
    class Halves:
        """A space of pairs."""

        def sample(self, rng):
            return (rng.random(), rng.random())

        def mutate(self, term, rng):
            return ("mutant", term)

        def crossover(self, first, second, rng):
            return ("child", first), ("child", second)

    strategy, rng = Evolution(Halves(), population=10, crossover=0.3), random.Random(0)
    for number in range(10):
        strategy.tell(number, strategy.ask(number, rng), Result(objectives={"score": 0.0}))
    kinds = Counter(strategy.ask(10, rng)[0] for _ in range(4000))
    assert set(kinds) == {"mutant", "child"}
    assert abs(kinds["child"] / 4000 - 0.3) < 0.03


def test_a_mutation_of_one_decision_changes_one_decision():
    strategy, rng = told(Evolution(GRAMMAR, population=1, tournament=1, mutation="decision"), 1), random.Random(0)
    parent = strategy._members[0][1]
    changed = Counter()
    for _ in range(3000):
        child = strategy.ask(1, rng)
        (place,) = [at for at in range(6) if child.children[at] is not parent.children[at]]
        changed[place, child.children[place]] += 1
    assert fits(changed.elements(), dict.fromkeys(changed, 1 / 24))  # each of 6 edges, to 4 other operations
    assert len(changed) == 24


def test_a_mutation_of_one_decision_takes_what_depends_on_it_along():
    nested = Grammar.parse(
        "S -> Sequential(A, A)\nA -> conv(kernel={1,3}) | Residual(B, B, B)\nB -> id | conv | avg_pool"
    )
    parent = ec.parse("Sequential(conv, Residual(id, id, id))")
    strategy, rng = Evolution(nested, population=1, tournament=1, mutation="decision"), random.Random(0)
    strategy.tell(0, parent, Result(objectives={"score": 1.0}))
    children = {strategy.ask(1, rng) for _ in range(600)}
    assert all(
        (child.children[0] is parent.children[0]) != (child.children[1] is parent.children[1]) for child in children
    )
    inner = [child.children[1] for child in children if child.children[1].name == "Residual"]
    assert {sum(op.name != "id" for op in each.children) for each in inner} == {0, 1}
    assert any(child.children[0].name == "Residual" for child in children)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"population": 0}, "population of at least one, not 0"),
        ({"tournament": 2.5}, "tournament of at least one, not 2.5"),
        ({"crossover": 1.5}, "from 0 to 1, not 1.5"),
        ({"mutation": "decisions"}, "did you mean 'decision'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(RequestError, match=message):
        Evolution(GRAMMAR, **settings)
