"""Diagnoses of a supernet against the same numbers computed another way: plain autograd, networks built by hand."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
import torch
from torch.nn import functional

import eclose as ec
from eclose._api.gradient_runs import opened
from eclose.diagnose.landscape import directions
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.decisions import as_scores, decide
from eclose.strategies.gradient.diagnoses.curvature import curvature, probe_batch
from eclose.strategies.gradient.diagnoses.discretisation import discretisation, evaluated
from eclose.strategies.gradient.diagnoses.ranking import drawn, shared_scores
from eclose.strategies.gradient.diagnoses.strengths import choice_strength, with_fixed
from eclose.strategies.gradient.diagnoses.surroundings import surroundings

CONV1, CONV3 = 2, 3  # alternatives of the choices of NAS-Bench-201


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "cells"
    ec.search(
        "nasbench201", "digits:subset=200", "darts", out=out, epochs=2, channels=4, cells=1, batch_size=40, retrain=0,
        architecture_rate=0.05, device="cpu",
    )  # fmt: skip
    return out


@pytest.fixture
def context(path):
    return opened(path, device="cpu").context()


@pytest.fixture(scope="module")
def picking(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "picks"
    ec.search(
        "s2", "digits:subset=60", "darts", out=out, epochs=1, channels=4, cells=3, batch_size=15, retrain=0,
        device="cpu",
    )  # fmt: skip
    return opened(out, device="cpu").context()


def loss_at(context, batch, alphas=None, thetas=None):
    """The loss on a batch, from torch's own parts."""
    thetas = thetas or {name: torch.softmax(alpha, 0) for name, alpha in alphas.items()}
    context.supernet.net.train()
    return functional.cross_entropy(context.supernet.net(batch.inputs, weights=thetas), batch.targets)


def split(context, vector):
    parts = torch.split(vector, [alpha.numel() for alpha in context.supernet.alphas.values()])
    return dict(zip(context.supernet.alphas, parts, strict=True))


def hessian_of(function, point):
    return torch.autograd.functional.hessian(function, point).double()


# Curvature


def test_curvature_is_that_of_the_whole_hessian_and_the_weight_decay(context):
    batch = context.feeds["valid"].batch(0, 0)
    point = torch.cat([alpha.detach() for alpha in context.supernet.alphas.values()])
    matrix = hessian_of(lambda flat: loss_at(context, batch, split(context, flat)), point)
    values = torch.linalg.eigvalsh((matrix + matrix.T) / 2) + context.recipe.architecture_decay
    assert context.recipe.architecture_decay > 0
    for method in ("dense", "lanczos"):
        found = curvature(context, method=method)
        assert found["largest"] == pytest.approx(float(values[-1]), rel=2e-3)
        assert found["norm"] == pytest.approx(float(values.abs().max()), rel=2e-3)
        assert found["trace"] == pytest.approx(float(values.sum()), rel=2e-3)
        assert found["method"] == method


def test_a_probe_batch_of_any_size_begins_alike(context):
    feed = context.feeds["valid"]
    assert len(probe_batch(context).targets) == 40
    long = probe_batch(context, 70)
    assert torch.equal(long.inputs, torch.cat([feed.batch(0, 0).inputs, feed.batch(0, 1).inputs])[:70])
    assert len(probe_batch(context, 7).targets) == 7
    assert len(probe_batch(context, 10_000).targets) == sum(len(feed.batch(0, i).targets) for i in range(feed.steps))


def test_measuring_changes_nothing(context):
    before = {key: value.clone() for key, value in context.supernet.net.state_dict().items()}
    curvature(context)
    discretisation(context, batches=1)
    choice_strength(context, "cell/1_0", batches=1)
    surroundings(context, points=1, batches=1)
    after = context.supernet.net.state_dict()
    assert all(torch.equal(value, after[key]) for key, value in before.items())


# The gap


def by_hand(context, operations):
    """The discrete network of a NAS-Bench-201 cell of convolutions, with the supernet's weights copied into it."""
    term = "Cell(" + ", ".join("conv1x1" if k == CONV1 else "conv(kernel=3)" for k in operations) + ")"
    net = ec.build(term, space="nasbench201", task=context.task, channels=4, cells=1, affine=False, bias=True)
    source = context.supernet.net.state_dict()
    target = net.state_dict()
    for key in target:
        name = re.sub(
            r"(Given_0/)?Cell_0/conv_(\d)/",
            lambda match: f"Given_0/Cell_0/choice_{match[2]}/conv_{operations[int(match[2])]}/",
            key,
        )
        assert source[name].shape == target[key].shape, (key, name)
        target[key] = source[name].clone()
    net.load_state_dict(target)
    return net


