"""Comparisons from Python: searches and trainings kept apart, pairs by seed, resuming, baselines, wrong requests."""

from __future__ import annotations

import json
import statistics
from html.parser import HTMLParser

import numpy as np
import pytest

import eclose as ec
from eclose._api import comparing
from eclose.algebra.errors import RequestError
from eclose.runs import Run, RunError
from eclose.tabular import tabular_task

TABLE = ("nasbench201", "tabular:cifar10@12->200")
QUICK = {"budget": 12, "population": 4, "tournament": 2}
TINY = {"budget": 2, "epochs": 1, "population": 2, "tournament": 2, "final": {"epochs": 1}, "device": "cpu"}
SMALL = "digits:subset=120"


def without_times(found):
    """Return a comparison's plain data without what a clock says."""
    if isinstance(found, dict):
        return {key: without_times(value) for key, value in found.items() if key not in ("seconds", "path")}
    return [without_times(value) for value in found] if isinstance(found, list) else found


@pytest.fixture(scope="module")
def on_a_table(tmp_path_factory):
    return ec.compare(*TABLE, "evolution", seeds=8, out=tmp_path_factory.mktemp("on") / "table", **QUICK)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return ec.compare(
        "tiny", SMALL, ["random", "evolution"], seeds=[3, 5], retrain_seeds=2,
        out=tmp_path_factory.mktemp("on") / "digits", **TINY,
    )  # fmt: skip


def test_every_search_is_the_one_that_search_alone_would_do(on_a_table):
    for name, settings in (("evolution", QUICK), ("random", {"budget": 12})):
        for found in on_a_table.row(name).searches:
            alone = ec.search(*TABLE, name, seed=found.seed, **settings)
            assert str(alone.best.term) == found.term
            assert alone.final["values"]["test"] == found.mean
            assert alone.best.score == found.score


def test_baselines_come_by_themselves(on_a_table):
    assert [row.strategy for row in on_a_table.rows] == ["evolution", "random", "skip-only"]
    skips = on_a_table.row("skip-only")
    assert round(skips.means[0], 2) == 54.30  # what the benchmark's authors publish for the cell of skips
    assert not skips.searched
    assert skips.plain()["interval"] is None


def test_rows_say_what_their_searches_gave(on_a_table):
    for row in on_a_table.plain()["rows"][:2]:
        means = [search["mean"] for search in row["searches"]]
        assert row["mean"] == pytest.approx(statistics.mean(means))
        assert row["deviation_over_searches"] == pytest.approx(statistics.stdev(means))
        half = 2.364624 * statistics.stdev(means) / 8**0.5  # the 0.975 quantile of t with 7 degrees of freedom
        assert row["interval"] == pytest.approx([row["mean"] - half, row["mean"] + half], abs=1e-5)
        assert row["best"] == max(means)
        assert row["deviation_over_retrainings"] is None


def test_differences_are_paired_by_seed(on_a_table):
    pairs = {(pair["first"], pair["second"]): pair for pair in on_a_table.pairs}
    evolution, random = (
        {found.seed: found.mean for found in on_a_table.row(name).searches} for name in ("evolution", "random")
    )
    pair = pairs["evolution", "random"]
    assert pair["seeds"] == list(range(8))
    assert pair["differences"] == [evolution[seed] - random[seed] for seed in range(8)]
    against = pairs["random", "skip-only"]
    assert against["against_one_network"]
    assert against["p"] == 2 / 256
    assert against["p_holm"] == 3 * 2 / 256
    assert against["better"] == "random"
    assert not any("can be significant" in note for note in on_a_table.notes)


def test_a_failed_search_leaves_its_pair_out(tmp_path, monkeypatch):
    real = comparing.search

    def sometimes(space, task, strategy, *, out, seed, **settings):
        run = real(space, task, strategy, out=out, seed=seed, **settings)
        if (strategy, seed) == ("random", 1):
            raise RunError("none of the trials finished")
        return run

    monkeypatch.setattr(comparing, "search", sometimes)
    found = ec.compare(*TABLE, "evolution", seeds=3, out=tmp_path / "c", **QUICK)
    row = found.row("random")
    assert (row.failed_searches, len(row.means)) == (1, 2)
    assert found.pairs[0]["seeds"] == [0, 2]
    assert any("1 of 3 searches by random failed" in note and "flatter" in note for note in found.notes)
    assert "1 searches" in found.table()
    again = ec.compare(*TABLE, "evolution", seeds=3, out=tmp_path / "c", **QUICK)
    assert without_times(again.plain()) == without_times(found.plain())


