"""REINFORCE: its gradient, its optimiser and its reading of decisions against independent ones."""

import copy
import random
from statistics import mean

import pytest
import torch

import eclose as ec
from eclose.algebra.errors import LimitError, RequestError
from eclose.algebra.grammar import Grammar
from eclose.spaces import space
from eclose.strategies.blackbox.decisions import decisions
from eclose.strategies.blackbox.random import Random
from eclose.strategies.blackbox.reinforce import Baseline, Policy, Reinforce, softmax
from eclose.study.in_memory import run_in_memory
from eclose.study.results import Objective, Result, failed
from support.statistics import fits

GRAMMAR = Grammar.parse("S -> Cell(A, A, A, A, A, A)\nA -> conv | id | zero | avg_pool | max_pool")
NESTED = Grammar.parse(
    """
    Net   -> Sequential(Block, Block) | Residual(Motif, Motif, Op)
    Block -> Residual(Op, id, Op) | Motif | Op
    Op    -> conv(kernel={1,3,5}) | avg_pool | choice(id, zero, max_pool, name="c")
    shared Motif -> Sequential(Op, Op) | Op
    """
)
CONNECTED = Grammar.parse("Net -> Cell(Op, Op, Op, Op, Op, Op)\nOp -> zero | id | conv\nconstrain Cell connected")
TARGET = ec.parse("Cell(conv, id, avg_pool, max_pool, conv, conv)")


def matches(term, seed=0):
    return float(sum(mine is wanted for mine, wanted in zip(term.children, TARGET.children, strict=True)))


def state(strategy):
    return {name: (policy.logits, policy.mean, policy.square) for name, policy in strategy._learnt.items()}


# Decisions


@pytest.mark.parametrize("grammar", [GRAMMAR, NESTED, space("nasbench201").grammar, space("tiny").grammar])
def test_decisions_read_from_a_term_lead_to_it(grammar):
    rng = random.Random(0)
    for _ in range(150):
        term = grammar.sample(rng)
        read = {name: (answer, answers) for name, answer, answers in decisions(grammar, term)}
        asked = {}

        def answer(name, answers, read=read, asked=asked):
            asked[name] = (read[name][0], len(answers))
            return read[name][0]

        assert grammar.decide(answer) is term
        assert asked == read


def test_decisions_are_those_that_were_made():
    rng, made = random.Random(1), {}

    def choose(name, answers):
        made[name] = rng.randrange(len(answers))
        return made[name]

    for _ in range(50):
        made.clear()
        term = GRAMMAR.decide(choose)
        assert {each.name: each.answer for each in decisions(GRAMMAR, term)} == made


# The arithmetic


def test_the_gradient_is_that_of_the_log_probability():
    """Central differences of the logarithm of a softmax written out anew, in double precision."""
    rng, small = random.Random(2), 1e-6
    for _ in range(20):
        logits = [rng.gauss(0, 2) for _ in range(rng.randint(2, 7))]
        index, advantage = rng.randrange(len(logits)), rng.gauss(0, 5)

        def loss(values, index=index, advantage=advantage):
            values = torch.tensor(values, dtype=torch.float64)
            return -advantage * float(values[index] - torch.logsumexp(values, 0))

        for place, slope in enumerate(Policy(logits).gradient(index, advantage)):
            up, down = ([value + sign * small * (at == place) for at, value in enumerate(logits)] for sign in (1, -1))
            assert slope == pytest.approx((loss(up) - loss(down)) / (2 * small), abs=1e-7)


def test_learning_is_that_of_autograd_and_adam():
    """The whole update against torch: autograd, Adam, and a corrected average that is updated before use."""
    rng, objective = random.Random(3), Objective()
    strategy = Reinforce(GRAMMAR, objective, learning_rate=0.05, spread=0.1)
    names = [each.name for each in decisions(GRAMMAR, TARGET)]
    logits = torch.tensor([strategy.policy(name, 5).logits for name in names], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.05)
    rewards = []
    for number in range(60):
        term = strategy.ask(number, rng)
        reward = 10 * matches(term) - 3
        rewards.append(reward)
        weights = [0.1 * 0.9**age for age in range(len(rewards))]
        average = sum(w * r for w, r in zip(weights, reversed(rewards), strict=True)) / sum(weights)
        chosen = torch.tensor([each.answer for each in decisions(GRAMMAR, term)])
        optimiser.zero_grad()
        log_probability = torch.log_softmax(logits, 1)[torch.arange(6), chosen].sum()
        (-(reward - average) * log_probability).backward()
        optimiser.step()
        strategy.tell(number, term, Result(objectives={"score": reward}))
    mine = torch.tensor([strategy.policy(name, 5).logits for name in names], dtype=torch.float64)
    # The first advantage is zero but for rounding, which Adam divides by a norm as small: hence not 1e-12.
    assert torch.allclose(mine, logits.detach(), rtol=0, atol=1e-8)


