"""Mixtures: what weights mean, what is evaluated, who owns what - against explicit sums and derived networks."""

from __future__ import annotations

import copy
from random import Random

import pytest
import torch
from torch.nn import functional

import eclose
from eclose.algebra.errors import RequestError, ShapeError, TermError
from eclose.algebra.paths import below, label
from eclose.algebra.reading import parse
from eclose.algebra.registry import default_registry
from eclose.algebra.shapes import Classes, Tokens
from eclose.algebra.terms import Term
from eclose.meanings.program import compile_term
from eclose.meanings.torch.build import build, build_net
from eclose.meanings.torch.net import Net
from eclose.operations.mixture import Mixture, MixtureWeights
from support.random_terms import covering_cases, random_cases
from support.typed_layers import registry_with_types

REGISTRY = default_registry()
SHAPE = (4, 7, 9)
X = torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
ALTERNATIVES = ("conv", "sep_conv_3x3", "max_pool_3x3", "id", "none")
# Functions that blow rounding errors up, and what is random in evaluation
WILD = frozenset({"exp", "sinh", "cosh", "cubic", "square", "atanh", "log", "divide", "square_root", "sinc", "noise"})


def net_of(text: str, shape=SHAPE, **options) -> Net:
    torch.manual_seed(1)
    net = build(parse(text, options.get("registry")), input=shape, **options).double()
    net.train()(torch.randn(5, *shape, dtype=torch.float64))  # running statistics of their own
    return net.eval()


def part_of(net: Net, prefix: str, text: str, **options) -> Net:
    """Return a network of its own with the weights that a net has under a prefix."""
    part = build(parse(text, options.get("registry")), input=SHAPE, **options).double().eval()
    state = net.state_dict()
    part.load_state_dict({key: state[key.replace("layers.", f"layers.{prefix}/", 1)] for key in part.state_dict()})
    return part


# One choice against the explicit sum


@pytest.mark.parametrize("stride", [1, 2])
def test_soft_weights_are_the_weighted_sum_of_separate_networks(stride):
    given = {"context": {"stride": stride}}
    net = net_of(f'choice({", ".join(ALTERNATIVES)}, name="a")', **given)
    parts = [part_of(net, label(parse(text).name, index), text, **given) for index, text in enumerate(ALTERNATIVES)]
    weights = torch.tensor([0.3, 0.1, 0.25, 0.2, 0.15], dtype=torch.float64, requires_grad=True)
    output = net(X, weights={"a": weights})
    again = weights.detach().clone().requires_grad_()
    wanted = sum(weight * part(X) for weight, part in zip(again, parts, strict=True))
    torch.testing.assert_close(output, wanted, rtol=1e-10, atol=1e-10)
    direction = torch.randn_like(output)
    (output * direction).sum().backward()
    (wanted * direction).sum().backward()
    torch.testing.assert_close(weights.grad, again.grad, rtol=1e-10, atol=1e-10)
    assert weights.grad[-1] == 0  # nothing comes from `none`
    softmax = torch.softmax(net.alphas["a"], -1)
    torch.testing.assert_close(net(X), net(X, weights={"a": softmax}), rtol=0, atol=0)


