"""What is written down after every epoch of a search: weights, derived term, entropies, skips, curvature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError
from eclose.diagnose.weights import dominant, entropies, margin
from eclose.runs import Run
from eclose.strategies.gradient.decisions import Decisions, as_scores, decide, skips_of
from eclose.strategies.gradient.mixtures.rule import MixtureRule
from eclose.strategies.gradient.probe import Probe
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.selection.magnitude import decided_within, with_parameters
from eclose.strategies.gradient.supernet import Supernet
from eclose.train.callbacks import Callback

if TYPE_CHECKING:
    from eclose.train.loop import Loop

PROBES = 8  # random directions that the trace of a Hessian is estimated with, beside those that Lanczos goes through


class Watching(Callback):
    """Looks at the architecture after every epoch.

    Args:
        supernet: what is searched.
        rule: alphas to weights.
        recipe: how a term is derived, how often the Hessian is measured.
        probe: makes the probe of an epoch.
        tell: takes what was seen, as plain data.

    Attributes:
        measured: finished epochs -> the Hessian's `largest`, `norm` and `trace`.
        skips: skip connections of the derived architecture, by cell.
    """

    def __init__(
        self,
        supernet: Supernet,
        rule: MixtureRule,
        recipe: Recipe,
        probe: Callable[[], Probe],
        tell: Callable[[dict[str, Any]], None],
    ):
        self.supernet, self.rule, self.recipe, self.probe, self.tell = supernet, rule, recipe, probe, tell
        self.measured: dict[int, dict[str, float]] = {}
        self.skips: dict[str, int] = {}

    def after_epoch(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Look, and tell."""
        epoch = loop.position.epoch
        seen = self.seen()
        every = self.recipe.hessian_every
        if every and epoch % every == 0:
            with suppress(RequestError):  # a Hessian that is not finite is a measurement less, not the end of a search
                found = self.probe().spectrum(weight_decay=self.recipe.architecture_decay, seed=epoch, samples=PROBES)
                self.measured[epoch] = {"largest": found.largest, "norm": found.norm, "trace": found.trace}
                seen["hessian"] = self.measured[epoch]
        self.tell({"epoch": epoch - 1, **seen})

    def _decisions(self, scores: dict[str, list[float]]) -> Decisions:
        """Return what a selection by magnitude would keep, where its limits can be kept already."""
        recipe = self.recipe
        features = with_parameters(self.supernet.net.program) if recipe.least_features else None
        try:
            return decided_within(
                self.supernet, scores, most_skips=recipe.most_skips, least_features=recipe.least_features,
                features=features,
            )  # fmt: skip
        except RequestError:
            return decide(self.supernet.sites, scores)

    def seen(self) -> dict[str, Any]:
        """Return what the architecture looks like now."""
        sites = self.supernet.sites
        thetas = self.rule.expected({name: alpha.detach() for name, alpha in self.supernet.alphas.items()})
        scores = as_scores(thetas)
        decisions = self._decisions(scores)
        self.skips = skips_of(sites, decisions)
        choices = {name: scores[name] for name in self.supernet.choices}
        found = entropies(choices)
        skips = {name: site.skips for name, site in sites.items() if name in choices}
        others = {
            name: tuple(index for index in range(site.count) if index not in (*site.skips, *site.zeros))
            for name, site in sites.items()
            if name in choices
        }
        return {
            "term": str(self.supernet.term(decisions)),
            "weights": {name: [round(value, 6) for value in values] for name, values in scores.items()},
            "entropy": sum(found.values()) / max(1, len(found)),
            "entropies": found,
            "skips": {
                "derived": sum(self.skips.values()),
                "dominant": dominant(choices, skips),
                "edges": len(choices),
                "margin": margin(choices, skips, others),
            },
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the measurements."""
        return {"measured": {str(epoch): dict(found) for epoch, found in self.measured.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        self.measured = {int(epoch): dict(found) for epoch, found in state["measured"].items()}


def history_of(run: Run) -> list[dict[str, Any]]:
    """Return what a run's log says of each epoch of its search: the figures and the derived term."""
    found: list[dict[str, Any]] = []
    for event in run.events:
        if event["event"] == "epoch" and event.get("phase") == "search":
            found.append({"epoch": event["epoch"], **event["values"]})
        elif event["event"] == "architecture" and found:
            found[-1]["term"] = event["term"]
    return found


__all__ = ["Watching", "history_of"]
