"""A recipe: every part and every number of a gradient search, as plain values.

A named strategy is a recipe with the settings of its paper; any other combination is one with other values. The parts
are named here and made elsewhere, so a recipe can be read, printed, stored and set from a command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from eclose.algebra.errors import RequestError, did_you_mean

KNOWN: dict[str, tuple[str, ...]] = {
    "mixture": (
        "softmax", "gumbel", "hard-gumbel", "sampled", "dirichlet", "simplex", "proximal", "two-path", "uniform-path",
        "controller",
    ),
    "step": ("first-order", "second-order", "single-level", "none"),
    "order": ("architecture-first", "weights-first"),
    "architecture_optimiser": ("adam", "sgd", "exponentiated"),
    "perturbation": ("none", "uniform", "adversarial"),
    "regulariser": ("none", "dirichlet-kl", "entropy", "cost"),
    "guard": ("none", "eigenvalue", "adapt", "skips"),
    "selection": ("magnitude", "perturbation", "sampled", "finetune"),
    "precision": ("float32", "mixed", "bfloat16", "float16"),
    "capture": ("auto", "on", "off"),
}  # fmt: skip
"""What a part's setting may be."""
SOFT = ("softmax", "gumbel", "dirichlet", "simplex")
"""Mixtures that evaluate every alternative."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of a gradient search; the defaults are those of first-order DARTS (Liu et al. 2019).

    Attributes:
        mixture: how alphas become the weights of a step.
        temperature: of a Gumbel mixture in the first epoch.
        temperature_end: in the last; linear in between.
        leak: whether a hard Gumbel mixture gives a gradient to what was not selected, as GDAS's reference does.
        fix_margin: a sampled mixture fixes a choice once its first probability leads by this much; 0 for never.
        controller_steps: updates of a controller after each epoch.
        controller_samples: paths that one of its updates averages over.
        step: whose gradient moves the alphas: the validation loss (`first-order`), the same after a virtual weight
            step (`second-order`), the training loss along with the weights (`single-level`), or none.
        order: whether alphas or weights move first in a step.
        frozen: epochs in which the alphas do not move; of each stage.
        architecture_optimiser: what moves the alphas.
        architecture_rate: its learning rate.
        architecture_decay: its L2 weight decay.
        architecture_beta1: of Adam.
        architecture_beta2: of Adam.
        perturbation: what the weights see instead of the mixture's own weights (SmoothDARTS).
        radius: of the perturbation in the first epoch.
        radius_end: towards the last; linear in between.
        attack_steps: of the adversarial perturbation.
        partial: channels of an edge go through the mixture as one part of this many (PC-DARTS).
        edge_normalisation: whether the edges of a node are weighted by a softmax of their own (PC-DARTS).
        without_none: whether `none` takes no part in the search.
        stages: a progressive search as `epochs:partial:operations`, one for each stage (DrNAS).
        regulariser: a term that is added to the architecture's loss.
        regulariser_weight: its factor.
        guard: what may end the search early, or send it back.
        guard_limit: the ratio of eigenvalues, or the number of skips, at which it acts.
        hessian_every: epochs between two measurements of the Hessian of the alphas; 0 for never.
        selection: how the relaxed architecture becomes a term.
        most_skips: skip connections that a selected cell may have at most; negative for any number.
        least_features: operations with weights that it must have at least.
        samples: architectures that a selection by sampling scores.
        epochs: of the search.
        period: epochs of the weights' cosine, where that is longer than the search; 0 for the search's.
        batch_size: of both levels.
        split: the share of the training data (train and valid part together) that the alphas are trained on; 0 takes
            the task's own parts.
        rate: of the weights' SGD in the first epoch.
        rate_end: towards the last; cosine in between.
        momentum: of the weights' SGD.
        nesterov: whether it is Nesterov's.
        weight_decay: of the weights.
        clip: the largest norm of the weights' gradient; 0 for any.
        channels: of the supernet; 0 for the space's own.
        cells: of the supernet; 0 for the space's own.
        flip: whether images are mirrored at random.
        crop: pixels that images are padded by for random crops; 0 for none.
        cutout: side of the hole cut into images, into more of them from epoch to epoch; 0 for none.
        drop_path: the highest probability of drop-path; it rises linearly from 0.
        checkpoint_every: epochs between two checkpoints that are kept for selection and diagnosis; 0 keeps the last.
        precision: of the computation.
        channels_last: whether images have their channels innermost in memory.
        capture: whether steps run as CUDA graphs.
    """

    mixture: str = "softmax"
    temperature: float = 1.0
    temperature_end: float = 1.0
    leak: bool = False
    fix_margin: float = 0.0
    controller_steps: int = 50
    controller_samples: int = 20
    step: str = "first-order"
    order: str = "architecture-first"
    frozen: int = 0
    architecture_optimiser: str = "adam"
    architecture_rate: float = 3e-4
    architecture_decay: float = 1e-3
    architecture_beta1: float = 0.5
    architecture_beta2: float = 0.999
    perturbation: str = "none"
    radius: float = 0.03
    radius_end: float = 0.3
    attack_steps: int = 7
    partial: int = 1
    edge_normalisation: bool = False
    without_none: bool = False
    stages: str = ""
    regulariser: str = "none"
    regulariser_weight: float = 0.0
    guard: str = "none"
    guard_limit: float = 1.3
    hessian_every: int = 0
    selection: str = "magnitude"
    most_skips: int = -1
    least_features: int = 0
    samples: int = 100
    epochs: int = 50
    period: int = 0
    batch_size: int = 64
    split: float = 0.5
    rate: float = 0.025
    rate_end: float = 0.001
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 3e-4
    clip: float = 5.0
    channels: int = 0
    cells: int = 0
    flip: bool = True
    crop: int = 4
    cutout: int = 0
    drop_path: float = 0.0
    checkpoint_every: int = 10
    precision: str = "float32"
    channels_last: bool = False
    capture: str = "auto"

    def __post_init__(self) -> None:
        for key, known in KNOWN.items():
            value = getattr(self, key)
            if value not in known:
                hint = did_you_mean(str(value), known) or f" (known: {', '.join(known)})"
                raise RequestError(f"unknown {key} {value!r}{hint}")
        for key in (
            "epochs",
            "batch_size",
            "partial",
            "attack_steps",
            "samples",
            "controller_steps",
            "controller_samples",
        ):
            self._refuse(getattr(self, key) >= 1, key, "at least 1")
        for key in ("temperature", "temperature_end", "rate", "architecture_rate"):
            self._refuse(getattr(self, key) > 0, key, "above 0")
        for key in ("frozen", "rate_end", "weight_decay", "architecture_decay", "clip", "radius", "radius_end", "crop",
                    "cutout", "channels", "cells", "checkpoint_every", "hessian_every", "regulariser_weight", "period",
                    "fix_margin", "least_features"):  # fmt: skip
            self._refuse(getattr(self, key) >= 0, key, "at least 0")
        self._refuse(0 <= self.split < 1, "split", "a share of the data below 1, or 0 for the task's own parts")
        self._refuse(0 <= self.drop_path < 1, "drop_path", "at least 0 and below 1")
        if self.without_none and self.mixture not in SOFT:
            raise RequestError(
                f"without_none=true goes with the mixtures {', '.join(SOFT)}, not with {self.mixture!r}; search a "
                "space without `none`"
            )
        for key in ("momentum", "architecture_beta1", "architecture_beta2"):
            self._refuse(0 <= getattr(self, key) < 1, key, "at least 0 and below 1")
        if self.nesterov and not self.momentum:
            raise RequestError("nesterov=true needs a momentum above 0")
        if self.perturbation != "none" and self.mixture not in SOFT:
            raise RequestError(
                f"a perturbation changes the weights of all operations; it goes with the mixtures {', '.join(SOFT)}, "
                f"not with {self.mixture!r}"
            )
        if self.guard in ("eigenvalue", "adapt"):
            every, kept = self.hessian_every, self.checkpoint_every
            if not every or not kept or every % kept:
                raise RequestError(
                    f"guard={self.guard!r} returns to an epoch whose Hessian was measured; set hessian_every=1 and "
                    f"checkpoint_every=1, not {every} and {kept}"
                )
        if self.mixture == "simplex" and self.architecture_optimiser != "exponentiated":
            raise RequestError(
                "mixture='simplex' holds the weights themselves, which only architecture_optimiser='exponentiated' "
                "keeps on the simplex"
            )
        if self.architecture_optimiser == "exponentiated" and self.mixture != "simplex":
            raise RequestError(
                f"architecture_optimiser='exponentiated' multiplies weights on the simplex; it goes with "
                f"mixture='simplex', not with {self.mixture!r}"
            )
        if self.step == "second-order" and self.mixture not in ("softmax", "simplex"):
            raise RequestError(
                f"step='second-order' differentiates through a weight step, for which every pass must see the same "
                f"weights; it goes with the mixtures softmax and simplex, not with {self.mixture!r}"
            )
        if self.step == "second-order" and self.precision != "float32":
            raise RequestError("step='second-order' takes differences that 16 bits cannot hold; use float32")
        if self.regulariser == "dirichlet-kl" and self.mixture != "dirichlet":
            raise RequestError(f"regulariser='dirichlet-kl' goes with mixture='dirichlet', not with {self.mixture!r}")

    def _refuse(self, fine: bool, key: str, right: str) -> None:
        if not fine:
            raise RequestError(f"{key} must be {right}, not {getattr(self, key)!r}")

    def unused(self) -> dict[str, str]:
        """Return the settings that differ from their default and mean nothing here, each with the reason."""
        untrained = self.mixture in ("uniform-path", "controller") or self.step == "none"
        reasons: dict[str, tuple[bool, str]] = {
            "temperature": ("gumbel" not in self.mixture, f"mixture={self.mixture} has no temperature"),
            "temperature_end": ("gumbel" not in self.mixture, f"mixture={self.mixture} has no temperature"),
            "leak": (self.mixture != "hard-gumbel", f"mixture={self.mixture} has none"),
            "fix_margin": (self.mixture != "sampled", f"mixture={self.mixture} fixes nothing"),
            "controller_steps": (self.mixture != "controller", "there is no controller"),
            "controller_samples": (self.mixture != "controller", "there is no controller"),
            "radius": (self.perturbation == "none", "there is no perturbation"),
            "radius_end": (self.perturbation == "none", "there is no perturbation"),
            "attack_steps": (self.perturbation != "adversarial", "there is no adversarial perturbation"),
            "guard_limit": (self.guard == "none", "there is no guard"),
            "regulariser_weight": (self.regulariser == "none" or untrained, "no alphas are regularised"),
            "samples": (self.selection != "sampled", f"selection={self.selection} draws nothing"),
            "frozen": (untrained, "no alphas move"),
            "architecture_rate": (untrained and self.mixture != "controller", "no alphas move"),
            "architecture_decay": (untrained, "no alphas move"),
        }
        default = {entry.name: entry.default for entry in fields(self)}
        return {key: reason for key, (idle, reason) in reasons.items() if idle and getattr(self, key) != default[key]}

    def plain(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self)

    def with_settings(self, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe with some settings replaced; names and kinds of values are checked."""
        known = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        found = {}
        for key, value in settings.items():
            if key not in known:
                raise RequestError(f"a gradient search has no setting {key!r}{did_you_mean(key, known)}")
            default = known[key]
            if value is None and isinstance(default, str):  # how a command line reads `none`
                value = "none"
            if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            if type(value) is not type(default):
                kind = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[type(default)]
                raise RequestError(f"{key} is {kind} such as {default!r}, not {value!r}")
            found[key] = value
        return replace(self, **found)


@dataclass(frozen=True)
class Stage:
    """A stretch of a progressive search with a supernet of its own.

    Attributes:
        first: its first epoch.
        end: the epoch after its last.
        partial: see `Recipe`.
        operations: alternatives of a choice that are kept, 0 for all.
    """

    first: int
    end: int
    partial: int
    operations: int = 0


def stages_of(recipe: Recipe) -> tuple[Stage, ...]:
    """Return the stages of a recipe; one for a search that is not progressive."""
    if not recipe.stages:
        return (Stage(0, recipe.epochs, recipe.partial),)
    found: list[Stage] = []
    for text in recipe.stages.replace(",", " ").split():
        try:
            epochs, partial, operations = (int(number) for number in text.split(":"))
        except ValueError:
            raise RequestError(
                f"a stage is epochs:partial:operations such as 25:6:7, not {text!r} (in stages={recipe.stages!r})"
            ) from None
        if epochs < 1 or partial < 1 or operations < 0:
            raise RequestError(f"a stage has epochs and parts of at least 1, not {text!r}")
        first = found[-1].end if found else 0
        if found and partial > found[-1].partial:
            raise RequestError(f"a later stage cannot have fewer channels: {text!r} in stages={recipe.stages!r}")
        if found and (partial == 1) != (found[-1].partial == 1):
            raise RequestError(f"stages are all with partial channels or all without: stages={recipe.stages!r}")
        found.append(Stage(first, first + epochs, partial, operations))
    if not found:
        raise RequestError(f"stages={recipe.stages!r} names none; a stage is epochs:partial:operations such as 25:6:7")
    if found[-1].end != recipe.epochs:
        raise RequestError(
            f"stages={recipe.stages!r} take {found[-1].end} epochs, epochs={recipe.epochs}; set both, for example "
            f"epochs={found[-1].end}"
        )
    return tuple(found)


__all__ = ["KNOWN", "Recipe", "Stage", "stages_of"]
