"""The order of a study: what a proposal sees, what a repeated term becomes, what the order of finishing changes."""

from random import Random

import pytest

import eclose as ec
from eclose.runs import RunError
from eclose.study.in_memory import run_in_memory
from eclose.study.ledger import HOPELESS, Ledger
from eclose.study.results import DONE, Result, failed
from eclose.study.seeds import derived_seed
from support.toy_search import Climb, Fixed, score

TERMS = [ec.parse(text) for text in ("conv(kernel=1)", "conv(kernel=3)", "conv(kernel=1)", "conv(kernel=5)")]


@pytest.mark.parametrize("lag", [1, 2, 5])
def test_a_proposal_sees_exactly_the_results_up_to_its_lag(lag):
    strategy = Climb(ec.space("nasbench201"))
    ledger = Ledger(strategy, seed=0, lag=lag)
    for number in range(12):
        assert ledger.ready()
        assert strategy.told == list(range(max(0, number - lag + 1)))
        trial = ledger.propose()
        ledger.finish(trial, Result(DONE, {"score": 1.0}))


def test_a_proposal_waits_for_the_results_it_may_see():
    ledger = Ledger(Fixed(TERMS), seed=0, lag=2)
    assert ledger.ready()
    first = ledger.propose()
    assert ledger.ready()
    second = ledger.propose()
    assert not ledger.ready()
    ledger.finish(second, failed("no"))
    assert not ledger.ready()
    ledger.finish(first, Result(DONE, {"score": 1.0}))
    assert ledger.ready()


def test_the_order_of_finishing_does_not_change_the_history():
    def searched(shuffle):
        ledger = Ledger(Climb(ec.space("nasbench201")), seed=3, lag=6)
        rng, running = Random(shuffle), []
        while len(ledger.trials) < 60:
            while ledger.ready() and len(running) < 6:
                running.append(ledger.propose())
            trial = running.pop(rng.randrange(len(running)) if shuffle else 0)
            ledger.finish(trial, Result(DONE, {"score": score(trial.term, trial.seed)}))
        return [trial.term for trial in ledger.trials[:60]]

    assert searched(0) == searched(1) == searched(2)


def proposed(policy, count=4, key=None):
    return run_in_memory(Fixed(TERMS), score, count, duplicates=policy, key=key)


def test_duplicates_that_are_allowed_are_evaluated_again():
    trials = proposed("allow")
    assert [trial.source for trial in trials] == [None] * 4
    assert trials[0].result != trials[2].result  # the seeds differ


def test_duplicates_that_are_reused_take_over_the_first_result():
    trials = proposed("reuse")
    assert [trial.source for trial in trials] == [None, None, 0, None]
    assert trials[2].result is trials[0].result


def test_duplicates_that_are_rejected_are_asked_for_again():
    class Drawing(Fixed):
        def ask(self, number, rng):
            return rng.choice(TERMS)

    trials = run_in_memory(Drawing(TERMS), score, 6, duplicates="reject")
    assert len({trial.term for trial in trials[:3]}) == 3  # all three terms there are
    assert all(trial.source is not None for trial in trials[3:])  # then the space is used up


def test_a_key_decides_what_is_the_same_network():
    trials = proposed("reuse", key=lambda term: term.name)
    assert [trial.source for trial in trials] == [None, 0, 0, 0]


def test_a_duplicate_of_a_running_trial_waits_for_it_once_also_when_restored():
    ledger = Ledger(Fixed([TERMS[0]]), seed=0, lag=9, duplicates="reuse")
    first, second = (ledger.ready() and ledger.propose() for _ in range(2))
    assert ledger.takes_over(second) is None
    again = Ledger(Fixed([TERMS[0]]), seed=0, lag=9, duplicates="reuse")
    again.restore([first, second])
    assert again.takes_over(second) is None
    assert again.finish(first, failed("no")) == [second]


def test_what_a_trial_draws_depends_on_the_seed_the_number_and_the_purpose():
    seeds = {derived_seed(s, n, p) for s in range(5) for n in range(50) for p in ("propose", "evaluate")}
    assert len(seeds) == 500 and all(0 <= seed < 2**63 for seed in seeds)


def test_a_study_of_which_nothing_finishes_gives_up_and_says_why():
    def broken(term, seed, report=None):
        raise OSError("no data at /data")

    with pytest.raises(RunError, match=rf"none of the first {HOPELESS} trials finished; .*no data at /data"):
        run_in_memory(Fixed(TERMS), broken, 100)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"lag": 0}, "lag must be at least 1"), ({"duplicates": "rejekt"}, "did you mean 'reject'")],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ec.RequestError, match=message):
        Ledger(Fixed(TERMS), seed=0, **settings)
