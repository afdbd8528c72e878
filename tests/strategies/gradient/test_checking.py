"""The check of gradients: it passes for every strategy, and it fails where an estimator is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import eclose
from eclose.algebra.errors import RequestError
from eclose.operations.mixture import MixtureWeights
from eclose.strategies import STRATEGIES
from eclose.strategies.gradient import steps
from eclose.strategies.gradient.checking import NOT_APPLICABLE, check_gradients, family_of
from eclose.strategies.gradient.checking.bench import bench
from eclose.strategies.gradient.checking.entries import Entry, mean
from eclose.strategies.gradient.mixtures import MIXTURES, controller, paths, soft
from eclose.strategies.gradient.named import recipe_of

GRADIENT = [entry.name for entry in STRATEGIES if STRATEGIES.get(entry.name).kind == "gradient"]
SPACE = "nasbench1shot1-1"  # small: choices, picks and a few layers


def checked(strategy: str, space: str = SPACE, samples: int = 300, **settings):
    return check_gradients(strategy, eclose.space(space), seed=1, entries=6, samples=samples, settings=settings)


@pytest.mark.parametrize("name", GRADIENT)
def test_every_strategy_passes(name):
    found = checked(name)
    assert found.passed, [entry for entry in found.entries if not entry.passed]
    assert bool(found.entries) == (found.kind != NOT_APPLICABLE)
    assert all(entry.estimator == entry.estimator for entry in found.entries)
    assert (found.kind == NOT_APPLICABLE) == (name == "rs-ws")


def test_every_mixture_belongs_to_a_family():
    from eclose.strategies.gradient.checking import FAMILIES

    assert set(FAMILIES) == {entry.name for entry in MIXTURES}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gdas", {"leak": True}),
        ("gdas", {"regulariser": "entropy", "regulariser_weight": 0.1}),
        ("snas", {"regulariser": "cost", "regulariser_weight": 0.01}),
        ("drnas", {"regulariser": "dirichlet-kl", "regulariser_weight": 0.1}),
        ("gaea", {"regulariser": "entropy", "regulariser_weight": 0.1}),
        ("darts", {"drop_path": 0.3}),
        ("proxyless", {"edge_normalisation": True}),
        ("gaea", {"step": "second-order"}),
        ("darts-2nd", {"drop_path": 0.3}),
    ],
)
def test_variants_pass_on_the_cells_of_darts(name, settings):
    found = checked(name, "s2", samples=100, **settings)
    assert found.passed, [entry for entry in found.entries if not entry.passed]


def test_a_recipe_that_moves_no_alphas_says_so():
    found = checked("darts", step="none")
    assert found.kind == NOT_APPLICABLE
    assert "moves no alphas" in found.method


# Wrong estimators


def failed(*arguments, **settings) -> set[str]:
    return {entry.quantity for entry in checked(*arguments, **settings).entries if not entry.passed}


@pytest.mark.parametrize("name", ["darts", "snas"])
def test_a_gradient_of_the_wrong_scale_is_found(name, monkeypatch):
    kind = soft.Softmax if name == "darts" else soft.Gumbel
    right = kind.thetas

    def wrong(self, alphas, level):
        return {
            key: theta.detach() + 1.01 * (theta - theta.detach()) for key, theta in right(self, alphas, level).items()
        }

    monkeypatch.setattr(kind, "thetas", wrong)
    assert failed(name) == {"dL/dalpha"}


def test_a_dirichlet_gradient_that_ignores_part_of_the_draw_is_found(monkeypatch):
    def wrong(self, rows):
        c = soft.concentration(rows)
        drawn = torch.distributions.Dirichlet(c.detach()).sample()
        centre = c / c.sum(-1, keepdim=True)
        return drawn + centre - centre.detach()  # the gradient of the mean alone

    monkeypatch.setattr(soft.DirichletSample, "drawn", wrong)
    assert "dE[expansion]/dalpha" in failed("drnas", samples=3000)


def test_a_score_function_of_the_wrong_sign_is_found(monkeypatch):
    right = paths.Sampled.__call__

    def wrong(self, alphas, level):
        found = right(self, alphas, level)
        return {
            name: weights if weights.selected is None
            else MixtureWeights(2.0 * weights.values.detach() - weights.values, weights.selected)
            for name, weights in found.items()
        }  # fmt: skip

    monkeypatch.setattr(paths.Sampled, "__call__", wrong)
    assert failed("dsnas") == {"R grad log p, one path", "E[R grad log p]"}


def test_a_straight_through_gradient_without_its_temperature_is_found(monkeypatch):
    def wrong(self, rows):
        noisy = torch.log_softmax(rows, -1) + soft.gumbel_like(rows)
        return torch.softmax(noisy, -1)

    monkeypatch.setattr(paths.HardGumbel, "drawn", wrong)
    assert failed("gdas") == {"straight-through"}


def test_a_pair_of_paths_that_is_not_renormalised_is_found(monkeypatch):
    right = paths.TwoPath.__call__

    def wrong(self, alphas, level):
        found = right(self, alphas, level)
        for name, weights in found.items():
            if weights.selected is not None and len(weights.selected) == 2:
                chances = torch.softmax(alphas[name], -1)  # over all alternatives
                found[name] = MixtureWeights(weights.values.detach() + chances - chances.detach(), weights.selected)
        return found

    monkeypatch.setattr(paths.TwoPath, "__call__", wrong)
    assert failed("proxyless") == {"pair of gates"}


def test_a_proximal_gradient_at_another_point_is_found(monkeypatch):
    right = paths.Proximal.__call__

    def wrong(self, alphas, level):
        return {
            name: weights if weights.values is None else MixtureWeights(weights.values * alphas[name], weights.selected)
            for name, weights in right(self, alphas, level).items()
        }

    monkeypatch.setattr(paths.Proximal, "__call__", wrong)
    assert failed("nasp") == {"at the one-hot point"}


@pytest.mark.parametrize("broken", ["weight_decay", "momentum", "silently first order"])
def test_a_wrong_second_order_step_is_found(broken, monkeypatch):
    right = steps.Unrolled.__call__

    def wrong(self, loop, batches):
        if broken == "silently first order":
            outcome = right(self, loop, batches)
            loop.backward(self.upper, batches["valid"], ("alphas",))
            return outcome
        if broken == "weight_decay":
            settings = loop.groups["weights"].running.param_groups[0]
            kept, settings["weight_decay"] = settings["weight_decay"], 0.0
            outcome = right(self, loop, batches)
            settings["weight_decay"] = kept
            return outcome
        return right(replace(self, **{broken: 0.0}), loop, batches)

    monkeypatch.setattr(steps.Unrolled, "__call__", wrong)
    assert "formula" in failed("darts-2nd", architecture_rate=1e-3, weight_decay=0.1)


def test_a_controller_that_is_punished_is_found(monkeypatch):
    real = controller.Controller.forward

    def forward(self, generator=None):
        answers, log, entropy = real(self, generator)
        return answers, -log, entropy

    monkeypatch.setattr(controller.Controller, "forward", forward)
    assert failed("enas", samples=1000) == {"0.99 dE[reward]/dbias"}


# What is refused, and what is compared


def test_black_box_strategies_are_refused():
    with pytest.raises(RequestError, match="black-box search: it has no supernet"):
        checked("evolution")


def test_unknown_strategies_are_refused_with_a_near_name():
    with pytest.raises(RequestError, match="did you mean 'drnas'"):
        checked("drnass")


def test_a_supernet_without_a_finite_loss_is_refused():
    with pytest.raises(RequestError, match="no finite loss"):
        checked("darts", "activation")


def test_too_few_samples_are_refused():
    with pytest.raises(RequestError, match="samples must be at least 2"):
        checked("darts", samples=1)


def test_a_value_that_is_no_number_agrees_with_nothing():
    assert not Entry("", "", "", float("nan"), 0.0, 1.0).passed
    assert not Entry("", "", "", 0.0, float("nan"), 1.0).passed


def test_a_mean_is_allowed_four_standard_errors():
    found = mean("", "", "", [1.0, 3.0], 0.0, rounding=0.0)
    assert found.estimator == 2.0
    assert found.error == pytest.approx(1.0)  # standard deviation sqrt(2) over sqrt(2)
    assert found.tolerance == pytest.approx(4.0)


def test_the_bench_is_as_small_as_the_space_allows():
    recipe = recipe_of(STRATEGIES.get("drnas-progressive"), "darts")
    found = bench(eclose.space("darts"), recipe)
    assert (found.recipe.channels, found.recipe.cells) == (12, 3)  # two channels of six each; both kinds of cell
    assert {parameter.dtype for parameter in found.net.parameters()} == {torch.float64}
    assert family_of(recipe).kind.startswith("pathwise, of an expectation")