def test_the_baseline_is_corrected_for_its_start_and_takes_the_reward_in_first():
    baseline = Baseline(0.9)
    assert baseline.updated(70.0) == pytest.approx(70.0)
    assert baseline.updated(80.0) == pytest.approx((0.09 * 70 + 0.1 * 80) / 0.19)
    assert Baseline(0.0).updated(3.0) == 3.0


def test_softmax_survives_large_logits():
    assert softmax([1000.0, 0.0]) == [1.0, 0.0]
    assert softmax([-1000.0, -1000.0]) == [0.5, 0.5]


# Behaviour


def test_proposals_follow_the_policies():
    strategy, rng = Reinforce(GRAMMAR, spread=1.0, seed=5), random.Random(4)
    first = decisions(GRAMMAR, TARGET)[0].name
    names = ["conv", "id", "zero", "avg_pool", "max_pool"]
    expected = dict(zip(map(ec.parse, names), strategy.policy(first, 5).probabilities, strict=True))
    assert fits((strategy.ask(number, rng).children[0] for number in range(3000)), expected)


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
def test_it_learns_in_either_direction(direction):
    objective = Objective("value", direction)
    sign = 1 if direction == "maximise" else -1

    def late(strategy, seed):
        evaluate = lambda term, seed: {"value": sign * matches(term)}  # noqa: E731
        trials = run_in_memory(strategy, evaluate, 400, seed, objectives=(objective,))
        return mean(sign * trial.result.objectives["value"] for trial in trials[-50:])

    learnt = [late(Reinforce(GRAMMAR, objective, learning_rate=0.1), seed) for seed in range(5)]
    drawn = [late(Random(GRAMMAR, objective), seed) for seed in range(5)]
    assert min(learnt) > 4
    assert max(drawn) < 2


def test_asking_changes_nothing():
    strategy, rng = Reinforce(NESTED), random.Random(5)
    for number in range(40):
        term = strategy.ask(number, rng)
        strategy.tell(number, term, Result(objectives={"score": float(len(str(term)))}))
    before = copy.deepcopy(vars(strategy) | {"_learnt": state(strategy), "_baseline": vars(strategy._baseline)})
    asked = [strategy.ask(40, random.Random(seed)) for seed in range(20)]
    after = vars(strategy) | {"_learnt": state(strategy), "_baseline": vars(strategy._baseline)}
    for name in ("settings", "_learnt", "_baseline", "_read"):
        assert after[name] == before[name]
    assert [strategy.ask(40, random.Random(seed)) for seed in range(20)] == asked


def test_a_strategy_that_is_told_without_having_asked_is_the_same():
    """As after a resumption, where the results of earlier sessions are told anew."""
    first, second, rng = Reinforce(NESTED), Reinforce(NESTED), random.Random(6)
    history = []
    for number in range(60):
        term = first.ask(number, rng)
        result = failed("") if number % 7 == 0 else Result(objectives={"score": float(term.size)})
        first.tell(number, term, result)
        history.append((number, term, result))
    for each in history:
        second.tell(*each)
    assert state(first) == state(second)
    assert first.ask(60, random.Random(0)) is second.ask(60, random.Random(0))


def test_a_failed_trial_teaches_nothing():
    strategy = Reinforce(GRAMMAR)
    strategy.tell(0, TARGET, failed("out of memory"))
    assert state(strategy) == {}
    assert strategy._baseline.updated(5.0) == pytest.approx(5.0)


def test_results_may_come_late():
    strategy = Reinforce(GRAMMAR, learning_rate=0.1)
    trials = run_in_memory(strategy, matches, 400, seed=0, lag=12)
    assert mean(trial.result.objectives["score"] for trial in trials[-50:]) > 4


def test_constraints_are_kept():
    strategy, rng = Reinforce(CONNECTED), random.Random(7)
    assert all(strategy.ask(number, rng) in CONNECTED for number in range(300))
    hopeless = Grammar.parse(str(GRAMMAR), where=lambda term: term is TARGET)
    narrow = Reinforce(hopeless, spread=0.0)
    for name in [each.name for each in decisions(GRAMMAR, TARGET)]:
        narrow._learnt[name] = Policy([0.0, 0.0, 60.0, 0.0, 0.0])  # zero, whatever the condition says
    with pytest.raises(LimitError, match="search it by evolution"):
        narrow.ask(0, rng)


def test_logits_begin_near_zero_and_differ_by_seed():
    first, second = (Reinforce(GRAMMAR, seed=seed).policy("S/0", 5) for seed in (0, 1))
    assert first.logits != second.logits
    assert first.logits == Reinforce(GRAMMAR, seed=0).policy("S/0", 5).logits
    spread = [logit for seed in range(400) for logit in Reinforce(GRAMMAR, seed=seed).policy("S/0", 5).logits]
    assert mean(value**2 for value in spread) ** 0.5 == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"learning_rate": 0}, "above zero"), ({"baseline": 1.0}, "below 1"), ({"spread": -1.0}, "cannot be negative")],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(RequestError, match=message):
        Reinforce(GRAMMAR, **settings)
