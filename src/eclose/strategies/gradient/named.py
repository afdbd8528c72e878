"""The named strategies: each a recipe's differences from first-order DARTS, with the settings of its paper.

`spaces` holds what differs on a space that the paper or its reference code treats differently. Tables: the DARTS
papers' appendices and reference code; for NAS-Bench-201 the study of DrNAS (Chen et al. 2021) and the benchmark's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eclose.algebra.errors import RequestError
from eclose.strategies import NamedStrategy
from eclose.strategies.gradient.recipe import Recipe

Settings = Mapping[str, Any]

BENCHMARK = "nasbench201"
ONE_SHOT = ("nasbench1shot1-1", "nasbench1shot1-2", "nasbench1shot1-3")
ROBUST = ("s1", "s2", "s3", "s4")

SHARED: dict[str, Settings] = {
    BENCHMARK: {"epochs": 100},
    **{key: {"epochs": 50, "batch_size": 96, "rate": 0.025, "rate_end": 0.001} for key in ONE_SHOT},
}
"""What every strategy has on a space unless it says otherwise."""


def recipe_of(strategy: NamedStrategy, space: str, settings: Settings | None = None) -> Recipe:
    """Return the recipe of a strategy on a space, with some settings replaced."""
    per_space = {**SHARED.get(space, {}), **strategy.spaces.get(space, {})}
    return Recipe().with_settings({**strategy.settings_of_paper, **per_space, **(settings or {})})


def named(name: str, explanation: str, source: str, spaces: Mapping[str, Settings] | None = None,
          **settings: Any) -> NamedStrategy:  # fmt: skip
    """Return a strategy of the gradient kind; a mistake in its settings is found here."""
    recipe = Recipe().with_settings(settings)
    for space, changes in (spaces or {}).items():
        try:
            recipe.with_settings(changes)
        except RequestError as error:
            raise RequestError(f"strategy {name} on {space}: {error}") from error
    return NamedStrategy(
        name=name, kind="gradient", build=Recipe, settings=recipe.plain(), settings_of_paper=settings,
        spaces={**SHARED, **{key: {**SHARED.get(key, {}), **value} for key, value in (spaces or {}).items()}},
        explanation=explanation, source=source,
    )  # fmt: skip


DARTS = named(
    "darts",
    """
Mixes all operations of an edge by softmax(alpha). In turn, alphas take an Adam step on the loss of the held-out half,
weights an SGD step on that of the training half. The largest alphas make the cell. It is the baseline of the family,
and it is known to fill cells with skip connections when it runs long.
""",
    "Liu, Simonyan, Yang 2019, DARTS: Differentiable Architecture Search",
)
DARTS_SECOND = named(
    "darts-2nd",
    """
As darts, but the alphas see the validation loss after a virtual step of the weights: five passes a step instead of two.
""",
    "Liu, Simonyan, Yang 2019, equations 7 and 8",
    step="second-order",
)
SNAS = named(
    "snas",
    """
Draws the mixture from a Gumbel-softmax whose temperature falls from 1 to 0.03; weights and alphas move together on the
training loss. `--set regulariser=cost --set regulariser_weight=0.01` adds the expected multiply-adds.
""",
    "Xie et al. 2019, SNAS: Stochastic Neural Architecture Search; NAS-Bench-201 as in Chen et al. 2021",
    spaces={BENCHMARK: {"epochs": 100, "temperature": 10.0, "temperature_end": 1.0}},
    mixture="gumbel", step="single-level", epochs=150, temperature=1.0, temperature_end=0.03,
)  # fmt: skip
GDAS = named(
    "gdas",
    """
One operation an edge, drawn by Gumbel noise, with the gradient of the soft weights: the time and memory of one path.
`leak=true` is the reference code's gradient for what was not drawn.
""",
    "Dong and Yang 2019, Searching for a Robust Neural Architecture in Four GPU Hours",
    spaces={BENCHMARK: {"epochs": 250, "weight_decay": 5e-4, "nesterov": True}},
    mixture="hard-gumbel", epochs=250, temperature=10.0, temperature_end=0.1,
)  # fmt: skip
DSNAS = named(
    "dsnas",
    """