def test_gradients_by_weights_are_finite_differences():
    net = net_of('Sequential(choice(tanh, id, conv, name="a"), choice(sigmoid, sep_conv_3x3, name="b"))')
    a = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([0.6, 0.4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: net(X, weights={"a": a, "b": b}).square().mean(), (a, b))


def calls_of(net: Net) -> list[str]:
    calls: list[str] = []
    for name, layer in net.layers.items():
        layer.register_forward_hook(lambda *_, name=name: calls.append(name))
    return calls


@pytest.mark.parametrize("chosen", range(len(ALTERNATIVES)))
def test_hard_weights_evaluate_only_what_they_select_and_give_it_exactly(chosen):
    net = net_of(f'choice({", ".join(ALTERNATIVES)}, name="a")')
    text = ALTERNATIVES[chosen]
    wanted = part_of(net, label(parse(text).name, chosen), text)(X)
    calls = calls_of(net)
    weights = functional.one_hot(torch.tensor(chosen), len(ALTERNATIVES)).double()
    found = net(X, weights={"a": MixtureWeights(weights, (chosen,))})
    assert torch.equal(found, wanted)
    mine = label(parse(text).name, chosen)
    with_weights = [name for name in calls if any(True for _ in net.layers[name].parameters())]
    assert all(name.startswith(mine) for name in with_weights)
    parameters = {key.split(".")[1] for key in net.state_dict() if key.startswith(f"layers.{mine}/")}
    assert sorted(name for name in calls if name in parameters) == sorted(parameters)  # each once
    calls.clear()
    soft = net(X, weights={"a": weights})
    torch.testing.assert_close(soft, wanted, rtol=1e-12, atol=1e-12)
    assert len([name for name in calls if any(True for _ in net.layers[name].parameters())]) > len(with_weights)


def test_some_of_the_alternatives_may_be_selected():
    net = net_of('choice(conv, tanh, id, name="a")')
    calls = calls_of(net)
    weights = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    found = net(X, weights={"a": MixtureWeights(weights, (1, 2))})
    torch.testing.assert_close(found, 0.2 * X.tanh() + 0.3 * X)
    assert not any(name.startswith("conv") for name in calls)


def test_a_choice_inside_an_alternative_that_is_not_selected_is_not_evaluated():
    net = net_of('choice(id, Sequential(conv, choice(conv, tanh, name="in")), name="out")')
    calls = calls_of(net)
    one = torch.tensor([1.0, 0.0], dtype=torch.float64)
    inner = torch.tensor([1.0, 0.0], dtype=torch.float64)
    hard = {"out": MixtureWeights(one, (0,)), "in": MixtureWeights(inner, (0,))}
    assert torch.equal(net(X, weights=hard), X)
    assert not any("conv" in name for name in calls)


# Names


def test_one_name_is_one_alpha_and_no_name_is_one_for_each_occurrence():
    block = 'choice(conv, id, name="n")'
    assert [tuple(a.shape) for a in net_of(f"Sequential({block}, {block})").alphas.values()] == [(2,)]
    assert len(net_of("Sequential(choice(conv, id), choice(conv, id))").alphas) == 2
    assert len(net_of("Repeat(choice(conv, id), n=3)").alphas) == 1  # one place in the term
    net = net_of(f"Sequential({block}, {block}, choice(conv, id))")
    assert len(net.alphas) == 2 and "n" in net.alphas
    weights = {name: torch.tensor([0.0, 1.0], dtype=torch.float64) for name in net.alphas}
    torch.testing.assert_close(net(X, weights=weights), X)
    net(X).sum().backward()
    assert all(alpha.grad is not None for alpha in net.alphas.values())
    with pytest.raises(ShapeError, match="one name is one decision"):
        net_of('Sequential(choice(conv, id, name="n"), choice(conv, id, tanh, name="n"))')
    with pytest.raises(ShapeError, match="one name is one decision"):
        net_of('Sequential(choice(conv, id, name="n"), pick(conv, id, k=1, logits=true, name="n"))')


def test_ragged_choices_have_alphas_of_their_own_lengths():
    net = net_of('Sequential(choice(conv, name="a"), choice(conv, id, name="b"), choice(id, tanh, relu, name="c"))')
    assert {name: len(alpha) for name, alpha in net.alphas.items()} == {"a": 1, "b": 2, "c": 3}
    assert net(X).shape == X.shape


def test_names_that_a_module_uses_itself_work():
    names = ("forward", "keys", "training", "values", "weight", "a/b")
    text = ", ".join(f'choice(tanh, id, name="{name}")' for name in names)
    net = net_of(f"Sequential({text})")
    assert set(net.alphas) == set(names)
    other = net_of(f"Sequential({text})")
    with torch.no_grad():
        other.alphas["forward"].fill_(3.0)
    other.load_state_dict(net.state_dict())
    assert all(torch.equal(net.alphas[name], other.alphas[name]) for name in names)


# pick


def test_a_pick_without_logits_is_the_sum_of_all():
    net = net_of("pick(tanh, id, sigmoid, k=2)")
    assert not net.alphas and not net.program.choices
    torch.testing.assert_close(net(X), X.tanh() + X + X.sigmoid())


def test_a_pick_with_logits_is_weighted_and_says_how_many_are_kept():
    net = net_of('pick(tanh, id, sigmoid, k=2, logits=true, name="p")')
    site = net.program.choices["p"]
    assert (site.kind, site.keep, site.alternatives, site.labels) == ("pick", 2, 3, ("tanh", "id", "sigmoid"))
    weights = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    found = net(X, weights={"p": MixtureWeights(weights, (0, 2))})
    torch.testing.assert_close(found, X.tanh() + X.sigmoid())
    with pytest.raises(ShapeError, match="pick keeps k=3 of its children and has 2"):
        net_of("pick(tanh, id, k=3)")


@pytest.mark.parametrize(
    "text", ['choice(none, none, name="a")', 'choice(none, conv, name="a")', "pick(none, id, k=1)"]
)
def test_zeros_among_the_alternatives(text):
    net = net_of(f"Sequential(tanh, {text})")
    zeros = {name: torch.tensor([1.0, 0.0], dtype=torch.float64) for name in net.alphas}
    found = net(X, weights=zeros or None)
    wanted = X.tanh() if text.startswith("pick") else torch.zeros_like(X)
    torch.testing.assert_close(found, wanted)


# Values of several types


def test_a_choice_of_several_types_is_a_bundle_that_an_hblock_combines():
    registry = registry_with_types()
    edge = 'on(choice(conv, gate, window, point, name="{}"), src=0)'
    text = f'hblock(node({edge.format("a")}), choice(tanh, gate, window, name="b"))'
    net = net_of(text, registry=registry)
    a = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    b = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)

    def attention(x):
        return x.mean((2, 3), keepdim=True).sigmoid()

    def kernel(x, codes, size):
        taps = functional.conv2d(x, net.state_dict()[f"layers.{codes}/codes.weight"])
        return torch.einsum("nchw,nthw->nct", x, taps).reshape(*x.shape[:2], size, size)

    def applied(x, kernels):
        padded = functional.pad(x, (1, 1, 1, 1)).unfold(2, 3, 1).unfold(3, 3, 1)
        return torch.einsum("nchwij,ncij->nchw", padded, kernels)

    names = {key.split(".")[1].removesuffix("/codes") for key in net.state_dict() if "codes" in key}
    inside = {name.rpartition("/")[2]: name for name in names if "node_0" in name}
    outside = next(name for name in names if "choice_1" in name)
    conv = part_of(net, next(iter(inside.values())).rpartition("/")[0] + "/conv_0", "conv")
    base = a[0] * conv(X)
    large = a[2] * kernel(X, inside["window_2"], 3)
    small = functional.pad(a[3] * kernel(X, inside["point_3"], 1), (1, 1, 1, 1))
    surrogate = base + base * a[1] * attention(X) + applied(base, large + small)
    base = b[0] * surrogate.tanh()
    wanted = base + base * b[1] * attention(surrogate) + applied(base, b[2] * kernel(surrogate, outside, 3))
    torch.testing.assert_close(net(X, weights={"a": a, "b": b}), wanted, rtol=1e-10, atol=1e-10)
    one = torch.ones(1, dtype=torch.float64)
    first = {"a": MixtureWeights(torch.cat([one, a[1:]]), (0,))}
    gated = {**first, "b": MixtureWeights(torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64), (1,))}
    features = conv(X)
    wanted = features + features * attention(features)  # an empty feature term of tier 2 is the identity
    torch.testing.assert_close(net(X, weights=gated), wanted, rtol=1e-10, atol=1e-10)
    with pytest.raises(RequestError, match="lead nowhere"):
        net(X, weights={"a": MixtureWeights(a, (1,)), "b": b})


