"""Mixtures: from alphas to the weights that a step sees. One file a family, one entry of `MIXTURES` each.

A mixture knows alphas and names, no network and no optimiser.
"""

from __future__ import annotations

from collections.abc import Mapping

from eclose.algebra.catalogue import Catalogue
from eclose.strategies.gradient.mixtures.rule import MixtureRule
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.supernet import Site

MIXTURES: Catalogue[type[MixtureRule]] = Catalogue("mixture")
for _name, _reference, _description in (
    ("softmax", "soft:Softmax", "softmax(alpha), as in DARTS"),
    ("gumbel", "soft:Gumbel", "a sample of the Gumbel-softmax, as in SNAS"),
    ("dirichlet", "soft:DirichletSample", "a sample of the Dirichlet distribution with concentration elu(alpha) + 1"),
    ("simplex", "soft:Simplex", "the parameters are the weights themselves, as in GAEA"),
    ("hard-gumbel", "paths:HardGumbel", "one alternative by Gumbel noise, with the gradient of the soft weights, GDAS"),
    ("sampled", "paths:Sampled", "one alternative by its probability, with the score-function gradient, as in DSNAS"),
    ("proximal", "paths:Proximal", "the largest alpha's alternative, as in NASP"),
    ("two-path", "paths:TwoPath", "one path for the weights, two for the alphas, as in ProxylessNAS"),
    ("uniform-path", "paths:UniformPath", "a path drawn evenly, as in random search with shared weights"),
    ("controller", "controller:Controlled", "a path drawn by a recurrent controller, as in ENAS"),
):
    MIXTURES.add(_name, f"eclose.strategies.gradient.mixtures.{_reference}", _description)


def mixture(sites: Mapping[str, Site], recipe: Recipe) -> MixtureRule:
    """Return the mixture of a recipe for the decisions of a supernet."""
    return MIXTURES.get(recipe.mixture)(sites, recipe)


__all__ = ["MIXTURES", "MixtureRule", "mixture"]