One operation an edge, drawn by its probability; the alphas get the score-function gradient with a local reward. An edge
is fixed once its best operation leads by 0.3, and the network that is left goes on training.
""",
    "Hu et al. 2020, DSNAS: Direct Neural Architecture Search without Parameter Retraining",
    spaces={BENCHMARK: {"epochs": 100}},
    mixture="sampled", step="single-level", fix_margin=0.3, epochs=240, architecture_rate=1e-3, architecture_decay=0.0,
)  # fmt: skip
PC_DARTS = named(
    "pc-darts",
    """
One channel in four goes through the mixture, the others pass by; edges of a node are weighted by a softmax of their
own. Alphas rest for the first 15 epochs.
""",
    "Xu et al. 2020, PC-DARTS: Partial Channel Connections for Memory-Efficient Architecture Search",
    spaces={BENCHMARK: {"epochs": 100, "batch_size": 64, "rate": 0.025, "rate_end": 0.001, "architecture_rate": 3e-4,
                        "frozen": 15},
            **{key: {"architecture_rate": 3e-4} for key in ONE_SHOT}},
    partial=4, edge_normalisation=True, frozen=15, batch_size=256, rate=0.1, rate_end=0.0, architecture_rate=6e-4,
)  # fmt: skip
DRNAS = named(
    "drnas",
    """
Draws the mixture from a Dirichlet distribution whose concentrations elu(alpha) + 1 are learned; weight decay on alpha
anchors them at the uniform distribution. The largest concentrations make the cell.
""",
    "Chen et al. 2021, DrNAS: Dirichlet Neural Architecture Search",
    mixture="dirichlet",
)
DRNAS_PROGRESSIVE = named(
    "drnas-progressive",
    """
As drnas, in two stages: first with few channels and all operations, then with more channels and the best operations of
each edge. Alphas rest for the first ten epochs of a stage.
""",
    "Chen et al. 2021, section 3.3 and appendix",
    spaces={BENCHMARK: {"epochs": 100, "stages": "50:4:5 50:2:3", "rate": 0.025, "rate_end": 0.001,
                        "architecture_rate": 3e-4},
            "darts": {"stages": "25:6:7 25:4:4", "channels": 36, "cells": 20},
            **{key: {"architecture_rate": 3e-4, "stages": "25:4:0 25:2:2"} for key in ONE_SHOT},
            **{key: {"stages": "25:4:0 25:2:1"} for key in ROBUST}},
    mixture="dirichlet", epochs=50, stages="25:4:0 25:2:4", frozen=10, rate=0.1, rate_end=0.0, architecture_rate=6e-4,
)  # fmt: skip
SDARTS_RS = named(
    "sdarts-rs",
    """
As darts, but the weights are trained under randomly perturbed mixtures, within a radius that grows from 0.03 to 0.3.
""",
    "Chen and Hsieh 2020, Stabilizing Differentiable Architecture Search via Perturbation-based Regularization",
    perturbation="uniform",
)
SDARTS_ADV = named(
    "sdarts-adv",
    """
As sdarts-rs, but with the worst mixture of the ball that seven steps of gradient ascent find: about nine passes a step
more.
""",
    "Chen and Hsieh 2020",
    perturbation="adversarial",
)
GAEA = named(
    "gaea",
    """
The weights of the mixture themselves are learned, by exponentiated gradient on the simplex. `step=single-level` is its
single-level form.
""",
    "Li et al. 2021, Geometry-Aware Gradient Algorithms for Neural Architecture Search",
    spaces={BENCHMARK: {"epochs": 25, "period": 50, "channels": 24, "without_none": True}},
    mixture="simplex", architecture_optimiser="exponentiated", architecture_rate=0.1, architecture_decay=0.0,
)  # fmt: skip
GAEA_PC_DARTS = named(
    "gaea-pc-darts",
    """
