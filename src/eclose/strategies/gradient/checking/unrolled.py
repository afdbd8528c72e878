"""The second-order step: against exact differentiation of the validation loss after a virtual step of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from eclose.strategies.gradient.checking.bench import Bench
from eclose.strategies.gradient.checking.entries import Entry, close
from eclose.strategies.gradient.objective import Mixed
from eclose.strategies.gradient.steps import ALPHAS, FINITE_STEP, WEIGHTS, Functional, Unrolled
from eclose.train.groups import Group

KIND = "finite difference (second order)"
METHOD = (
    "the step's gradient against the printed formula, taken by moving the weights of the network itself; that formula "
    "with a difference that passes no kink against autograd through the virtual weight step; at rate 0 against the "
    "first order; all in float64"
)
SAME = 1e-7  # two ways to compute the same numbers
SMALL_STEP = 1e-7  # instead of 0.01: few units change sign within it
EXACT = 1e-4  # of the largest second-order term


def unrolled(bench: Bench) -> list[Entry]:
    """Compare the step's gradient with three references."""
    group = bench.loop.groups[WEIGHTS]
    generator = torch.Generator().manual_seed(bench.seed)
    for parameter in group.tensors:  # as in the middle of a search
        momentum = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        group.running.state[parameter]["momentum_buffer"] = 0.01 * momentum
    rate = float(group.device_rate)
    step, at_rest = taken(bench), _at_rate_zero(bench, group)
    printed = naive(bench, rate)[1]
    direct, fine = naive(bench, rate, SMALL_STEP, same_draws=True)
    exact, first = differentiated(bench, rate), naive(bench, 0.0)[0]
    second = {name: exact[name] - direct[name] for name in exact}
    scale = max(float(term.abs().max()) for term in second.values())
    size = max(float(found.abs().max()) for found in printed.values())
    rows = []
    for name, index in bench.chosen:
        label = bench.label(name, index)
        for quantity, found, reference, relative, largest in (
            ("formula", step, printed, SAME, size),
            ("second-order term", {name: fine[name] - direct[name]}, second, EXACT, scale),
            ("gradient at rate 0", at_rest, first, SAME, size),
        ):
            values = float(found[name][index]), float(reference[name][index])
            rows.append(close(quantity, name, label, *values, relative, largest))
    apart = _norm({name: step[name] - exact[name] for name in exact})
    bench.notes.append(
        f"the step's own difference, over {FINITE_STEP:g} / ||v||, is {apart / max(_norm(second), 1e-12):.2g} times "
        "the second-order term away from the exact one here: within so long a step units of a network change sign"
    )
    return rows


def _norm(found: Mapping[str, Tensor]) -> float:
    return float(torch.cat([part.detach().flatten() for part in found.values()]).norm())


def taken(bench: Bench) -> dict[str, Tensor]:
    """Return the gradient that the step hands to the optimiser; the alphas are put back."""
    part, loop = bench.part, bench.loop
    assert isinstance(part, Unrolled)
    before = {name: alpha.detach().clone() for name, alpha in bench.alphas.items()}
    state = loop.groups[ALPHAS].state_dict()
    with bench.seeded():
        part(loop, {name: loop.feeds[name].batch(0, 0) for name in part.feeds})
    found = {}
    for name, alpha in bench.alphas.items():
        found[name] = torch.zeros_like(alpha) if alpha.grad is None else alpha.grad.clone()
        with torch.no_grad():
            alpha.copy_(before[name])
    loop.groups[ALPHAS].load_state_dict(state)
    return found


def _at_rate_zero(bench: Bench, group: Group) -> dict[str, Tensor]:
    schedule, epoch = group.schedule, bench.loop.position
    group.schedule = lambda position: 0.0
    group.prepare(epoch)
    try:
        return taken(bench)
    finally:
        group.schedule = schedule
        group.prepare(epoch)


