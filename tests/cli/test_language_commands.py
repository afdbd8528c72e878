"""Commands over terms and spaces, as processes."""

from __future__ import annotations

import ast
import json
import xml.etree.ElementTree as xml

import pytest

from support.command_line import eclose, refused

TERM = "Residual(conv(kernel=3), id, conv(kernel=3))"


def test_count_says_exact_numbers():
    assert eclose("count", "nasbench201").stdout.strip() == "15,625"
    assert eclose("count", "hierarchical-nb201", "--of", "derivations").stdout.strip().startswith("10^446.0925")
    found = json.loads(eclose("count", "hierarchical-nb201", "--json").stdout)
    assert len(found["count"]) == found["digits"] == 376
    assert eclose("count", "Residual(choice(conv, id), id, choice(conv, id))").stdout.strip() == "4"


def test_a_grammar_in_a_file_is_counted_and_sampled(tmp_path):
    (tmp_path / "mine.grammar").write_text("Net -> Sequential(Op, Op)\nOp -> conv(kernel={1, 3}) | id\n")
    assert eclose("count", "mine.grammar", folder=tmp_path).stdout.strip() == "9"
    terms = eclose("sample", "mine.grammar", "-n", "5", "--seed", "3", folder=tmp_path).stdout.splitlines()
    assert len(terms) == 5
    assert terms == eclose("sample", "mine.grammar", "-n", "5", "--seed", "3", folder=tmp_path).stdout.splitlines()


def test_draw_writes_a_picture_or_text(tmp_path):
    assert "conv" in eclose("draw", TERM).stdout
    done = eclose("draw", TERM, "--out", "cell.svg", folder=tmp_path)
    assert done.returncode == 0
    assert xml.parse(tmp_path / "cell.svg").getroot().tag.endswith("svg")


def test_cost_and_build_agree():
    arguments = (TERM, "--input", "3,32,32", "--classes", "10", "--json")
    costs = json.loads(eclose("cost", *arguments).stdout)
    built = json.loads(eclose("build", *arguments).stdout)
    assert costs["parameters"] == built["parameters"]
    assert "multiply-adds" in eclose("cost", *arguments[:-1]).stdout


def test_build_prints_source_that_reads_without_eclose():
    source = eclose("build", TERM, "--input", "3,32,32", "--classes", "10", "--source").stdout
    ast.parse(source)
    assert "eclose" not in source


@pytest.mark.parametrize("kind", ["spaces", "operators", "tasks", "strategies", "protocols"])
def test_lists_have_one_line_each_and_json(kind):
    lines = eclose(kind).stdout.strip().splitlines()
    found = json.loads(eclose(kind, "--json").stdout)[kind]
    assert len(lines) == len(found) > 0
    assert all(entry["description"] for entry in found)


def test_one_of_a_list_is_explained():
    assert "kernel=" in eclose("operators", "conv").stdout
    assert "population" in eclose("strategies", "--explain", "evolution").stdout
    assert "600" in eclose("protocols", "darts-cifar").stdout


WRONG = [
    (("draw", "Residual(covn, id, conv)"), "did you mean 'conv'?"),
    (("draw", "Residual(conv, id"), "line 1, column 1: the '(' of Residual is never closed"),
    (("cost", TERM), "say what goes in"),
    (("cost", TERM, "--input", "3,x,32"), "3,32,32"),
    (("cost", TERM, "--input", "3,32,32", "--output", "class:10"), "did you mean 'classes'?"),
    (("count", "nasbench-201"), "did you mean 'nasbench201'?"),
    (("count", "A -> covn"), "did you mean 'conv'?"),
    (("count", "nasbench201", "--of", "term"), "terms or derivations"),
    (("count", "A -> conv | Sequential(A, A)"), "constrain depth(8)"),
    (("build", TERM, "--input", "3,32,32", "--out", "x.py"), "--out goes with --source"),
    (("draw", "missing.term"), "there is no file missing.term"),
    (("operators", "covn"), "did you mean 'conv'?"),
    (("strategies", "--explain", "evolutoin"), "did you mean 'evolution'?"),
    (("protocols", "quik"), "did you mean 'quick'?"),
    (("sample", "nasbench201", "-n", "0"), "greater than or equal to 1"),
    (("serach",), "No such command"),
    (("draw",), "Missing argument"),
    (
        (
            "cost",
            "Sequential(conv(stride=2), Residual(conv(stride=2), id, conv))",
            "--input",
            "3,8,8",
            "--classes",
            "2",
        ),
        "",
    ),
    (("--import", "no_such_module", "spaces"), "no_such_module"),
    (("draw", TERM, "--out", "/no/such/folder/cell.svg"), "/no/such/folder"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), WRONG, ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else ""
)
def test_a_wrong_request_gives_one_clear_line(arguments, message):
    assert message in refused(*arguments)


def test_registrations_of_the_users_own_are_imported(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import eclose\n"
        'eclose.register(eclose.Space.from_grammar("Net -> conv | id", name="mine", description="two"))\n'
    )
    assert "mine" in eclose("--import", "mine", "spaces", folder=tmp_path).stdout
    assert eclose("--import", "mine", "count", "mine", folder=tmp_path).stdout.strip() == "2"


def test_a_term_can_be_piped_in():
    import subprocess
    import sys

    command = [sys.executable, "-m", "eclose", "cost", "-", "--input", "3,8,8", "--classes", "2"]
    assert "parameters" in subprocess.run(command, input="conv\n", capture_output=True, text=True).stdout


def test_without_arguments_there_is_help():
    done = eclose()
    assert done.returncode == 0
    assert "Commands:" in done.stdout


def test_a_users_module_that_does_not_run_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    assert "--import broken: ZeroDivisionError" in refused("--import", "broken", "spaces", folder=tmp_path)


def test_debug_shows_the_traceback():
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-m", "eclose", "--debug", "draw", "covn"], capture_output=True, text=True)
    assert "Traceback" in done.stderr
    assert done.returncode == 2
