"""From one stage of a progressive search to the next: fewer alternatives, more channels (Chen et al. 2021, DrNAS)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from eclose.strategies.gradient.mixtures import MixtureRule
from eclose.strategies.gradient.steps import WEIGHTS
from eclose.strategies.gradient.widening import widen, widen_state
from eclose.train.randomness import key_of

if TYPE_CHECKING:
    from eclose.strategies.gradient.search import GradientSearch, Made
    from eclose.train.loop import Loop


def pruned(rule: MixtureRule, alphas: dict[str, torch.nn.Parameter], keep: int) -> None:
    """Keep the alternatives of every choice with the largest alphas; the others' alphas become 0."""
    with torch.no_grad():
        for name, alpha in alphas.items():
            allowed = rule.allowed[name]
            if rule.sites[name].kind != "choice" or not keep or keep >= len(allowed):
                continue
            values = alpha.tolist()
            best = sorted(allowed, key=lambda index: (-values[index], index))[:keep]
            rule.allowed[name] = tuple(sorted(best))
            for index in range(alpha.numel()):
                if index not in best:
                    alpha[index] = 0.0
        rule.updated(alphas)


def next_stage(search: GradientSearch, made: Made, loop: Loop, number: int) -> Made:
    """Return the next stage's supernet with what the last one has learned; the loop is the finished one's.

    Channels are replicated and the momentum with them; the alphas' optimiser begins anew.
    """
    following = search.made(number + 1)
    seed = key_of(search.seed, "widening", number)
    old, new = made.supernet.net, following.supernet.net
    widen(old, new, seed)
    following.rule.load_state_dict(made.rule.state_dict())
    pruned(following.rule, following.supernet.alphas, following.stage.operations)
    names = {id(parameter): name for name, parameter in old.named_parameters()}
    kept = {names[id(parameter)]: dict(state) for parameter, state in loop.groups[WEIGHTS].running.state.items()}
    carried = widen_state(kept, old, new, seed)

    def carry(begun: Loop) -> None:
        parameters = dict(new.named_parameters())
        for name, state in carried.items():
            begun.groups[WEIGHTS].running.state[parameters[name]].update(state)

    following.carry = carry
    return following


__all__ = ["next_stage", "pruned"]
