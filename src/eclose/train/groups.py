"""Parameter groups: weights, alphas and operation parameters, each with its optimiser, schedule and clipping.

Rates live where the device can read them: a number on a CPU, a scalar tensor on a GPU, so that a captured step follows
its schedule. Momentum starts as zeros instead of "not there yet": the numbers are the same, a parameter that some steps
do not touch (a path that was not sampled) needs no special case, and a captured step has no first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from eclose.algebra.errors import RequestError
from eclose.train.schedules import Position, Schedule


class OptimiserFactory(Protocol):
    """What makes an optimiser for some parameters; `rate` is a number or, on a GPU, a scalar tensor."""

    def __call__(self, parameters: Sequence[nn.Parameter], rate: float | Tensor) -> torch.optim.Optimizer:
        """Return the optimiser of some parameters."""
        ...


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum; weight decay is the L2 term."""

    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0

    def __call__(self, parameters: Sequence[nn.Parameter], rate: float | Tensor) -> torch.optim.Optimizer:
        """Return the optimiser of some parameters."""
        optimiser = torch.optim.SGD(
            parameters,
            lr=rate,
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
            fused=_can_fuse(parameters),
        )
        if self.momentum:
            for parameter in parameters:
                optimiser.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return optimiser


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015); `decoupled` makes the weight decay AdamW's instead of the L2 term."""

    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False

    def __call__(self, parameters: Sequence[nn.Parameter], rate: float | Tensor) -> torch.optim.Optimizer:
        """Return the optimiser of some parameters."""
        kind = torch.optim.AdamW if self.decoupled else torch.optim.Adam
        return kind(
            parameters,
            lr=rate,
            betas=self.betas,
            eps=self.epsilon,
            weight_decay=self.weight_decay,
            fused=_can_fuse(parameters),
            capturable=isinstance(rate, Tensor) and rate.is_cuda,
        )


@dataclass
class Group:
    """Parameters that are updated together.

    Args:
        name: `"weights"`, `"alphas"`, `"operations"` or the caller's own.
        parameters: the parameters, in an order that is the same in every process.
        optimiser: `SGD(...)`, `Adam(...)` or any function of (parameters, rate) that returns a torch optimiser.
        schedule: the learning rate as a function of the position.
        clip: the largest global L2 norm of the group's gradient, or None.
    """

    name: str
    parameters: Sequence[nn.Parameter] | Mapping[str, nn.Parameter]
    optimiser: OptimiserFactory | Callable[..., torch.optim.Optimizer]
    schedule: Schedule
    clip: float | None = None
    tensors: list[nn.Parameter] = field(init=False, repr=False)
    running: torch.optim.Optimizer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given: Iterable[nn.Parameter] = (
            self.parameters.values() if isinstance(self.parameters, Mapping) else self.parameters
        )
        self.tensors = list(given)
        if not self.tensors:
            raise RequestError(f"the parameter group {self.name!r} is empty")
        if self.clip is not None and not self.clip > 0:
            raise RequestError(f"the gradient of group {self.name!r} is clipped at a norm above 0, not {self.clip!r}")

    def start(self, position: Position, on_device: bool) -> None:
        """Make the optimiser.

        Args:
            position: where the training starts.
            on_device: whether the rate is a tensor on the parameters' device (needed for a captured step).
        """
        value = self.schedule(position)
        device = self.tensors[0].device
        self._value = value
        self._rate: float | Tensor = (
            torch.tensor(value, dtype=torch.float32, device=device) if on_device else float(value)
        )
        self.running = self.optimiser(self.tensors, self._rate)

    @property
    def rate(self) -> float:
        """The learning rate of the step last prepared."""
        return self._value

    @property
    def device_rate(self) -> float | Tensor:
        """The learning rate as the optimiser reads it: on a GPU a tensor, so that a captured step follows it."""
        return self._rate

    def prepare(self, position: Position) -> None:
        """Set the learning rate of the next step; nothing happens where it has not changed."""
        value = float(self.schedule(position))
        if value == self._value:
            return
        self._value = value
        if isinstance(self._rate, Tensor):
            self._rate.fill_(value)
        else:
            self._rate = value
            self._hand_over_rate()

    def clip_gradient(self) -> None:
        """Scale the gradient down where its norm exceeds the group's limit; no device synchronisation."""
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.tensors, self.clip, error_if_nonfinite=False)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimiser's state; the rate is a function of the position and not part of it."""
        return {"state": self.running.state_dict()["state"]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state that `state_dict` returned."""
        groups = self.running.state_dict()["param_groups"]
        self.running.load_state_dict({"state": state["state"], "param_groups": groups})
        self._hand_over_rate()  # loading copies the rate: a tensor would no longer be the one that is filled

    def _hand_over_rate(self) -> None:
        for group in self.running.param_groups:
            group["lr"] = self._rate

    @property
    def obstacle(self) -> str:
        """Why steps of this group cannot be captured, or nothing."""
        if isinstance(self.running, torch.optim.SGD | torch.optim.Adam | torch.optim.AdamW):
            fused = all(group.get("fused") for group in self.running.param_groups)
            return "" if fused else f"group {self.name!r} has parameters that no fused optimiser takes"
        if getattr(self.running, "captures", False):
            return ""
        return (
            f"the optimiser {type(self.running).__name__} of group {self.name!r} does not say that it can be captured"
        )


def disjoint(groups: Sequence[Group]) -> None:
    """Refuse groups that share a parameter or a name: such a parameter would be trained twice."""
    owners: dict[int, str] = {}
    names: set[str] = set()
    for group in groups:
        if group.name in names:
            raise RequestError(f"two parameter groups are called {group.name!r}")
        names.add(group.name)
        for parameter in group.tensors:
            owner = owners.setdefault(id(parameter), group.name)
            if owner != group.name:
                raise RequestError(f"the groups {owner!r} and {group.name!r} share a parameter; each has one owner")


def _can_fuse(parameters: Sequence[nn.Parameter]) -> bool:
    return all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in parameters)


__all__ = ["SGD", "Adam", "Group", "OptimiserFactory", "disjoint"]
