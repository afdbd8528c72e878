"""Whole steps as CUDA graphs where there is a GPU; a stated reason where there is none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import eclose
from eclose.algebra.errors import RequestError
from eclose.train.protocols import protocol
from eclose.train.training import train_network

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def images(count: int = 200) -> eclose.Task:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 4
    inputs = torch.randint(0, 256, (count, 3, 16, 16), dtype=torch.uint8, generator=generator)
    inputs[:, 0] = (labels * 60).to(torch.uint8).view(-1, 1, 1)
    part = (inputs, labels)
    return eclose.Task(part, part, classes=4, augmentable="image", normalise="train")


def network() -> nn.Module:
    torch.manual_seed(0)
    return eclose.build("Sequential(conv, Residual(conv, id, sep_conv_3x3))", input=(3, 16, 16), classes=4)


@pytest.mark.parametrize("device", DEVICES)
def test_a_captured_training_has_the_numbers_of_an_eager_one(device):
    settings = {"epochs": 3, "batch_size": 32, "optimiser": "sgd", "rate": 0.02, "crop": 2, "flip": True, "cutout": 4}
    results, nets = [], []
    for capture in ("auto", "off"):
        net = network()
        results.append(
            train_network(net, images(), protocol("quick", capture=capture, **settings), seed=3, device=device)
        )
        nets.append(net)
    first, second = (result.figures for result in results)
    assert first.keys() == second.keys()
    for key in first:
        assert first[key] == pytest.approx(second[key], rel=1e-3, abs=1e-3), key
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.allclose(one, other, rtol=1e-2, atol=1e-3)
    assert not any("not captured" in note for note in results[0].notes)


def test_where_it_is_not_legal_capture_is_off_with_a_reason():
    with pytest.raises(RequestError, match=r"the device is cpu; only CUDA has graphs"):
        train_network(network(), images(), protocol("quick", epochs=1, capture="on"), device="cpu")
    if "cuda" in DEVICES:
        settings = protocol("quick", epochs=1, accumulate=2)
        notes = train_network(network(), images(), settings, device="cuda").notes
        assert any("accumulated" in note for note in notes)
        settings = protocol("quick", epochs=1, precision="float16")
        notes = train_network(network(), images(), settings, device="cuda").notes
        assert any("float16" in note for note in notes)


@pytest.mark.parametrize("device", DEVICES)
def test_mixed_precision_is_used_where_there_is_any(device):
    trained = train_network(network(), images(), protocol("quick", epochs=2, precision="mixed"), device=device)
    assert trained.score > 40
    assert any("mixed precision is off" in note for note in trained.notes) == (device == "cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_channels_last_gives_the_same_numbers(device):
    figures = [
        train_network(network(), images(), protocol("quick", epochs=2, channels_last=layout), device=device).figures
        for layout in (False, True)
    ]
    assert figures[0]["train_loss"] == pytest.approx(figures[1]["train_loss"], rel=1e-2)


@pytest.mark.parametrize("device", DEVICES)
def test_a_training_resumes_on_its_device(device, tmp_path):
    settings = protocol("quick", epochs=4)
    expected = train_network(network(), images(), settings, device=device, seed=1).figures
    file = tmp_path / "checkpoint.pt"

    def stop(epoch: int, figures: dict) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_network(network(), images(), settings, device=device, seed=1, checkpoint=file, on_epoch=stop)
    again = train_network(network(), images(), settings, device=device, seed=1, checkpoint=file).figures
    assert again["train_loss"] == pytest.approx(expected["train_loss"], rel=0 if device == "cpu" else 1e-3)
