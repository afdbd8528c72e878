"""The dominant eigenvalue over four searches of NAS-Bench-201 cells on the digits: minutes on one core.

    python -m experiments.digits_curvature

Writes `benchmarks/results/digits-curvature.json` and prints the curves.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._measure import machine

import eclose as ec
from eclose.runs import Run, write_text

STRATEGIES = ("darts", "sdarts-rs", "sdarts-adv", "drnas")
SEEDS = (0, 1, 2)
EPOCHS = 40
RATE = 3e-3  # of the alphas: ten times the papers', since there are a tenth of the steps


def main() -> None:
    """Search, and write what was measured."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for strategy in STRATEGIES:
        for seed in SEEDS:
            with TemporaryDirectory() as folder:
                out = Path(folder) / "run"
                ec.search("nasbench201", "digits", strategy, out=out, seed=seed, epochs=EPOCHS, channels=4, cells=1,
                          hessian_every=5, architecture_rate=RATE, checkpoint_every=0, retrain=0)  # fmt: skip
                events = Run.open(out).of_kind("architecture")
            curve = {event["epoch"] + 1: event["hessian"]["largest"] for event in events if "hessian" in event}
            found.setdefault(strategy, {})[str(seed)] = curve
            print(f"{strategy}, seed {seed}: " + ", ".join(f"{epoch} {value:.3f}" for epoch, value in curve.items()))
    content = {"machine": machine(), "epochs": EPOCHS, "architecture_rate": RATE, "largest_eigenvalue": found}
    write_text(Path("benchmarks/results/digits-curvature.json"), json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
