"""Every ```python block of the README and of docs/ runs, in order, one namespace a page, in a folder of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page, tmp_path):
    blocks = BLOCK.findall(page.read_text())
    script = tmp_path / "page.py"
    script.write_text("if __name__ == '__main__':\n" + "".join(_indented(block) for block in blocks))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ECLOSE_DATA": str(tmp_path / "no-data")}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def _indented(block: str) -> str:
    """Keep the text of multi-line strings as it is: the page runs as one guarded module, so workers can import it."""
    return f"    exec({block!r}, globals())\n"


def test_the_public_names_of_the_docs_exist():
    import eclose

    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for name in re.findall(r"\bec\.([A-Za-z_]+)", page.read_text()):
            assert hasattr(eclose, name), f"{page.name} names ec.{name}"


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
