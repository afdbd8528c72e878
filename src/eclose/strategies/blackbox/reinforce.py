"""REINFORCE: a policy over the decisions of a small grammar, improved by the score-function gradient (Williams, 1992).

Every decision has a softmax of its own, independent of the others but for which decisions come up at all. Numbers are
plain Python floats: a decision has a handful of answers, for which an array costs more than the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random as Generator
from typing import Any

from eclose.algebra.errors import LimitError, RequestError
from eclose.algebra.randomness import derived
from eclose.algebra.terms import Term
from eclose.strategies import NamedStrategy
from eclose.strategies.blackbox.decisions import Decision, decisions
from eclose.study.results import Objective, Result

BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's usual ones
TRIES = 10_000  # draws in a row that the grammar's constraints may refuse


class Policy:
    """The softmax of one decision, with its own Adam.

    Args:
        logits: at the start.

    Attributes:
        probabilities: of the answers.
    """

    __slots__ = ("logits", "mean", "probabilities", "square", "steps")

    def __init__(self, logits: Sequence[float]):
        self.logits = list(logits)
        self.mean, self.square, self.steps = [0.0] * len(self.logits), [0.0] * len(self.logits), 0
        self.probabilities = softmax(self.logits)

    def drawn(self, rng: Generator) -> int:
        """Return an answer drawn from the policy."""
        left = rng.random()
        for index, probability in enumerate(self.probabilities):
            left -= probability
            if left < 0:
                return index
        return len(self.probabilities) - 1

    def gradient(self, index: int, advantage: float) -> list[float]:
        """Return the gradient of `-advantage * log p(index)` by the logits."""
        return [advantage * (p - (place == index)) for place, p in enumerate(self.probabilities)]

    def step(self, gradient: Sequence[float], rate: float) -> None:
        """Take one step of Adam."""
        self.steps += 1
        first, second = BETAS
        scale, correction = rate / (1 - first**self.steps), math.sqrt(1 - second**self.steps)
        for place, slope in enumerate(gradient):
            mean = self.mean[place] = first * self.mean[place] + (1 - first) * slope
            square = self.square[place] = second * self.square[place] + (1 - second) * slope * slope
            self.logits[place] -= scale * mean / (math.sqrt(square) / correction + EPSILON)
        self.probabilities = softmax(self.logits)


class Baseline:
    """An exponential moving average of rewards, corrected for its start.

    Args:
        decay: the weight of the past.
    """

    def __init__(self, decay: float):
        self.decay = decay
        self._sum = self._weight = 0.0

    def updated(self, reward: float) -> float:
        """Take a reward in and return the average."""
        self._sum = self.decay * self._sum + (1 - self.decay) * reward
        self._weight = self.decay * self._weight + (1 - self.decay)
        return self._sum / self._weight


class Reinforce:
    """Draws every decision from its policy and moves the policies towards decisions that gave more than usual.

    The reward is the objective itself, with a minus sign where it is to be small. Decisions that a constraint of the
    grammar refuses are drawn again. A failed trial teaches nothing.

    Args:
        space: what is searched: a space, or a grammar.
        objective: the reward.
        learning_rate: Adam's.
        baseline: the decay of the average that rewards are compared with. The average takes a reward in before that
            reward is compared with it.
        spread: the standard deviation of the logits at the start.
        seed: of the logits at the start.
    """

    name = "reinforce"

    def __init__(
        self,
        space: Any,
        objective: Objective | None = None,
        *,
        learning_rate: float = 0.01,
        baseline: float = 0.9,
        spread: float = 1e-3,
        seed: int = 0,
    ):
        if not learning_rate > 0:
            raise RequestError(f"the learning rate of reinforce must be above zero, not {learning_rate!r}")
        if not 0 <= baseline < 1:
            raise RequestError(f"the baseline of reinforce decays by a factor from 0 to below 1, not {baseline!r}")
        if not spread >= 0:
            raise RequestError(f"the spread of the logits cannot be negative, but is {spread!r}")
        self.settings: dict[str, Any] = {
            "learning_rate": learning_rate,
            "baseline": baseline,
            "spread": spread,
            "seed": seed,
        }
        self._grammar, self._objective = getattr(space, "grammar", space), objective or Objective()
        self._rate, self._spread, self._seed = learning_rate, spread, seed
        self._baseline = Baseline(baseline)
        self._learnt: dict[str, Policy] = {}  # what has been told
        self._read: dict[Term, list[Decision]] = {}  # a function of the grammar alone, kept to save time

    def policy(self, name: str, answers: int) -> Policy:
        """Return the policy of a decision; as it is at the start where nothing has been told of that decision."""
        found = self._learnt.get(name)
        if found is not None:
            return found
        rng = derived(self._seed, "logits", name)
        return Policy([rng.gauss(0, self._spread) for _ in range(answers)])

    def ask(self, number: int, rng: Generator) -> Term:
        """Draw a term decision by decision."""
        for _ in range(TRIES):
            term: Term | None = self._grammar.decide(lambda name, answers: self.policy(name, len(answers)).drawn(rng))
            if term is not None:
                return term
        raise LimitError(
            f"the constraints of this grammar have refused {TRIES:,} draws of reinforce in a row; "
            "search it by evolution, which keeps to them"
        )

    def tell(self, number: int, term: Term, result: Result) -> None:
        """Move the policies of the decisions that led to a term."""
        reward = self._objective.merit(result)
        if reward is None:
            return
        advantage = reward - self._baseline.updated(reward)
        if term not in self._read:
            self._read[term] = decisions(self._grammar, term)
        for name, answer, answers in self._read[term]:
            policy = self._learnt[name] = self.policy(name, answers)
            policy.step(policy.gradient(answer, advantage), self._rate)


def softmax(logits: Sequence[float]) -> list[float]:
    """Return the probabilities that logits stand for."""
    largest = max(logits)
    weights = [math.exp(logit - largest) for logit in logits]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


REINFORCE = NamedStrategy(
    name="reinforce",
    build=Reinforce,
    settings={"learning_rate": 0.01, "baseline": 0.9, "spread": 1e-3, "seed": 0},
    explanation="""
One softmax for each decision of the grammar, moved by Adam along the policy gradient of the reward, which is compared
with a moving average of rewards (baseline: its decay). For small grammars: a decision is told from others by where it
stands, so nothing learnt in one place is known in another. A failed trial teaches nothing.
""",
    source="Williams 1992, Simple Statistical Gradient-Following Algorithms; settings of Dong et al. 2021, NATS-Bench",
)

__all__ = ["REINFORCE", "Baseline", "Policy", "Reinforce", "softmax"]
