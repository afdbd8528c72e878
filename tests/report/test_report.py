"""The report: one page that fetches nothing, escapes everything, and opens in a browser without complaint."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

import eclose as ec
from eclose.report import report_text
from eclose.report.charts import Series, chart
from eclose.runs import Run

VOID = {"meta", "link", "br", "wbr", "input", "img", "hr", "circle", "path", "line", "rect", "polygon", "use", "stop"}
EVIL = "<script>alert('x')</script> & \"quoted\""


class Checked(HTMLParser):
    """Fails on tags that do not close, collects what a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.scripts, self.words = [], [], 0, []

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [v for k, v in attributes if k in ("src", "href", "xlink:href") and v and v[0] not in "#d"]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open[-1] == tag, (tag, self.open[-5:])
            self.open.pop()

    def handle_data(self, data):
        self.words.append(data)


def checked(text: str) -> Checked:
    page = Checked()
    page.feed(text)
    assert page.open == []
    assert page.fetched == []
    assert page.scripts == 1  # the page's own
    return page


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "finished"
    ec.search("tiny", "digits:subset=150", "random", out=out, budget=3, epochs=1, retrain=2)
    return out


def test_a_finished_run_is_told_from_best_to_notes(finished):
    text = (finished / "report.html").read_text()
    words = " ".join(checked(text).words)
    for heading in ("Best architecture", "Search", "Training of the best network", "Trials", "Settings", "Environment"):
        assert heading in words
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text
    assert "<svg" in text


def test_a_run_without_trials_has_a_report(tmp_path):
    with Run.create(tmp_path / "run", {"command": "search", "strategy": "random"}) as run:
        checked(report_text(run))


def test_failed_trials_are_told_with_their_reason(tmp_path):
    task = ec.Task(*[digits(part) for part in ("train", "valid")], classes=10, loss=broken, metric="accuracy")
    with pytest.raises(ec.EcloseError, match="none of the 2 trials finished"):
        ec.search("tiny", task, "random", out=tmp_path / "run", budget=2, epochs=1)
    words = " ".join(checked(report_text(tmp_path / "run")).words)
    assert "no such loss today" in words


def digits(part: str):
    return ec.task("digits", subset=150).part(part).resident()


def broken(outputs, targets):
    raise ValueError("no such loss today")


def test_everything_that_a_user_wrote_is_escaped(tmp_path):
    request = {"command": "search", "strategy": EVIL, "space": {"name": EVIL}, "task": EVIL, "settings": {EVIL: EVIL}}
    with Run.create(tmp_path / "run", request, grammar=f"# {EVIL}") as run:
        run.append("study", settings={"objectives": {EVIL: "maximise"}})
        run.append("proposed", number=0, term="conv")
        run.append("finished", number=0, status="failed", objectives={}, reason=EVIL, seconds=0.1, elapsed=0.1)
        run.append("comparison", columns=["network", EVIL], rows=[[EVIL, 1.0]], remark=EVIL)
        text = report_text(run)
    checked(text)
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text


def test_charts_stand_odd_numbers():
    for points in ([], [(0.0, 1.0)], [(0.0, 5.0), (1.0, 5.0)], [(0.0, 1e-12), (1e9, 1e12)]):
        checked_svg = str(chart([Series("a", points)], x="x", y="y", title=EVIL))
        assert "nan" not in checked_svg.lower()
        assert "<script>alert" not in checked_svg


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_opens_it_without_complaint(finished, width, tmp_path):
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    assert browser is not None, "install Chromium to run the tests marked browser"
    picture = tmp_path / "report.png"
    done = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
            "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1400",
            f"--screenshot={picture}", (finished / "report.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert picture.stat().st_size > 10_000
    assert "CONSOLE" not in done.stderr, done.stderr