def test_a_full_disk_is_no_failed_search(tmp_path, monkeypatch):
    def full(*arguments, **settings):
        raise RunError("the disk is full") from OSError(28, "No space left on device")

    monkeypatch.setattr(comparing, "search", full)
    with pytest.raises(RunError, match="disk is full"):
        ec.compare(*TABLE, "evolution", seeds=1, out=tmp_path / "c", **QUICK)
    assert not (tmp_path / "c" / "evolution" / "seed-0" / "failed.json").exists()


def test_networks_are_trained_with_seeds_of_their_own(trained):
    assert trained.part == "test"
    assert [row.strategy for row in trained.rows] == ["random", "evolution"]
    assert any("no row skip-only: no decision of tiny" in note for note in trained.notes)
    for row in trained.rows:
        assert [found.seed for found in row.searches] == [3, 5]
        for found in row.searches:
            assert [training["seed"] for training in found.trainings] == [0, 1]
            assert found.mean == pytest.approx(statistics.mean(found.scores))
            for seed, score in zip((0, 1), found.scores, strict=True):
                alone = ec.evaluate(found.term, SMALL, space="tiny", seed=seed, epochs=1, device="cpu")
                assert alone["score"] == score
                assert alone["parameters"] == found.costs["parameters"]
    plain = trained.plain()["rows"][0]
    groups = [search["trainings"] for search in plain["searches"]]
    within = statistics.mean(statistics.variance([training["score"] for training in group]) for group in groups)
    assert plain["deviation_over_retrainings"] == pytest.approx(within**0.5)


def test_equal_networks_are_trained_once(tmp_path):
    pieces = []
    grammar = "Net -> conv(kernel={1, 3})"  # two networks, so two searches with two trials each find the same
    found = ec.compare(
        grammar, SMALL, "random", seeds=3, retrain_seeds=2, budget=2, epochs=1, final={"epochs": 1}, device="cpu",
        out=tmp_path / "c", watch=lambda kind, value: pieces.append(value) if kind == "piece" else None,
    )  # fmt: skip
    networks = {search.term for search in found.row("random").searches}
    trainings = [piece for piece in pieces if piece.kind == "training"]
    assert len(trainings) == 2 * len(networks) < 6
    assert [piece.number for piece in trainings] == list(range(1, trainings[0].of + 1))
    files = [json.loads(path.read_text()) for path in sorted((tmp_path / "c").glob("random/seed-*/retrain-0.json"))]
    assert len(files) == 3
    assert len({(kept["term"], kept["score"]) for kept in files}) == len(networks)


class Stop(BaseException):
    """Stands for Ctrl-C."""


@pytest.mark.parametrize("moment", [("piece", 2), ("trial", 5), ("piece", 5), ("piece", 7)])
def test_an_interrupted_comparison_goes_on_where_it_was(trained, moment, tmp_path):
    request = ("tiny", SMALL, ["random", "evolution"])
    options = {"seeds": [3, 5], "retrain_seeds": 2, "out": tmp_path / "c", **TINY}
    seen = []

    def stopping(kind, value):
        seen.append(kind)
        if (kind, seen.count(kind)) == moment:
            raise Stop

    with pytest.raises(Stop):
        ec.compare(*request, watch=stopping, **options)
    logs = {path: path.read_bytes() for path in (tmp_path / "c").glob("*/*/events.jsonl")}
    over = {path for path in logs if Run.open(path.parent).of_kind("end")}
    kept = {path: path.read_bytes() for path in (tmp_path / "c").glob("*/*/retrain-*.json")}
    pieces = []
    found = ec.compare(*request, watch=lambda kind, value: pieces.append(value) if kind == "piece" else None, **options)
    assert without_times(found.plain()) == without_times(trained.plain())
    assert all(path.read_bytes() == logs[path] for path in over)
    assert all(path.read_bytes() == content for path, content in kept.items())
    searches = [piece for piece in pieces if piece.kind == "search"]
    assert len(searches) == 4 - len(over)
    assert all(piece.of == 4 for piece in searches)
    again = []
    ec.compare(*request, watch=lambda kind, value: again.append(kind), **options)
    assert again == []


def test_networks_found_by_training_can_be_looked_up(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(40, 3, 8, 8)).astype("float32")
    task = ec.Task((images, np.arange(40) % 10), (images[:20], np.arange(20) % 10), classes=10)
    options = {
        "seeds": 1, "budget": 1, "epochs": 1, "search_protocol": "quick", "table": "tabular:cifar10@200",
        "size": "search", "device": "cpu",
    }  # fmt: skip
    found = ec.compare("nasbench201", task, "random", out=tmp_path / "c", **options)
    search = found.row("random").searches[0]
    assert search.mean == tabular_task("cifar10@200").final(ec.parse(search.term))["test"]
    assert found.request["table"] == "tabular:cifar10@200"
    assert found.request["retrain_seeds"] == []
    assert any("One search each" in note for note in found.notes)
    other = ec.Task((images + 1, np.arange(40) % 10), (images[:20], np.arange(20) % 10), classes=10)
    with pytest.raises(RequestError, match=r"another comparison \(fingerprint"):
        ec.compare("nasbench201", other, "random", out=tmp_path / "c", **options)


