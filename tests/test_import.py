"""`import eclose` is light, and every public name resolves."""

import subprocess
import sys

import eclose


def loaded(program: str) -> set[str]:
    code = f"import sys\n{program}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_eclose_loads_neither_torch_nor_numpy():
    assert not loaded("import eclose") & {"torch", "numpy", "networkx", "optuna", "rich", "typer"}


def test_the_language_needs_neither_torch_nor_numpy():
    program = (
        "import eclose as ec; term = ec.parse('Residual(conv, id, conv)'); ec.cost(term, input=(3, 8, 8), classes=2);"
        "ec.graph(term); ec.draw(term); ec.space('nasbench201').count(); ec.space('nasbench201').sample(0)"
    )
    assert not loaded(program) & {"torch", "numpy", "optuna"}


def test_help_loads_neither_torch_nor_numpy():
    program = (
        "from eclose.cli import main\nsys.argv = ['eclose', '--help']\ntry:\n    main()\nexcept SystemExit:\n    pass"
    )
    assert not loaded(program) & {"torch", "numpy", "optuna"}


def test_every_public_name_resolves():
    for name in eclose.__all__:
        assert getattr(eclose, name) is not None
    assert set(eclose.__all__) <= set(dir(eclose))


def test_an_unknown_name_is_corrected():
    try:
        eclose.biuld  # noqa: B018
    except AttributeError as error:
        assert "did you mean 'build'" in str(error)
    else:
        raise AssertionError("eclose.biuld exists")


def test_spaces_is_both_a_package_and_the_list():
    import eclose.spaces

    assert "nasbench201" in eclose.spaces()
    assert eclose.space("nasbench201").name == "nasbench201"