def scored_by_hand(context, net):
    """Loss and score in evaluation mode after batch-norm statistics were measured as plain means over train batches."""
    norms = [module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    net.train()
    sums = {}
    feed, held = context.feeds["train"], context.feeds["held"].batch(0, 0)
    for norm in norms:
        norm.momentum = 1.0  # the running statistics are those of the last batch
    steps, seen = 0, 0
    while seen < len(held.targets) and steps < feed.steps:
        batch = feed.batch(0, steps)
        with torch.no_grad():
            net(batch.inputs)
        for index, norm in enumerate(norms):
            mean, var = sums.get(index, (0.0, 0.0))
            sums[index] = (mean + norm.running_mean.double(), var + norm.running_var.double())
        steps, seen = steps + 1, seen + len(batch.targets)
    for index, norm in enumerate(norms):
        norm.running_mean.copy_(sums[index][0] / steps)
        norm.running_var.copy_(sums[index][1] / steps)
    net.eval()
    with torch.no_grad():
        outputs = net(held.inputs)
    return {
        "loss": float(functional.cross_entropy(outputs, held.targets)),
        "score": 100.0 * float((outputs.argmax(1) == held.targets).double().mean()),
    }


def test_a_discrete_network_scores_like_one_built_by_hand_with_copied_weights(context):
    operations = (CONV3, CONV1, CONV3, CONV3, CONV1, CONV1)
    with torch.no_grad():
        for operation, alpha in zip(operations, context.supernet.alphas.values(), strict=True):
            alpha[operation] += 10.0
    found = discretisation(context)
    expected = scored_by_hand(context, by_hand(context, operations))
    assert found["discrete"] == pytest.approx(expected["score"])
    assert found["derived"] is None  # no edge is left out in this space
    assert found["gap"] == pytest.approx(found["supernet"] - expected["score"])
    hard = context.supernet.hard({name: (k,) for name, k in zip(context.supernet.choices, operations, strict=True)})
    assert evaluated(context, hard, None)["loss"] == pytest.approx(expected["loss"], rel=1e-4)


def test_the_mixture_is_scored_with_statistics_of_its_own(context):
    net, thetas = context.supernet.net, context.thetas()

    class Mixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net(x, weights=thetas)

    found = discretisation(context)
    expected = scored_by_hand(context, Mixed())
    assert found["supernet"] == pytest.approx(expected["score"])


def test_the_rise_of_the_loss_and_its_prediction(context):
    batch = context.feeds["valid"].batch(0, 0)
    thetas = context.thetas()
    corner = {name: functional.one_hot(theta.argmax(), len(theta)).float() for name, theta in thetas.items()}
    start = torch.cat(list(thetas.values()))
    step = (torch.cat(list(corner.values())) - start).double()
    matrix = hessian_of(lambda flat: loss_at(context, batch, thetas=split(context, flat)), start)
    found = discretisation(context, batches=1)
    assert found["sharpness"] == pytest.approx(float(0.5 * step @ matrix @ step), rel=1e-3)
    with torch.no_grad():
        rise = loss_at(context, batch, thetas=corner) - loss_at(context, batch, thetas=thetas)
    assert found["loss_gap"] == pytest.approx(float(rise), rel=1e-4, abs=1e-6)


def test_kept_edges_are_scored_apart_from_all_edges(picking):
    """An edge that is left out is one whose operations all have the weight 0."""
    net = picking.supernet
    decisions = decide(net.sites, as_scores(picking.thetas()))
    lost = {
        name
        for pick, site in net.sites.items()
        if site.kind == "pick"
        for index, names in enumerate(site.edges)
        if index not in decisions[pick]
        for name in names
    }
    assert lost
    everywhere, kept = {}, {}
    for name, theta in picking.thetas().items():
        row = torch.zeros_like(theta)
        row[decisions[name][0]] = 1.0
        everywhere[name] = MixtureWeights(row)
        kept[name] = MixtureWeights(torch.zeros_like(theta) if name in lost else row)
    opened_picks = {
        name: MixtureWeights(None) for name, site in net.sites.items() if site.kind == "pick" and site.present
    }
    present = set(net.net.program.choices)
    found = discretisation(picking)
    for key, weights in (("discrete", everywhere), ("derived", kept)):
        given = {name: value for name, value in {**weights, **opened_picks}.items() if name in present}
        assert found[key] == pytest.approx(evaluated(picking, given, None)["score"]), key


# Strength, ranks, surroundings


def brute_tau(first, second):
    agree = ties_first = ties_second = 0
    pairs = list(combinations(range(len(first)), 2))
    for i, j in pairs:
        a, b = first[i] - first[j], second[i] - second[j]
        agree += (a * b > 0) - (a * b < 0)
        ties_first += a == 0
        ties_second += b == 0
    loose = (len(pairs) - ties_first) * (len(pairs) - ties_second)
    return agree / loose**0.5 if loose else None


def test_strength_is_the_score_after_fixing_an_operation(context):
    name = "cell/3_0"
    kept, found = choice_strength(context, name)
    thetas = context.thetas()
    scores = []
    for index in range(5):
        alone = torch.zeros(5)
        alone[index] = 1.0
        scores.append(context.score({key: MixtureWeights(v) for key, v in {**thetas, name: alone}.items()})["score"])
    assert kept == [0, 1, 2, 3, 4]
    assert found.scores == pytest.approx(scores)
    assert found.weights == pytest.approx(thetas[name].tolist())
    assert found.tau == pytest.approx(brute_tau(found.weights, scores))


def test_strength_looks_at_alternatives_that_take_part_only(context):
    context.rule.allowed["cell/3_0"] = (1, 3)
    kept, found = choice_strength(context, "cell/3_0", batches=1)
    assert kept == [1, 3]
    assert len(found.scores) == 2


def test_an_edge_fixed_to_zero_gives_zeros(context):
    for name in context.supernet.choices:
        weights = with_fixed(context, name, 0)
        assert weights[name].values.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
        assert context.score(weights, 1)["loss"] > 0


def test_architectures_are_drawn_once_each_and_scored_with_shared_weights(context):
    found = drawn(context, 12, seed=3)
    assert len(found) == 12
    assert found == drawn(context, 12, seed=3) != drawn(context, 12, seed=4)
    for term, score in list(shared_scores(context, found))[:4]:
        decisions = found[term]
        assert term == str(context.supernet.term(decisions))
        ones = {
            name: MixtureWeights(functional.one_hot(torch.tensor(k[0]), 5).float()) for name, k in decisions.items()
        }
        assert score == pytest.approx(context.score(ones)["score"])


def test_the_surroundings_in_alpha(context):
    found = surroundings(context, points=3, radius=0.5, seed=7)
    alphas = {name: alpha.detach() for name, alpha in context.supernet.alphas.items()}
    first, second, _ = directions(alphas, 7)
    for row, column in ((1, 1), (0, 2), (2, 1)):
        x, y = found.axis[row], found.axis[column]
        thetas = {name: torch.softmax(a + x * first[name] + y * second[name], 0) for name, a in alphas.items()}
        expected = context.score({name: MixtureWeights(theta) for name, theta in thetas.items()})
        assert found.values["loss"][row][column] == pytest.approx(expected["loss"], rel=1e-5)
        assert found.values["score"][row][column] == pytest.approx(expected["score"])


def test_the_surroundings_in_theta_stay_on_the_simplex(context, monkeypatch):
    seen = []
    mixed = context.rule.mixed

    def watched(thetas):
        seen.append({name: theta.clone() for name, theta in thetas.items()})
        return mixed(thetas)

    monkeypatch.setattr(context.rule, "mixed", watched)
    context.rule.allowed["cell/1_0"] = (1, 2, 3)
    counted = []
    surroundings(context, space="theta", points=3, radius=2.0, batches=1, watch=lambda *c: counted.append(c))
    assert counted == [(n, 9) for n in range(1, 10)]
    middle = context.thetas()
    for index, point in enumerate(seen):
        for name, theta in point.items():
            assert theta.min() >= 0.0 and float(theta.sum()) == pytest.approx(1.0, abs=1e-5), name
            assert index == 4 or not torch.equal(theta, middle[name])
        assert point["cell/1_0"][[0, 4]].tolist() == [0.0, 0.0]


def test_a_landscape_lies_in_alpha_or_theta(context):
    with pytest.raises(ec.RequestError, match="not 'teta'; did you mean 'theta'"):
        surroundings(context, space="teta")