def test_bundles_and_types_are_accepted_only_where_declared():
    registry = registry_with_types()
    mixed = 'choice(conv, gate, name="a")'
    for text in (f"Sequential({mixed}, conv)", f"Residual(conv, {mixed}, conv)", f"Parallel({mixed}, conv)"):
        with pytest.raises(TermError, match="gives attention where"):
            parse(text, registry)
    assert registry.types(parse(mixed, registry)) == {"feature", "attention"}
    assert parse(f"hblock(node(on({mixed}, src=0)), tanh)", registry)
    with pytest.raises(ShapeError, match="the network ends in a mixture of attention and feature"):
        build(parse(mixed, registry), input=SHAPE, registry=registry)
    with pytest.raises(ShapeError, match="hblock needs at least one feature operation"):
        build(parse("hblock(node(on(gate, src=0)), tanh)", registry), input=SHAPE, registry=registry)


# Copies and groups


def test_a_deepcopy_shares_nothing():
    net = net_of('Sequential(choice(conv, id, name="a"), choice(sep_conv_3x3, none))')
    other = copy.deepcopy(net)
    before = other(X)
    addresses = {t.data_ptr() for t in (*net.parameters(), *net.buffers())}
    assert not addresses & {t.data_ptr() for t in (*other.parameters(), *other.buffers())}
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1.0)
    assert torch.equal(other(X), before) and not torch.equal(net(X), before)
    assert all(not any(True for _ in m.parameters()) for m in net.modules() if isinstance(m, Mixture))
    assert not any(
        isinstance(value, torch.nn.Module)
        for m in net.modules()
        if isinstance(m, Mixture)
        for value in vars(m).values()
    )


