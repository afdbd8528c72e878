"""DARTS cells: parameters of published genotypes, the supernet's weights, genotypes both ways."""

from __future__ import annotations

import pytest

import eclose
from eclose.algebra.errors import EcloseError
from eclose.spaces.genotypes import GENOTYPES, genotype_term, read_genotype, term_genotype

PUBLISHED = {
    "DARTS_V1": (3_169_414, 4_510_432),
    "DARTS_V2": (3_349_342, 4_718_752),
    "PC_DARTS_cifar": (3_634_678, 5_270_560),
    "PC_DARTS_image": (3_721_510, 5_342_464),
    "DrNAS_cifar10": (4_099_294, 5_738_464),
    "DrNAS_imagenet": (4_048_750, 5_726_368),
}


def parameters(name: str, **options) -> int:
    space = eclose.space("darts")
    return eclose.cost(genotype_term(GENOTYPES[name]), space=space, **options).parameters


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_of_published_genotypes(name):
    cifar, imagenet = PUBLISHED[name]
    assert parameters(name, size="evaluation", auxiliary=False) == cifar
    assert parameters(name, size="imagenet", auxiliary=False, input=(3, 224, 224), classes=1_000) == imagenet


def test_a_published_genotype_built_has_as_many():
    term = genotype_term(GENOTYPES["DARTS_V2"])
    net = eclose.build(term, space="darts", size="evaluation", auxiliary=False)
    assert sum(parameter.numel() for parameter in net.parameters()) == 3_349_342


def test_the_supernet_has_the_published_number_of_weights():
    space = eclose.space("darts-with-none")
    net = eclose.build(space.supernet(), input=(3, 32, 32), classes=10)
    assert sum(weight.numel() for weight in eclose.weights(net).values()) == 1_930_618
    alphas = eclose.architecture(net, kind="alpha")
    assert len(alphas) == 2 * 14
    assert {alpha.numel() for alpha in alphas.values()} == {8}


def test_genotypes_go_both_ways():
    space = eclose.space("darts")
    for genotype in GENOTYPES.values():
        term = genotype_term(genotype)
        assert term in space or any("none" in str(pair) for pair in genotype.normal)
        assert genotype_term(term_genotype(term)) is term
        assert genotype_term(read_genotype(str(genotype))) is term
    for seed in range(30):
        term = space.sample(seed)
        assert genotype_term(str(term_genotype(term))) is term


def test_a_genotype_with_a_typo_says_which():
    text = str(GENOTYPES["DARTS_V1"]).replace("sep_conv_3x3", "sep_conv_3x4", 1)
    with pytest.raises(EcloseError, match="did you mean 'sep_conv_3x3'"):
        genotype_term(text)


def test_every_space_gives_networks_that_can_be_built_and_fed():
    import torch

    from eclose.spaces import SPACES

    for entry in SPACES:
        space = eclose.space(entry.name)
        assert entry.description
        for seed in (0, 1):
            net = eclose.build(space.sample(seed), space=space).eval()
            if isinstance(space.input, tuple):
                x = torch.randn(2, *space.input)
            else:
                x = torch.randint(0, space.input.vocab, (2, space.input.length))
            with torch.no_grad():
                output = net(x)
            assert output.shape[0] == 2, entry.name
            assert tuple(output.shape[1:]) == net.program.output_shape