def naive(
    bench: Bench, rate: float, finite_step: float = FINITE_STEP, *, same_draws: bool = False
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return grad_alpha L_va(w') and the printed formula, by moving the weights of the network itself and back.

    Args:
        bench: whose.
        rate: of the virtual step.
        finite_step: R ||v||.
        same_draws: whether all passes draw the same (drop-path); else only the two of the difference do.
    """
    part = bench.part
    assert isinstance(part, Unrolled)
    train, valid = (bench.loop.feeds[name].batch(0, 0) for name in ("train", "valid"))
    group = bench.loop.groups[WEIGHTS]
    weights, alphas = group.tensors, list(bench.alphas.values())
    decay = group.running.param_groups[0]["weight_decay"]
    before = [weight.detach().clone() for weight in weights]

    def gradients(objective: Mixed, batch: Any, wrt: list[Any]) -> list[Tensor]:
        if same_draws:
            torch.manual_seed(bench.seed)
        loss = objective(bench.net, batch).loss
        found = torch.autograd.grad(loss, wrt, allow_unused=True)
        return [torch.zeros_like(t) if g is None else g for t, g in zip(wrt, found, strict=True)]

    def put(values: list[Tensor]) -> None:
        with torch.no_grad():
            for weight, value in zip(weights, values, strict=True):
                weight.copy_(value)

    try:
        with bench.seeded():
            descent = gradients(part.lower, train, weights)
            put([
                w - rate * (part.momentum * group.running.state[weight]["momentum_buffer"] + g + decay * w)
                for weight, w, g in zip(weights, before, descent, strict=True)
            ])  # fmt: skip
            both = gradients(part.upper, valid, [*alphas, *weights])
            direct, ascent = both[: len(alphas)], both[len(alphas) :]
            size = finite_step / float(torch.cat([v.flatten() for v in ascent]).norm())
            put([w + size * v for w, v in zip(before, ascent, strict=True)])
            state = torch.get_rng_state()
            above = gradients(part.lower, train, alphas)
            torch.set_rng_state(state)
            put([w - size * v for w, v in zip(before, ascent, strict=True)])
            below = gradients(part.lower, train, alphas)
    finally:
        put(before)
    whole = [g - rate * (high - low) / (2.0 * size) for g, high, low in zip(direct, above, below, strict=True)]
    return dict(zip(bench.alphas, direct, strict=True)), dict(zip(bench.alphas, whole, strict=True))


def differentiated(bench: Bench, rate: float) -> dict[str, Tensor]:
    """Return d/dalpha L_va(w - rate (mu m + grad_w L_tr(w, alpha) + lambda w), alpha), by autograd throughout."""
    part, net = bench.part, bench.net
    assert isinstance(part, Unrolled)
    train, valid = (bench.loop.feeds[name].batch(0, 0) for name in ("train", "valid"))
    group = bench.loop.groups[WEIGHTS]
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    weights: list[nn.Parameter] = group.tensors
    decay = group.running.param_groups[0]["weight_decay"]
    with bench.seeded():
        lower = part.lower(net, train).loss
    descent = torch.autograd.grad(lower, weights, create_graph=True, allow_unused=True)
    moved = {}
    for weight, gradient in zip(weights, descent, strict=True):
        step = part.momentum * group.running.state[weight]["momentum_buffer"] + decay * weight
        moved[names[id(weight)]] = weight - rate * (step if gradient is None else step + gradient)
    view: Any = Functional(net, moved)
    with bench.seeded():
        upper = part.upper(view, valid).loss
    alphas = list(bench.alphas.values())
    found = torch.autograd.grad(upper, alphas, allow_unused=True)
    return {
        name: torch.zeros_like(alpha) if g is None else g
        for (name, alpha), g in zip(bench.alphas.items(), found, strict=True)
    }


__all__ = ["KIND", "METHOD", "differentiated", "naive", "taken", "unrolled"]