pc-darts with the weights of operations and edges learned by exponentiated gradient.
""",
    "Li et al. 2021",
    spaces={BENCHMARK: {"epochs": 100, "batch_size": 64, "rate": 0.025, "rate_end": 0.001}},
    mixture="simplex", architecture_optimiser="exponentiated", architecture_rate=0.1, architecture_decay=0.0, partial=4,
    edge_normalisation=True, frozen=15, batch_size=256, rate=0.1, rate_end=0.0,
)  # fmt: skip
NASP = named(
    "nasp",
    """
Alphas live in [0, 1]; a step evaluates the largest of each edge alone and applies the gradient taken there to the
continuous alphas.
""",
    "Yao et al. 2020, Efficient Neural Architecture Search via Proximal Iterations",
    mixture="proximal",
)
PROXYLESS = named(
    "proxyless",
    """
The weights are trained on one path drawn by softmax(alpha), the alphas on two of which one is active.
""",
    "Cai, Zhu, Han 2019, ProxylessNAS: Direct Neural Architecture Search on Target Task and Hardware",
    mixture="two-path", epochs=120, architecture_rate=1e-3, architecture_decay=0.0, architecture_beta1=0.0,
)  # fmt: skip
RS_WS = named(
    "rs-ws",
    """
Random search with shared weights: the weights are trained on paths drawn evenly, then many architectures are scored
with them and the best is taken.
""",
    "Li and Talwalkar 2019, Random Search and Reproducibility for Neural Architecture Search",
    spaces={BENCHMARK: {"epochs": 250, "weight_decay": 5e-4, "nesterov": True, "samples": 100}},
    mixture="uniform-path", step="none", selection="sampled", samples=1000, epochs=300,
)  # fmt: skip
ENAS = named(
    "enas",
    """
Paths are drawn by a recurrent controller, which after every epoch is rewarded for accurate ones. The best of 100 of its
paths is taken. The rate of the weights falls along one cosine; the benchmark's authors begin it anew every ten epochs.
""",
    "Pham et al. 2018, Efficient Neural Architecture Search via Parameter Sharing",
    spaces={BENCHMARK: {"epochs": 250, "batch_size": 128, "rate": 0.05, "rate_end": 5e-4, "weight_decay": 2.5e-4}},
    mixture="controller", step="none", selection="sampled", samples=100, epochs=150, rate=0.05, rate_end=5e-4,
    weight_decay=2.5e-4, architecture_rate=1e-3, architecture_beta1=0.0,
)  # fmt: skip
R_DARTS_DP = named(
    "r-darts-dp",
    """
As darts, with cutout and drop-path in the supernet, which ramp up linearly. The authors run drop_path 0, 0.2, 0.4 and
0.6 and keep the best on validation.
""",
    "Zela et al. 2020, Understanding and Robustifying Differentiable Architecture Search",
    cutout=16, drop_path=0.2,
)  # fmt: skip
R_DARTS_L2 = named(
    "r-darts-l2",
    """
As darts, with more weight decay. The authors run 3e-4, 9e-4, 27e-4 and 81e-4 and keep the best on validation.
""",
    "Zela et al. 2020",
    weight_decay=27e-4,
)
DARTS_ES = named(
    "darts-es",
    """
As darts, stopped when the dominant eigenvalue of the Hessian in alpha has grown by more than 1.3 (means of five
measurements, four apart); the architecture of the older window is taken.
""",
    "Zela et al. 2020, section 4.3",
    spaces={key: {"hessian_every": 2} for key in ROBUST},
    guard="eigenvalue", hessian_every=1, checkpoint_every=1,
)  # fmt: skip
DARTS_ADA = named(
    "darts-ada",
    """
As darts-es, but instead of stopping the search goes back and goes on with ten times the weight decay, up to 0.03.
""",
    "Zela et al. 2020, appendix",
    spaces={key: {"hessian_every": 2} for key in ROBUST},
    guard="adapt",
    hessian_every=1,
    checkpoint_every=1,
)
SUPERNET_SGD = named(
    "supernet-sgd",
    """
Weights and alphas move together on the training loss, each by its own optimiser: the single-level search of any
relaxation.
""",
    "Roberts et al. 2021, Rethinking Neural Operations for Diverse Tasks; Li et al. 2021 for the single level",
    step="single-level",
)

__all__ = ["SHARED", "named", "recipe_of"]
