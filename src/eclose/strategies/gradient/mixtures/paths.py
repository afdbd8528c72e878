"""Mixtures that evaluate one alternative of each choice: the time and memory of one path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.mixtures.rule import INITIAL_SCALE, Level, MixtureRule
from eclose.strategies.gradient.mixtures.soft import Gumbel, gumbel_like
from eclose.train.callbacks import Callback

if TYPE_CHECKING:
    from eclose.train.loop import Loop

PICK = "pick"


class OnePath(MixtureRule):
    """What paths have in common; the winners of all choices are fetched from the device at once."""

    captures = False

    def weights_of(self, values: Mapping[str, Tensor | None], selected: Mapping[str, Sequence[int]],
                   leaks: Mapping[str, Tensor] | None = None) -> dict[str, MixtureWeights]:  # fmt: skip
        """Return the weights of a path: `values[name]` where the gradient needs them, plain sums elsewhere."""
        found: dict[str, MixtureWeights] = {}
        for name in self.present():
            if name not in selected:
                theta = values.get(name)
                found[name] = MixtureWeights(theta)
                continue
            found[name] = MixtureWeights(values.get(name), tuple(selected[name]), (leaks or {}).get(name))
        return found

    def soft_picks(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
        """Return the softmax weights of picks that have alphas: a path chooses operations, edges stay mixed."""
        thetas = MixtureRule.expected(self, alphas)
        return {name: theta for name, theta in thetas.items() if self.sites[name].kind == PICK}

    def choice_names(self) -> list[str]:
        """Return the choices."""
        return [name for name in self.names if self.sites[name].kind != PICK]


def fetched(indices: Sequence[Tensor]) -> list[int]:
    """Return scalars of the device as numbers, waiting for it once."""
    found: list[int] = torch.stack(list(indices)).tolist() if indices else []
    return found


class HardGumbel(OnePath, Gumbel):
    """The winner of softmax((log p + G) / tau) alone, with the gradient of the soft weights (Dong and Yang 2019, GDAS).

    theta = onehot - stopgrad(soft) + soft: the value is 1 and only the winner is evaluated. Its gradient reaches alphas
    through the winner's soft weight; with `leak` the others' zero-valued weights are added to the feature map too, as
    in the reference, which gives each of them the sum of the upstream gradient.
    """

    def __call__(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, MixtureWeights]:
        """Draw a path."""
        soft = self.by_rows(alphas, self.drawn)
        names = self.choice_names()
        winners = dict(zip(names, fetched([soft[name].argmax() for name in names]), strict=True))
        values: dict[str, Tensor | None] = dict(self.soft_picks(alphas))
        leaks = {}
        for name, winner in winners.items():
            value = soft[name] - soft[name].detach()
            if self.recipe.leak:
                leaks[name] = value.sum() - value[winner]
            values[name] = value + torch.nn.functional.one_hot(
                torch.tensor(winner, device=value.device), value.numel()
            ).to(value.dtype)
        return self.weights_of(values, {name: (winner,) for name, winner in winners.items()}, leaks)


class Sampled(OnePath):
    """One alternative z ~ Cat(softmax(alpha)) with the score-function gradient of its local reward (Hu et al. 2020).

    DSNAS: grad = R grad log p(z) with R = dL/dz at the sampled entry, which is <dL/dout, o_z(x)>. The weight
    1 + log p(z) - stopgrad(log p(z)) has the value 1 and exactly this gradient.
    """

    def __call__(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, MixtureWeights]:
        """Draw a path."""
        logs = self.by_rows(alphas, lambda rows: torch.log_softmax(rows, -1))
        names = self.choice_names()
        drawn = fetched([self._draw(logs[name].detach(), name) for name in names])
        values: dict[str, Tensor | None] = dict(self.soft_picks(alphas))
        for name in names:
            values[name] = 1.0 + logs[name] - logs[name].detach()
        return self.weights_of(values, {name: (index,) for name, index in zip(names, drawn, strict=True)})

    def _draw(self, logs: Tensor, name: str) -> Tensor:
        kept = self.allowed[name]
        if len(kept) == 1:
            return torch.tensor(kept[0], device=logs.device)
        noisy = logs + gumbel_like(logs)
        if len(kept) < len(logs):
            noisy = torch.full_like(noisy, -torch.inf).index_copy(
                0, torch.tensor(kept, device=logs.device), noisy[list(kept)]
            )
        return noisy.argmax()

    def callbacks(self) -> Sequence[Callback]:
        """The early fixing of decisions that are clear."""
        return (EarlyFixing(self, self.recipe.fix_margin),) if self.recipe.fix_margin else ()


class EarlyFixing(Callback):
    """Fixes a choice for good once its first probability leads by a margin (Hu et al. 2020: 0.3)."""

    def __init__(self, rule: MixtureRule, margin: float):
        self.rule, self.margin = rule, margin

    def after_epoch(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Look at every choice that is still open."""
        thetas = self.rule.expected({name: loop.model.alphas[name].detach() for name in self.rule.names})  # type: ignore
        for name in self.rule.names:
            if self.rule.sites[name].kind == PICK or len(self.rule.allowed[name]) == 1:
                continue
            best, second = torch.topk(thetas[name], 2).values.tolist()
            if best - second >= self.margin:
                self.rule.allowed[name] = (int(thetas[name].argmax()),)


