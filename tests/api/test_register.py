"""What users add is known by its name everywhere; a name that is taken is refused. Run in processes of their own."""

from __future__ import annotations

import json

import pytest

import eclose as ec
from eclose.algebra.errors import RequestError
from support.command_line import eclose, refused

MINE = '''
import numpy as np
import eclose as ec
from eclose.strategies import NamedStrategy
from eclose.train.protocols import protocol
from dataclasses import replace


class First:
    """Always proposes the smallest mutation of what it began with."""

    name = "first"

    def __init__(self, space):
        self.space, self.settings = space, {}

    def ask(self, number, rng):
        return self.space.sample(rng)

    def tell(self, number, term, result):
        pass


def noise():
    """Nothing to learn."""
    rng = np.random.default_rng(0)
    return ec.Task((rng.normal(size=(40, 1, 8, 8)).astype("float32"), np.arange(40) % 2))


ec.register(NamedStrategy(name="first", build=lambda space, objective: First(space), explanation="draws", source="me"))
ec.register(replace(protocol("quick"), name="short", epochs=1, source="mine"))
ec.register(noise, name="noise")
ec.register(ec.Space.from_grammar("Net -> conv(kernel={1, 3}) | id", name="mine"))
'''


def test_everything_of_ones_own_works_on_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    for kind, name in (("strategies", "first"), ("protocols", "short"), ("tasks", "noise"), ("spaces", "mine")):
        assert name in eclose("--import", "mine", kind, folder=tmp_path).stdout
    arguments = ("--space", "mine", "--task", "noise", "--strategy", "first", "--set", "protocol=short")
    done = eclose(
        "--import", "mine", "search", *arguments, "--set", "budget=2", "--out", "run", "--json", folder=tmp_path
    )
    assert json.loads(done.stdout)["trials"] == 2, done.stderr
    assert "resume it with the same" in refused("resume", "run", folder=tmp_path)
    assert eclose("--import", "mine", "resume", "run", folder=tmp_path).returncode == 0


def test_what_cannot_be_registered_is_refused():
    with pytest.raises(RequestError, match="exists already"):
        ec.register(ec.space("tiny"))
    with pytest.raises(RequestError, match="with name="):
        ec.register(lambda: None)
    with pytest.raises(RequestError, match="not int"):
        ec.register(3)
