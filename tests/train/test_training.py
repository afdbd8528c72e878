"""Training networks: against plain torch, resumed, with wrong data, and what protocols promise."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch import nn

import eclose
from eclose.algebra.errors import RequestError
from eclose.train.data import Preparation, ResidentFeed
from eclose.train.groups import SGD, Adam, Group
from eclose.train.loop import Loop, TrainingError
from eclose.train.protocols import PROTOCOLS, protocol
from eclose.train.schedules import Constant, Cosine, Position
from eclose.train.steps import Descent, Step, TaskObjective, bilevel, single_level
from eclose.train.training import checkpoint_file, make_loop, measure, train_network

CPU = torch.device("cpu")


def data(count: int = 96, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    inputs = torch.randn(count, 1, 6, 6, generator=generator) + labels.view(-1, 1, 1, 1)
    return inputs, labels


def task(**options) -> eclose.Task:
    return eclose.Task(data(), data(30, 1), data(30, 2), classes=3, **options)


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_the_loop_takes_the_steps_of_plain_torch(optimiser):
    settings = protocol(
        "quick", epochs=3, batch_size=32, optimiser=optimiser, rate=0.01, clip=0.5, weight_decay=0.01,
        schedule="cosine", schedule_unit="epoch", label_smoothing=0.1,
    )  # fmt: skip
    mine, plain = network(), network()
    loop = make_loop(mine, task(), settings, seed=5, device=CPU)
    feed = loop.feeds["train"]
    loop.run()
    kinds = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=0.01),
        "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.01),
    }
    theirs = kinds[optimiser](plain.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(theirs, 3)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(3):
        for step in range(3):
            batch = feed.batch(epoch, step)
            theirs.zero_grad()
            loss(plain(batch.inputs), batch.targets).backward()
            nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
            theirs.step()
        schedule.step()
    for one, other in zip(mine.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)


def test_every_item_is_seen_once_an_epoch_in_an_order_of_its_own():
    inputs = torch.arange(50).float().view(50, 1)
    feed = ResidentFeed(inputs, torch.arange(50), 8, seed=1, prepare=Preparation(CPU))
    orders = [torch.cat([feed.batch(epoch, step).targets for step in range(feed.steps)]) for epoch in range(3)]
    assert all(sorted(order.tolist()) == list(range(50)) for order in orders)
    assert not torch.equal(orders[0], orders[1])
    again = ResidentFeed(inputs, torch.arange(50), 8, seed=1, prepare=Preparation(CPU))
    assert torch.equal(again.batch(2, 3).targets, feed.batch(2, 3).targets)


def test_accumulated_gradients_are_those_of_the_whole_batch():
    results = []
    for pieces in (1, 3):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
        settings = protocol("quick", epochs=2, batch_size=30, optimiser="sgd", accumulate=pieces)
        train_network(net, task(), settings, device="cpu", measure_on=None)
        results.append(net[1].weight.detach().clone())
    assert torch.allclose(*results, rtol=1e-5, atol=1e-6)


def test_a_bilevel_step_moves_each_group_on_its_own_data():
    net = nn.ModuleDict({"lower": nn.Linear(4, 2), "upper": nn.Linear(4, 2)}).double()

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = net

        def forward(self, x):
            return self.parts["lower"](x) * self.parts["upper"](x)

    model = Both()
    x = torch.randn(24, 4, dtype=torch.float64)
    y = torch.arange(24) % 2
    feeds = {
        name: ResidentFeed(x[rows], y[rows], 6, seed=0, prepare=Preparation(CPU), name=name)
        for name, rows in (("train", slice(0, 12)), ("valid", slice(12, 24)))
    }
    objective = TaskObjective(lambda outputs, targets: nn.functional.cross_entropy(outputs, targets))
    groups = [
        Group("weights", list(net["lower"].parameters()), SGD(0.0), Constant(0.1)),
        Group("alphas", list(net["upper"].parameters()), SGD(0.0), Constant(0.5)),
    ]
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    loop = Loop(model, bilevel(objective), groups, feeds, epochs=1)
    upper = nn.functional.cross_entropy(model(feeds["valid"].batch(0, 0).inputs), feeds["valid"].batch(0, 0).targets)
    expected = torch.autograd.grad(upper, list(net["upper"].parameters()))
    loop.take_step(loop.batches())
    for parameter, start, gradient in zip(
        net["upper"].parameters(), (before["upper.weight"], before["upper.bias"]), expected, strict=True
    ):
        assert torch.allclose(parameter, start - 0.5 * gradient)
    assert not torch.equal(net["lower"].weight, before["lower.weight"])
    late = bilevel(objective, start=2)
    assert [part.name for part in late.active(Position(1, 0, 4, 2))] == ["train"]
    assert [part.name for part in late.active(Position(2, 0, 4, 2))] == ["valid", "train"]


@pytest.mark.parametrize("stop", [1, 3, 4])
def test_a_training_that_was_stopped_goes_on_with_the_same_bits(stop, tmp_path):
    space = eclose.space("tiny")
    digits = eclose.task("digits", subset=300)
    term = space.sample(3)
    settings = protocol("quick", epochs=5)

    def build() -> nn.Module:
        torch.manual_seed(1)
        return eclose.build(term, space=space, task=digits)

    whole, parts = build(), build()
    expected = train_network(whole, digits, settings, seed=7, device="cpu", measure_every=True)

    class Killed(Exception):
        pass

    def kill(epoch: int, figures: dict) -> None:
        if epoch == stop:
            raise Killed

    file = tmp_path / "checkpoint.pt"
    with pytest.raises(Killed):
        train_network(parts, digits, settings, seed=7, device="cpu", checkpoint=file, on_epoch=kill, measure_every=True)
    fresh = eclose.build(term, space=space, task=digits)
    resumed = train_network(fresh, digits, settings, seed=7, device="cpu", checkpoint=file, measure_every=True)
    assert resumed.figures == expected.figures
    for one, other in zip(whole.state_dict().values(), fresh.state_dict().values(), strict=True):
        assert torch.equal(one, other)


def test_a_damaged_checkpoint_goes_back_to_the_one_before(tmp_path):
    file = tmp_path / "checkpoint.pt"
    expected = train_network(network(), task(), protocol("quick", epochs=4), device="cpu").figures
    train_network(network(), task(), protocol("quick", epochs=4), device="cpu", checkpoint=file)
    file.write_bytes(file.read_bytes()[:-200])
    kept = checkpoint_file(file)
    again = train_network(network(), task(), protocol("quick", epochs=4), device="cpu", checkpoint=kept)
    assert again.figures == expected
    assert any("damaged" in note for note in kept.notes)


def test_a_loss_that_is_no_number_stops_where_it_happened(tmp_path):
    inputs, labels = data()
    inputs[50] = float("nan")
    bad = object.__new__(eclose.Task)
    bad.__dict__.update(task().__dict__)
    feeds = {"train": ResidentFeed(inputs, labels, 8, seed=0, prepare=Preparation(CPU), shuffle=False)}
    net = network()
    loop = Loop(
        net, single_level(TaskObjective(bad.loss)), [Group("weights", list(net.parameters()), SGD(), Constant(0.1))],
        feeds, epochs=3,
    )  # fmt: skip
    with pytest.raises(TrainingError, match=r"train loss is not finite at step 7 of 12 in epoch 1"):
        loop.run()


def test_a_loss_that_turns_bad_later_keeps_the_last_good_state(tmp_path):
    calls = []

    def loss(outputs, targets):
        calls.append(1)
        return nn.functional.cross_entropy(outputs, targets) * (float("inf") if len(calls) > 7 else 1.0)

    given = task(loss=loss, metric="accuracy")
    file = tmp_path / "checkpoint.pt"
    with pytest.raises(TrainingError, match="last good state is that after epoch 2"):
        train_network(
            network(), given, protocol("quick", epochs=5, batch_size=32), device="cpu", checkpoint=file, measure_on=None
        )
    assert checkpoint_file(file).read()["loop"]["epoch"] == 2


def test_protocols_hold_the_published_settings():
    assert {entry.name for entry in PROTOCOLS} >= {"quick", "nasbench201", "darts-cifar", "darts-imagenet", "s1-s4"}
    darts = protocol("darts-cifar")
    assert (darts.epochs, darts.batch_size, darts.rate, darts.clip) == (600, 96, 0.025, 5.0)
    assert (darts.cutout, darts.drop_path, darts.auxiliary, darts.weight_decay) == (16, 0.2, 0.4, 3e-4)
    large = protocol("darts-imagenet").make_schedule()
    rates = [large(Position(epoch, 0, 250, 10)) for epoch in range(250)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[4] == pytest.approx(0.5)
    assert rates[5] == pytest.approx(0.5)
    assert rates[249] == pytest.approx(0.5 / 245)
    with pytest.raises(RequestError, match="did you mean 'epochs'"):
        protocol("quick", epoch=3)
    with pytest.raises(RequestError, match="did you mean 'nasbench201'"):
        protocol("nasbench-201")
    with pytest.raises(RequestError, match="epochs must be at least 1"):
        protocol("quick", epochs=0)
    with pytest.raises(RequestError, match="whole number"):
        protocol("quick", epochs="many")


def test_drop_path_and_auxiliary_heads_take_part_in_training_only():
    space = eclose.space("darts")
    images = eclose.Task(
        (torch.randint(0, 255, (40, 3, 32, 32), dtype=torch.uint8), torch.arange(40) % 2),
        (torch.randint(0, 255, (8, 3, 32, 32), dtype=torch.uint8), torch.arange(8) % 2),
        classes=2, augmentable="image", normalise=((0.5,) * 3, (0.25,) * 3),
    )  # fmt: skip
    net = eclose.build(space.sample(0), space=space, task=images, size="evaluation", cells=3, channels=4)
    settings = protocol("darts-cifar-autoaugment", epochs=2, batch_size=20)
    trained = train_network(net, images, settings, device="cpu")
    assert net.drop_path_rate == pytest.approx(0.1)
    assert "valid_score" in trained.figures
    first = measure(net, images, "valid", device="cpu")
    assert first == measure(net, images, "valid", device="cpu")


def test_a_last_batch_of_one_item_is_left_out():
    inputs, labels = data(97)
    given = eclose.Task((inputs, labels), data(30, 1), classes=3)
    trained = train_network(network(), given, protocol("quick", epochs=2, batch_size=32), device="cpu")
    assert "valid_score" in trained.figures
    loop = make_loop(network(), given, protocol("quick", epochs=2, batch_size=32), device=CPU)
    assert loop.position.steps == 3


def test_augmentation_is_left_out_with_a_note_where_it_would_change_the_meaning():
    notes = train_network(network(), task(), protocol("quick", epochs=1, flip=True), device="cpu").notes
    assert any("augmentation of quick is left out" in note for note in notes)


def test_a_group_cannot_be_trained_twice():
    net = network()
    group = Group("weights", list(net.parameters()), SGD(), Constant(0.1))
    other = Group("alphas", list(net.parameters())[:1], Adam(), Cosine(0.1))
    feed = ResidentFeed(*data(), 8, seed=0, prepare=Preparation(CPU))
    with pytest.raises(RequestError, match="share a parameter"):
        Loop(net, Step((Descent(TaskObjective(task().loss)),)), [group, other], {"train": feed}, epochs=1)


def test_loaders_are_used_as_they_are():
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(*data()), batch_size=24, shuffle=True, generator=torch.Generator())
    given = eclose.Task(loader, data(30, 1), classes=3)
    results = [train_network(network(), given, protocol("quick", epochs=3), seed=2, device="cpu").figures for _ in "ab"]
    assert results[0] == results[1]
    notes = train_network(network(), given, protocol("quick", epochs=1), device="cpu").notes
    assert any("DataLoader of your own" in note for note in notes)


def test_a_data_set_read_item_by_item_gives_the_numbers_of_resident_data():
    from torch.utils.data import TensorDataset

    resident = train_network(network(), task(), protocol("quick", epochs=2), seed=3, device="cpu").figures
    items = eclose.Task(TensorDataset(*data()), data(30, 1), classes=3)
    assert train_network(network(), items, protocol("quick", epochs=2), seed=3, device="cpu").figures == resident


def test_the_evaluator_is_a_function_of_term_and_seed_and_pickles():
    from eclose.train.evaluator import TrainingEvaluator

    space = eclose.space("tiny")
    evaluate = TrainingEvaluator(space, eclose.task("digits", subset=200), protocol("quick", epochs=1), device="cpu")
    term = space.sample(0)
    first = evaluate(term, 3)
    assert first == evaluate(term, 3) == pickle.loads(pickle.dumps(evaluate))(term, 3)
    assert first["score"] != evaluate(term, 4)["score"] or first == evaluate(term, 4)
    assert evaluate.objectives == {"score": "maximise"}
    assert first["parameters"] == eclose.cost(term, space=space, task="digits").parameters


def test_the_test_part_cannot_be_read_by_an_evaluator():
    given = task()
    with given.searching(), pytest.raises(RequestError, match="cannot be read during a search"):
        train_network(network(), given, protocol("quick", epochs=1), device="cpu", measure_on="test")


def test_an_unknown_device_is_refused_in_words():
    with pytest.raises(RequestError, match="unknown device"):
        train_network(network(), task(), "quick", device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(RequestError, match="no CUDA device"):
            train_network(network(), task(), "quick", device="cuda")


def test_a_dry_run_predicts_what_fits():
    from eclose.train import dry_run as module

    space = eclose.space("tiny")
    digits = eclose.task("digits", subset=200)
    term = space.sample(0)
    net, spent = eclose.build(term, space=space, task=digits), eclose.cost(term, space=space, task=digits)
    found = module.dry_run(net, spent, digits, protocol("quick"), "cpu")
    assert found.fits
    assert found.seconds > 0
    assert found.total_seconds == pytest.approx(found.seconds * found.steps * 15)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "available_bytes", lambda device: 2 * spent.training_memory + 4 * spent.memory(0, True))
        small = module.dry_run(net, spent, digits, protocol("quick"), "cpu")
    assert not small.fits
    assert "accumulate=" in small.advice


def test_the_share_of_images_that_cutout_changes_follows_its_schedule():
    from eclose.train.augment import Cutout
    from eclose.train.randomness import draws

    images = torch.ones(4_000, 1, 8, 8)
    bits = draws(5, torch.arange(4_000), 3)
    whole = Cutout(4)(images, bits)
    for share in (0.0, 0.25, 1.0):
        cut = Cutout(4, torch.tensor(share))(images, bits)
        changed = (cut != images).flatten(1).any(1)
        assert changed.float().mean().item() == pytest.approx(share, abs=0.03)
        assert torch.equal(cut[changed], whole[changed])