class Proximal(OnePath):
    """The alternative of the largest alpha; its gradient is applied to alphas in [0, 1] (Yao et al. 2020).

    NASP: abar = prox(alpha) is one-hot; alpha <- clamp(alpha - rate * grad L(abar), 0, 1). Of the gradient the entry of
    the evaluated path is known.
    """

    def initialise(self, alphas: Mapping[str, nn.Parameter], generator: torch.Generator) -> None:
        """Begin in the middle."""
        with torch.no_grad():
            for alpha in alphas.values():
                alpha.copy_(0.5 + INITIAL_SCALE * torch.randn(alpha.shape, generator=generator))

    def __call__(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, MixtureWeights]:
        """Take the path of the largest alphas."""
        names = self.choice_names()
        winners = fetched([alphas[name].detach().argmax() for name in names])
        values: dict[str, Tensor | None] = dict(self.soft_picks(alphas))
        for name in names:
            values[name] = 1.0 + alphas[name] - alphas[name].detach()
        return self.weights_of(values, {name: (index,) for name, index in zip(names, winners, strict=True)})

    def expected(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return alphas divided by their sum, so that they can be compared and drawn."""
        return self.by_rows(alphas, lambda rows: rows / rows.sum(-1, keepdim=True).clamp_min(1e-12))

    def updated(self, alphas: Mapping[str, nn.Parameter]) -> None:
        """Bring the alphas back into [0, 1]."""
        with torch.no_grad():
            for alpha in alphas.values():
                alpha.clamp_(0.0, 1.0)


class TwoPath(OnePath):
    """A path drawn from softmax(alpha) for the weights; for alphas two, of which one is active (Cai et al. 2019).

    ProxylessNAS: of the pair (i, j), drawn without replacement, dL/dalpha_i = sum_k dL/dg_k p_k (delta_ik - p_i) with
    dL/dg_k = <dL/dout, o_k(x)> and p renormalised over the pair. The weight g_k + p_k - stopgrad(p_k) has exactly this
    gradient. After the update both alphas are moved so that the pair's total probability stays what it was.
    """

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._pairs: dict[str, tuple[tuple[int, int], Tensor]] = {}

    def __call__(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, MixtureWeights]:
        """Draw one path or two."""
        names = self.choice_names()
        values: dict[str, Tensor | None] = dict(self.soft_picks(alphas))
        noisy = {name: self._noisy(alphas[name].detach(), name) for name in names}
        if level == "weights":
            winners = fetched([noisy[name].argmax() for name in names])
            return self.weights_of(values, {name: (index,) for name, index in zip(names, winners, strict=True)})
        # The two largest of logits with Gumbel noise are a draw of two without replacement.
        pairs = torch.stack([torch.topk(noisy[name], 2).indices.sort().values for name in names])
        ahead = [
            torch.rand((), device=row.device) < torch.softmax(alphas[name].detach()[row], 0)[0]
            for name, row in zip(names, pairs, strict=True)
        ]
        selected: dict[str, tuple[int, ...]] = {}
        for name, pair, first in zip(names, pairs.tolist(), fetched(ahead), strict=True):
            active = pair[0] if first else pair[1]
            where = torch.tensor(pair, device=alphas[name].device)
            chances = torch.softmax(alphas[name][where], -1)
            gates = (where == active).to(chances.dtype)
            values[name] = torch.zeros_like(alphas[name]).scatter(0, where, gates + chances - chances.detach())
            selected[name] = (pair[0], pair[1])
            self._pairs[name] = ((pair[0], pair[1]), alphas[name].detach().clone())
        return self.weights_of(values, selected)

    def _noisy(self, logits: Tensor, name: str) -> Tensor:
        """Return logits with Gumbel noise; what takes no part is never the largest."""
        noisy = logits + gumbel_like(logits)
        kept = self.allowed[name]
        if len(kept) == len(logits):
            return noisy
        dropped = torch.ones_like(logits, dtype=torch.bool)
        dropped[list(kept)] = False
        return noisy.masked_fill(dropped, -torch.inf)

    def updated(self, alphas: Mapping[str, nn.Parameter]) -> None:
        """Let the pairs alone move, both of each by the same amount more, so that its total probability is unchanged.

        An optimiser with momentum or weight decay would move the others too.
        """
        with torch.no_grad():
            for name, (pair, before) in self._pairs.items():
                where = torch.tensor(pair, device=before.device)
                after = alphas[name][where]
                shift = torch.logsumexp(before[where], 0) - torch.logsumexp(after, 0)
                alphas[name].copy_(before.index_copy(0, where, after + shift))
        self._pairs = {}


class UniformPath(OnePath):
    """A path drawn evenly, edges included: the alphas say nothing (Li and Talwalkar 2019)."""

    samples_edges = True
    trained = False

    def __call__(self, alphas: Mapping[str, Tensor], level: Level) -> dict[str, MixtureWeights]:
        """Draw a path."""
        return {name: MixtureWeights(None, kept) for name, kept in self.path().items() if self.sites[name].present}

    def path(self) -> dict[str, tuple[int, ...]]:
        """Return a path drawn from torch's generator, among the architectures that a selection may take."""
        found = {}
        for name, site in self.sites.items():
            kept = torch.randperm(len(site.selectable))[: site.keep].tolist()
            found[name] = tuple(sorted(site.selectable[index] for index in kept))
        return found

    def expected(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return equal weights."""
        return {name: torch.full_like(alphas[name], 1.0 / alphas[name].numel()) for name in self.names}


__all__ = ["HardGumbel", "OnePath", "Proximal", "Sampled", "TwoPath", "UniformPath", "fetched"]