class Learned(torch.nn.Module):
    """A layer that learns what it computes."""

    operation_parameters = ("shape",)

    def __init__(self):
        super().__init__()
        self.shape, self.weight = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))


def test_weights_and_architecture_are_disjoint_and_cover():
    net = net_of('Sequential(choice(conv, id, name="a"), sep_conv_3x3, pick(id, tanh, k=1, logits=true))')
    model = torch.nn.ModuleDict({"net": net, "operation": Learned()})
    alphas, operations = (eclose.architecture(model, kind=kind) for kind in ("alpha", "operation"))
    weights = eclose.weights(model)
    assert len(alphas) == 2 and list(operations) == ["operation.shape"]
    groups = [set(alphas), set(operations), set(weights)]
    assert sum(map(len, groups)) == len(set().union(*groups)) == len(dict(model.named_parameters()))
    assert set(eclose.architecture(model)) == groups[0] | groups[1]
    assert all(dict(model.named_parameters())[name] is parameter for name, parameter in weights.items())
    with pytest.raises(RequestError, match="did you mean 'alpha'"):
        eclose.architecture(model, kind="alphas")


# Wrong weights


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, r"missing for \['a', 'b'\]"),
        ({"a": torch.ones(2)}, r"missing for \['b'\]"),
        ({"a": torch.ones(2), "b": torch.ones(3), "c": torch.ones(1)}, r"no choices \['c'\]"),
        ({"a": torch.ones(3), "b": torch.ones(3)}, r"choice 'a' needs weights of shape \(2,\), not \(3,\)"),
        ({"a": torch.ones(1, 2), "b": torch.ones(3)}, r"choice 'a' needs weights of shape \(2,\), not \(1, 2\)"),
        ({"a": [0.5, 0.5], "b": torch.ones(3)}, "choice 'a' needs its weights as a tensor, not as list"),
        ({"a": torch.tensor([0.5, float("nan")]), "b": torch.ones(3)}, "choice 'a' has weights that are no numbers"),
        ({"a": torch.tensor([0.5, float("inf")]), "b": torch.ones(3)}, "choice 'a' has weights that are no numbers"),
        ({"a": MixtureWeights(torch.ones(2), (2,)), "b": torch.ones(3)}, "choice 'a' has alternatives 0 to 1"),
        ({"a": MixtureWeights(torch.ones(2), (-1,)), "b": torch.ones(3)}, "choice 'a' has alternatives 0 to 1"),
        ({"a": MixtureWeights(torch.ones(2), ()), "b": torch.ones(3)}, "'a' needs at least one selected alternative"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    net = net_of('Sequential(choice(conv, id, name="a"), choice(conv, id, tanh, name="b"))')
    with pytest.raises(RequestError, match=message):
        net(X, weights=weights)


def test_weights_for_a_network_without_choices_are_refused():
    with pytest.raises(RequestError, match=r"no choices \['a'\]"):
        net_of("conv")(X, weights={"a": torch.ones(2)})


# Supernets against derived networks


def derived(term: Term, chosen: dict[str, tuple[int, ...]], position: str = "") -> Term:
    """Return the term in which every decision has been taken."""
    children = [derived(child, chosen, below(position, label(child.name, i))) for i, child in enumerate(term.children)]
    name = term.get("name") or position or term.name
    if term.name == "choice":
        return children[chosen[name][0]]
    if term.name == "pick" and term.get("logits"):
        kept = tuple(children[index] for index in chosen[name])
        return REGISTRY.normal("pick", kept, {"k": len(kept)})
    return REGISTRY.normal(term.name, tuple(children), dict(term.attributes))


def check_derived(term: Term, input, output, seed: int) -> bool:
    """Compare the supernet of one-hot weights with the derived network; return whether they could be compared."""
    program = compile_term(term, input, output, registry=REGISTRY, policy="adapt")
    if any("adapter" in step.name for step in program.steps) or not program.choices:
        return False  # what a mixture was adapted to depends on all its alternatives
    rng = Random(seed)
    chosen = {
        name: tuple(sorted(rng.sample(range(site.alternatives), site.keep))) for name, site in program.choices.items()
    }
    torch.manual_seed(seed)
    tokens = isinstance(input, Tokens)
    shape = (2, *program.input_shape)
    x = torch.randint(0, input.vocab, shape) if tokens else torch.randn(shape, dtype=torch.float64)
    supernet = build_net(program).double().train()
    supernet(x)
    supernet.eval()
    net = build_net(compile_term(derived(term, chosen), input, output, registry=REGISTRY)).double().eval()
    wanted = []
    for guard in program.guards:
        outer = guard.parent < 0 or wanted[guard.parent]
        wanted.append(outer and guard.alternative in chosen[guard.choice])
    mine, modules = [], dict(supernet.layers.items())
    for step in program.steps:
        layer = modules.get(step.name)
        if layer is not None and (step.guard < 0 or wanted[step.guard]):
            mine += layer.state_dict().values()
    state = net.state_dict()
    assert [tuple(value.shape) for value in mine] == [tuple(value.shape) for value in state.values()]
    net.load_state_dict(dict(zip(state, mine, strict=True)))
    weights = {name: torch.zeros(site.alternatives).double() for name, site in program.choices.items()}
    for name, indices in chosen.items():
        weights[name][list(indices)] = 1.0
    hard = {name: MixtureWeights(values, chosen[name]) for name, values in weights.items()}
    with torch.no_grad():
        expected = net(x)
        torch.testing.assert_close(supernet(x, weights=hard), expected, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(supernet(x, weights=weights), expected, rtol=1e-9, atol=1e-9)
    return True


def test_random_supernets_of_one_hot_weights_are_the_derived_networks():
    compared = sum(
        check_derived(case.term, case.input, case.output, index)
        for index, case in enumerate(random_cases(17, 150, exclude=WILD))
    )
    assert compared >= 20


@pytest.mark.slow
def test_many_random_supernets_of_one_hot_weights_are_the_derived_networks():
    cases = [*random_cases(18, 600, exclude=WILD, largest=100)]
    cases += [case for seed in range(5) for _, case in covering_cases(seed, exclude=WILD)]
    assert sum(check_derived(case.term, case.input, case.output, i) for i, case in enumerate(cases)) >= 80


@pytest.mark.parametrize("name", ["nasbench201", "nasbench1shot1-1", pytest.param("darts", marks=pytest.mark.slow)])
def test_supernets_of_spaces_of_one_hot_weights_are_the_derived_networks(name):
    space = eclose.space(name)
    options = {key: 4 for key in ("channels",) if key in space.options}
    term = space.supernet(input=(2, 8, 8), output=Classes(3), **options)
    assert check_derived(term, (2, 8, 8), Classes(3), 3)
