"""Architecture steps: whose gradient moves the alphas, and how. Each is a part of the training loop's step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from eclose.algebra.errors import RequestError
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.mixtures.rule import MixtureRule
from eclose.strategies.gradient.objective import Mixed, alphas_of
from eclose.strategies.gradient.perturbations import Perturbation
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.regularisers import Regulariser
from eclose.train.data import Batch
from eclose.train.schedules import Position
from eclose.train.steps import Descent, Objective, Outcome, Step

if TYPE_CHECKING:
    from eclose.train.loop import Loop

WEIGHTS, ALPHAS = "weights", "alphas"
FINITE_STEP = 0.01  # R = 0.01 / ||v||, Liu et al. (2019)


@dataclass(frozen=True)
class Moved(Descent):
    """A gradient step that moves alphas, which are then brought back into their domain."""

    rule: MixtureRule | None = None
    pauses: tuple[tuple[int, int], ...] = ()  # epochs from, to in which the alphas rest

    def active(self, position: Position) -> bool:
        """Return whether the part takes place at a position."""
        return self.groups[0] != ALPHAS or not _resting(self.pauses, position)

    def __call__(self, loop: Loop, batches: Mapping[str, Batch]) -> Outcome:
        """Take the step."""
        groups = self.groups
        if _resting(self.pauses, loop.position):
            groups = tuple(name for name in groups if name != ALPHAS)
        outcome = loop.backward(self.objective, batches[self.feed], groups)
        loop.update(groups)
        if self.rule is not None and ALPHAS in groups:
            self.rule.updated(alphas_of(loop.model, self.rule))  # type: ignore[arg-type]
        return outcome


def _resting(pauses: tuple[tuple[int, int], ...], position: Position) -> bool:
    return any(first <= position.epoch < end for first, end in pauses)


@dataclass(frozen=True)
class Unrolled:
    """The second-order step of DARTS (Liu et al. 2019): the validation loss after a virtual step of the weights.

        w'   = w - xi (mu m + grad_w L_tr(w, alpha) + lambda w)
        grad = grad_alpha L_va(w', alpha) - xi (grad_alpha L_tr(w+) - grad_alpha L_tr(w-)) / 2R
        w+-  = w +- R v,  v = grad_w' L_va(w', alpha),  R = 0.01 / ||v||

    No copy of the network is made: the passes run functionally, on copies of the running statistics, and with the same
    draws of dropout, so weights, buffers and gradients of the weights are what they were, bit by bit.

    Args:
        upper: the validation objective.
        lower: the training objective, as a function of the alphas.
        rule: brings the alphas back into their domain.
        momentum: mu.
        pauses: epochs in which the alphas rest.
    """

    upper: Mixed
    lower: Mixed
    rule: MixtureRule
    momentum: float
    pauses: tuple[tuple[int, int], ...] = ()

    name = "valid"
    feeds = ("valid", "train")

    def active(self, position: Position) -> bool:
        """Return whether the alphas move at a position."""
        return not _resting(self.pauses, position)

    def __call__(self, loop: Loop, batches: Mapping[str, Batch]) -> Outcome:
        """Take the step."""
        model = loop.model
        group, alphas = loop.groups[WEIGHTS], loop.groups[ALPHAS].tensors
        weights = list(group.tensors)
        names = _names_of(model, weights)
        rate, decay = group.device_rate, group.running.param_groups[0]["weight_decay"]

        def gradient(
            objective: Mixed, values: list[Tensor], batch: Batch, wrt: Sequence[Tensor]
        ) -> tuple[Any, Outcome]:
            passes = Functional(model, dict(zip(names, values, strict=True)))
            with loop.precision():
                outcome = objective(passes, batch)  # type: ignore[arg-type]
            found = torch.autograd.grad(outcome.loss, wrt, allow_unused=True)
            return [torch.zeros_like(t) if g is None else g for t, g in zip(wrt, found, strict=True)], outcome

        train, valid = batches["train"], batches["valid"]
        detached = [weight.detach() for weight in weights]
        leaves = [weight.detach().requires_grad_() for weight in weights]
        descent, _ = gradient(self.lower, leaves, train, leaves)
        virtual = []
        for parameter, weight, found in zip(weights, detached, descent, strict=True):
            step = found + decay * weight
            buffer = group.running.state.get(parameter, {}).get("momentum_buffer")
            if buffer is not None:
                step = step + self.momentum * buffer
            virtual.append((weight - rate * step).requires_grad_())
        both, outcome = gradient(self.upper, virtual, valid, [*alphas, *virtual])
        direct, ascent = both[: len(alphas)], both[len(alphas) :]
        norm = torch.sqrt(sum((v.double() ** 2).sum() for v in ascent)).to(detached[0].dtype)
        size = FINITE_STEP / norm.clamp_min(1e-12)
        state = _draws(model)
        above, _ = gradient(self.lower, [w + size * v for w, v in zip(detached, ascent, strict=True)], train, alphas)
        _redraw(state)
        below, _ = gradient(self.lower, [w - size * v for w, v in zip(detached, ascent, strict=True)], train, alphas)
        for alpha, g, high, low in zip(alphas, direct, above, below, strict=True):
            alpha.grad = g - rate * (high - low) / (2.0 * size)
        loop.update((ALPHAS,))
        self.rule.updated(alphas_of(model, self.rule))  # type: ignore[arg-type]
        return Outcome(outcome.loss.detach(), outcome.outputs.detach())


class Functional:
    """A network with other weights, and with copies of its buffers: what a pass changes is not its own."""

    def __init__(self, net: nn.Module, weights: Mapping[str, Tensor]):
        self.net = net
        self.given = {**{name: buffer.clone() for name, buffer in net.named_buffers()}, **weights}

    @property
    def training(self) -> bool:
        """Whether the network trains."""
        return self.net.training

    @property
    def program(self) -> Any:
        """The network's program."""
        return self.net.program

    @property
    def alphas(self) -> Any:
        """The network's alphas."""
        return self.net.alphas

    def train(self, mode: bool = True) -> None:
        """Set the network's mode."""
        self.net.train(mode)

    def eval(self) -> None:
        """Set the network's mode."""
        self.net.eval()

    def __call__(self, x: Tensor, taps: bool = False, weights: Mapping[str, MixtureWeights] | None = None) -> Any:
        """Return what the network gives with these weights."""
        return torch.func.functional_call(self.net, self.given, (x,), {"taps": taps, "weights": weights})


