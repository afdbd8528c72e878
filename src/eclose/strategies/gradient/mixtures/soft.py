"""Mixtures that evaluate every alternative: their weights are points of the simplex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from eclose.strategies.gradient.mixtures.annealed import Annealed
from eclose.strategies.gradient.mixtures.rule import Level, MixtureRule
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.supernet import Site
from eclose.train.callbacks import Callback
from eclose.train.schedules import Linear

SMALLEST = 1e-20  # below it a uniform draw has no finite Gumbel value in float32


class Softmax(MixtureRule):
    """theta = softmax(alpha) (Liu et al. 2019)."""


def gumbel_like(rows: Tensor) -> Tensor:
    """Return Gumbel noise G = -log(-log U)."""
    uniform = torch.rand_like(rows).clamp_(SMALLEST, 1.0 - 2.0**-24)
    return -torch.log(-torch.log(uniform))


class Gumbel(MixtureRule):
    """theta = softmax((log p + G) / tau), p = softmax(alpha): one sample a pass for each alpha (Xie et al. 2019).

    What log p is up to a constant makes no difference, so the alphas are log p; they begin at N(1, 0.01^2).
    """

    def initialise(self, alphas: Mapping[str, nn.Parameter], generator: torch.Generator) -> None:
        """Give alphas their first values."""
        with torch.no_grad():
            for alpha in alphas.values():
                alpha.copy_(1.0 + 0.01 * torch.randn(alpha.shape, generator=generator))

    def __init__(self, sites: Mapping[str, Site], recipe: Recipe):
        super().__init__(sites, recipe)
        falling = Linear(recipe.temperature, recipe.temperature_end, period=max(1, recipe.epochs - 1))
        self.temperature = Annealed(falling, recipe.temperature)

    def callbacks(self) -> Sequence[Callback]:
        """The annealing of the temperature."""
        return (self.temperature,)

    def thetas(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, Tensor]:
        """Draw the weights of a step."""
        return self.by_rows(alphas, self.drawn)

    def drawn(self, rows: Tensor) -> Tensor:
        """Return a sample for each row of logits."""
        noisy = torch.log_softmax(rows, -1) + gumbel_like(rows)
        return torch.softmax(noisy / self.temperature.like(rows), -1)


def concentration(alpha: Tensor) -> Tensor:
    """Return the Dirichlet concentration c = elu(alpha) + 1 > 0; alpha = 0 is the uniform distribution."""
    # elu(alpha) + 1 is exp(alpha) below 0; the sum would round to 0 where alpha is far below it.
    return torch.where(alpha > 0, alpha + 1.0, alpha.clamp_max(0.0).exp())


class DirichletSample(MixtureRule):
    """theta ~ Dir(elu(alpha) + 1) with the pathwise gradient (Chen et al. 2021); its mean c / sum(c) in evaluation."""

    def thetas(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, Tensor]:
        """Draw the weights of a step."""
        return self.by_rows(alphas, self.drawn)

    def drawn(self, rows: Tensor) -> Tensor:
        """Return a sample for each row of parameters; the gradient is the implicit derivative of the distribution."""
        return torch.distributions.Dirichlet(concentration(rows), validate_args=False).rsample()

    def expected(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the means."""

        def mean(rows: Tensor) -> Tensor:
            found = concentration(rows)
            return found / found.sum(-1, keepdim=True)

        return self.by_rows(alphas, mean)


class Simplex(MixtureRule):
    """The parameters are the weights; exponentiated gradient keeps them on the simplex (Li et al. 2021)."""

    def initialise(self, alphas: Mapping[str, nn.Parameter], generator: torch.Generator) -> None:
        """Begin with equal weights."""
        with torch.no_grad():
            for alpha in alphas.values():
                alpha.fill_(1.0 / alpha.numel())

    def updated(self, alphas: Mapping[str, nn.Parameter]) -> None:
        """Bring weights back onto the simplex of what takes part."""
        with torch.no_grad():
            for name, theta in alphas.items():
                kept = self.allowed[name]
                if len(kept) < theta.numel():
                    inside = torch.zeros_like(theta)
                    inside[list(kept)] = theta[list(kept)]
                    theta.copy_(inside / inside.sum())

    def expected(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the parameters."""
        return self.by_rows(alphas, lambda rows: rows)


__all__ = ["DirichletSample", "Gumbel", "Simplex", "Softmax", "concentration", "gumbel_like"]
