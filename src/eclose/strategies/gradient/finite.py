"""What is not finite when a search breaks: the error of the loop says when, this says where.

It looks only after an error, so a search that goes well pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from eclose.algebra.errors import EcloseError
from eclose.strategies.gradient.supernet import Supernet
from eclose.train.loop import Loop, TrainingError

NAMED = 3  # decisions that a message lists


@contextmanager
def explaining(loop: Loop, made: Supernet) -> Iterator[None]:
    """Add to an error of a training which alphas and which operations' weights are not finite.

    An error that comes from alphas which are no numbers becomes one of the training: nobody asked for them.

    Args:
        loop: what runs inside.
        made: what it trains.
    """
    try:
        yield
    except TrainingError as error:
        raise TrainingError(f"{error}. {where(made)}") from error
    except EcloseError as error:
        if not broken_alphas(made):
            raise
        position = loop.position
        raise TrainingError(
            f"the search broke at step {position.step + 1} of {position.steps} in epoch {position.epoch + 1}: "
            f"{where(made)}"
        ) from error


def where(made: Supernet) -> str:
    """Return which parameters of a supernet are not finite, as a sentence."""
    alphas, weights = broken_alphas(made), broken_weights(made)
    parts = []
    if alphas:
        parts.append(f"the alphas of {_listed(alphas, len(made.alphas))}")
    if weights:
        parts.append(f"the weights of {_listed(weights, len(_owners(made)))}")
    if not parts:
        return "All alphas and weights are finite: the loss of these data itself is not"
    return f"Not finite: {' and '.join(parts)}"


def broken_alphas(made: Supernet) -> list[str]:
    """Return the decisions with alphas that are not finite."""
    return [name for name, alpha in made.alphas.items() if not bool(torch.isfinite(alpha.detach()).all())]


def broken_weights(made: Supernet) -> list[str]:
    """Return the operations, or layers outside of decisions, with weights that are not finite."""
    parameters = dict(made.net.named_parameters())
    return [
        owner
        for owner, names in _owners(made).items()
        if not all(bool(torch.isfinite(parameters[name].detach()).all()) for name in names)
    ]


def _owners(made: Supernet) -> dict[str, list[str]]:
    """Return the names of parameters by what they belong to: an alternative of a choice, or a layer."""
    program = made.net.program
    guards = {step.name: step.guard for step in program.steps}
    found: dict[str, list[str]] = {}
    for name, _ in made.net.layers.named_parameters():
        step = name.partition(".")[0]
        guard = guards.get(step, guards.get(step.removesuffix("_"), -1))
        if guard < 0:
            owner = f"the layer {step!r}"
        else:
            place = program.guards[guard]
            owner = f"{made.sites[place.choice].labels[place.alternative]} at {place.choice!r}"
        found.setdefault(owner, []).append(f"layers.{name}")
    return found


def _listed(names: Sequence[str], whole: int) -> str:
    if len(names) > NAMED:
        first = ", ".join(names[:NAMED])
        return f"{first} and {len(names) - NAMED} more ({len(names)} of {whole})"
    return ", ".join(names)


__all__ = ["broken_alphas", "broken_weights", "explaining", "where"]