def _names_of(model: nn.Module, parameters: list[nn.Parameter]) -> list[str]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [names[id(parameter)] for parameter in parameters]


def _draws(model: nn.Module) -> Any:
    """Return the generators' states where a pass draws from them; where it does not, nothing has to be repeated."""
    random = getattr(model, "drop_path_rate", 0.0) > 0 or any(
        (isinstance(module, nn.Dropout) and module.p > 0) or type(module).__name__ == "Noise"
        for module in model.modules()
    )
    if not random:
        return None
    device = next(model.parameters()).device
    return torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None, device


def _redraw(state: Any) -> None:
    if state is not None:
        torch.set_rng_state(state[0])
        if state[1] is not None:
            torch.cuda.set_rng_state(state[1], state[2])


def step_of(
    recipe: Recipe,
    plain: Objective,
    rule: MixtureRule,
    *,
    perturbation: Perturbation | None = None,
    regulariser: Regulariser | None = None,
    pauses: tuple[tuple[int, int], ...] = (),
) -> Step:
    """Return the step of a recipe.

    Args:
        recipe: which step.
        plain: the task's loss.
        rule: alphas to weights.
        perturbation: what the weights see, or None.
        regulariser: added to the loss that moves the alphas, or None.
        pauses: epochs in which the alphas rest.
    """
    lower = Mixed(plain, rule, "weights", fixed=True, perturbation=perturbation)
    below = Descent(lower, (WEIGHTS,), "train")
    if recipe.step == "none" or not rule.trained:
        return Step((below,))
    upper = Mixed(plain, rule, "architecture", regulariser=regulariser)
    if recipe.step == "single-level":
        if perturbation is not None:
            raise RequestError("a perturbation is seen by the weights alone; it does not go with step='single-level'")
        return Step((Moved(upper, (WEIGHTS, ALPHAS), "train", rule=rule, pauses=pauses),))
    above: Any
    if recipe.step == "second-order":
        seen = replace(lower, fixed=False, perturbation=None)
        above = Unrolled(upper, seen, rule, recipe.momentum, pauses)
    else:
        above = Moved(upper, (ALPHAS,), "valid", rule=rule, pauses=pauses)
    return Step((above, below) if recipe.order == "architecture-first" else (below, above))


__all__ = ["ALPHAS", "WEIGHTS", "Functional", "Moved", "Unrolled", "step_of"]