def test_settings_go_to_those_that_have_them(on_a_table):
    given = on_a_table.request["strategies"]
    assert given == {"evolution": QUICK, "random": {"budget": 12}, "skip-only": {}}


def test_another_request_for_the_same_folder_is_refused_with_what_differs(on_a_table):
    with pytest.raises(RequestError, match=r"another comparison \(.*seeds \[0, 1.*there, \[0, 1, 2\] here"):
        ec.compare(*TABLE, "evolution", seeds=3, out=on_a_table.path, **QUICK)
    with pytest.raises(RequestError, match="strategies"):
        ec.compare(*TABLE, "evolution", seeds=8, out=on_a_table.path, **{**QUICK, "budget": 13})


WRONG = [
    ({"strategies": []}, "say which strategies"),
    ({"strategies": "evolutoin"}, "did you mean 'evolution'"),
    ({"strategies": ["random", "random"]}, "named twice"),
    ({"seeds": 0}, "seeds must be at least 1"),
    ({"seeds": []}, "seeds is an empty list"),
    ({"seeds": [1, 1]}, "a seed twice"),
    ({"seeds": "many"}, "a number of seeds or a list"),
    ({"seeds": True}, "a number of seeds or a list"),
    ({"retrain_seeds": 2}, "retrain_seeds= means nothing"),
    ({"protocol": "quick"}, "protocol= means nothing"),
    ({"final": {"epochs": 3}}, "final= means nothing"),
    ({"table": "tabular:cifar10@200"}, "is a table already"),
    ({"popluation": 3}, "did you mean 'population'"),
    ({"per_strategy": {"evolutoin": {"population": 3}}}, "did you mean 'evolution'"),
    ({"per_strategy": {"reinforce": {"rate": 3}}}, "does not search here"),
    ({"per_strategy": {"evolution": {"popluation": 3}}}, "did you mean 'population'"),
    ({"seed": 3}, "the searches' seeds are seeds="),
    ({"storage": "sqlite:///x"}, "kept in its folder"),
    ({"epochs": 3}, "unknown setting 'epochs'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_request_is_refused_before_anything_is_made(options, message, tmp_path):
    with pytest.raises(ec.EcloseError, match=message):
        ec.compare(*TABLE, **{"strategies": "evolution", "out": tmp_path / "c", **options})
    assert not (tmp_path / "c").exists()


def test_wrong_requests_of_trainings(tmp_path):
    for options, message in (
        ({"table": "tabular:cifar10@200"}, "holds the terms of nasbench201, not of tiny"),
        ({"table": "digits"}, "table= is a tabular task"),
        ({"protocol": "quik"}, "did you mean 'quick'"),
        ({"final": {"epohcs": 3}}, "did you mean 'epochs'"),
        ({"retrain": 3}, "final="),
        ({"retrain_seeds": 0}, "retrain_seeds must be at least 1"),
    ):
        with pytest.raises(ec.EcloseError, match=message):
            ec.compare("tiny", SMALL, "random", out=tmp_path / "c", **options)
    assert not (tmp_path / "c").exists()


def test_a_folder_that_is_taken_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RequestError, match="is not empty"):
        ec.compare(*TABLE, "evolution", out=tmp_path)
    with pytest.raises(RequestError, match="is a file"):
        ec.compare(*TABLE, "evolution", out=tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


class Checked(HTMLParser):
    def __init__(self):
        super().__init__()
        self.fetched, self.words = [], []

    def handle_starttag(self, tag, attributes):
        self.fetched += [v for k, v in attributes if k in ("src", "href") and v and v[0] not in "#d"]

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_and_the_text_say_the_same(on_a_table):
    page = Checked()
    page.feed((on_a_table.path / "comparison.html").read_text())
    assert page.fetched == []
    words = " ".join(page.words)
    text = on_a_table.table()
    for row in on_a_table.plain()["rows"]:
        for shown in (row["strategy"], f"{row['mean']:.2f}"):
            assert shown in words
            assert shown in text
    assert all(note in text for note in on_a_table.notes)
    assert json.loads((on_a_table.path / "comparison.json").read_text()) == on_a_table.plain()
