"""A probe: the loss of a supernet on one fixed batch as a function of alphas, for measurements of its curvature.

The network is in training mode, as in the search, and its running statistics are put back afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from eclose.diagnose.hessian import Spectrum, spectrum
from eclose.diagnose.normalisation import preserved
from eclose.strategies.gradient.mixtures.rule import MixtureRule
from eclose.strategies.gradient.supernet import Weighted
from eclose.train.data import Batch
from eclose.train.steps import Objective


class Probe:
    """A loss around the present alphas.

    Args:
        net: the supernet's network.
        rule: alphas to weights; their expectation is probed, not a draw.
        plain: the task's loss.
        batch: what it is taken on.
    """

    def __init__(self, net: nn.Module, rule: MixtureRule, plain: Objective, batch: Batch):
        self.net, self.rule, self.plain, self.batch = net, rule, plain, batch

    def loss(self, alphas: Mapping[str, Tensor]) -> Tensor:
        """Return the loss at some alphas."""
        return self.at_weights(self.rule.expected(alphas))

    def at_weights(self, thetas: Mapping[str, Tensor]) -> Tensor:
        """Return the loss at some weights of the mixture."""
        return self.plain(Weighted(self.net, self.rule.mixed(thetas)), self.batch).loss  # type: ignore[arg-type]

    def spectrum(
        self, *, method: str = "auto", weight_decay: float = 0.0, seed: int = 0, samples: int = 32
    ) -> Spectrum:
        """Return the eigenvalues of the Hessian in the alphas, where they are now; see `diagnose.hessian.spectrum`."""
        alphas = {name: self.net.alphas[name] for name in self.rule.names}  # type: ignore[index]
        training = self.net.training
        self.net.train()
        try:
            with preserved(self.net):
                return spectrum(self.loss, alphas, method=method, weight_decay=weight_decay, seed=seed, samples=samples)  # type: ignore[arg-type]
        finally:
            self.net.train(training)


__all__ = ["Probe"]
