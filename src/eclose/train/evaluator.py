"""An evaluator for studies: builds the network of a term, trains it by a protocol, gives its objectives.

It pickles, so worker processes can have it; the same term and seed give the same score in any of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from typing import Protocol as Interface

import torch

from eclose.algebra.terms import Term
from eclose.meanings.program import Program, compile_term
from eclose.meanings.program.completion import completed
from eclose.spaces import Space
from eclose.tasks import Task
from eclose.train.protocols import Protocol, protocol
from eclose.train.training import as_device, measure, train_network


class Reporter(Interface):
    """Takes intermediate values; may offer a folder for a checkpoint."""

    folder: Path | None

    def __call__(self, step: int, **values: float) -> None: ...


class TrainingEvaluator:
    """Trains the network of a term.

    Args:
        space: whose skeleton goes around terms.
        task: what is learned; its valid part gives the score.
        settings: the protocol.
        device: where; the GPU where there is one.
        size: of the space's network.
        options: further options of the space's network.

    Attributes:
        objectives: what is optimised, by the task's metric.
    """

    simulated = False

    def __init__(
        self,
        space: Space,
        task: Task,
        settings: Protocol | str = "quick",
        *,
        device: str | None = None,
        size: str = "search",
        **options: Any,
    ):
        self.space, self.task, self.settings = space, task, protocol(settings)
        self.device, self.size, self.options = device, size, options
        self.objectives = {"score": task.metric.direction}

    def whole(self, term: Term) -> Term:
        """Return the whole network of a term, as a term."""
        return self.space.network(term, input=self.task.input, output=self.task.output, size=self.size, **self.options)

    def program(self, term: Term) -> Program:
        """Return the program of a term's network, without building it."""
        registry = self.space.grammar.registry
        whole = completed(self.whole(term), self.task.input, self.task.output, registry)
        return compile_term(whole, self.task.input, self.task.output, registry=registry)

    def network(self, term: Term, seed: int) -> torch.nn.Module:
        """Return the network of a term with the initial weights that belong to a seed."""
        from eclose.meanings.torch.build import build_net

        program = self.program(term)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return build_net(program)

    def __call__(self, term: Term, seed: int, report: Reporter | None = None) -> dict[str, float]:
        """Return the score, parameters and multiply-adds of a term; how long it took is the study's to measure."""
        from eclose.meanings.cost import program_cost

        net = self.network(term, seed)
        spent = program_cost(net.program)  # type: ignore[arg-type]
        folder = report.folder if report is not None else None
        with self.task.searching():
            trained = train_network(
                net,
                self.task,
                self.settings,
                seed=seed,
                device=as_device(self.device),
                checkpoint=None if folder is None else folder / "checkpoint.pt",
                on_epoch=None if report is None else lambda epoch, figures: report(epoch, **figures),
            )
            score = trained.score
            if "valid_score" not in trained.figures:  # an early stop
                score = measure(net, self.task, "valid", device=self.device)["score"]
        return {
            "score": score,
            "parameters": float(spent.parameters),
            "multiply_adds": float(spent.multiply_adds),
        }


__all__ = ["TrainingEvaluator"]
