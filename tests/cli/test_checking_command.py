"""The command that checks gradients, as a process."""

from __future__ import annotations

import json

from support.command_line import eclose, refused

SMALL = ("nasbench1shot1-1", "--entries", "3", "--samples", "50")
WRONG = """
import torch
from eclose.strategies.gradient.mixtures.soft import Softmax

Softmax.thetas = lambda self, alphas, level: {
    name: 2.0 * theta.detach() - theta for name, theta in self.expected(alphas).items()
}
"""


def test_a_check_is_a_table():
    done = eclose("check-gradients", "darts", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "darts on nasbench1shot1-1: pathwise" in done.stdout
    lines = done.stdout.splitlines()
    assert lines[3].split() == [
        "quantity", "choice", "alternative", "estimator", "reference", "difference", "allowed", "verdict",
    ]  # fmt: skip
    assert lines[-1] == "all 3 agree"
    assert all(line.endswith("agrees") for line in lines[4:7])


def test_a_check_is_data():
    done = eclose("check-gradients", "gdas", *SMALL, "--set", "leak=true", "--json")
    found = json.loads(done.stdout)
    assert found["passed"] and found["strategy"] == "gdas" and len(found["entries"]) == 3
    assert {"choice", "alternative", "estimator", "reference", "difference", "passed"} <= set(found["entries"][0])


def test_a_wrong_gradient_ends_with_status_1(tmp_path):
    (tmp_path / "wrong_sign.py").write_text(WRONG)
    done = eclose("--import", "wrong_sign", "check-gradients", "darts", *SMALL, folder=tmp_path)
    assert done.returncode == 1, done.stdout
    assert "DIFFERS" in done.stdout
    assert "differ" in done.stdout.splitlines()[-1]


def test_what_has_no_gradient_is_not_applicable():
    done = eclose("check-gradients", "rs-ws", *SMALL)
    assert done.returncode == 0
    assert "not applicable" in done.stdout


def test_wrong_requests_are_one_line():
    assert "did you mean 'darts'" in refused("check-gradients", "dart", "nasbench201")
    assert "did you mean 'nasbench201'" in refused("check-gradients", "darts", "nasbench20")
    assert "black-box" in refused("check-gradients", "evolution", "nasbench201")
