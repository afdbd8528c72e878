"""The language's speed: parsing against `json.loads`, sampling against 65 ms a term, importing against nothing."""

import json
import random
import subprocess
import sys
from pathlib import Path

from benchmarks._measure import ratio, record, seconds

import eclose as ec


def random_text(rng: random.Random, size: int) -> str:
    """Return the text of a term of about `size` nodes."""
    if size <= 1:
        return f"conv(kernel={rng.choice([1, 3, 5, 7])}, stride={rng.choice([1, 2])})"
    left = rng.randint(max(1, size // 4), max(1, size - size // 4 - 1))
    return f"Sequential({random_text(rng, left)}, {random_text(rng, size - 1 - left)})"


def as_json(term: ec.Term) -> dict:
    """Return the same tree as plain JSON data."""
    children = {"children": [as_json(child) for child in term.children]} if term.children else {}
    return {"op": term.name, **dict(term.attributes), **children}


def run(out: Path | None = None) -> None:
    """Measure, print, record."""
    text = random_text(random.Random(0), 10_000)
    term = ec.parse(text)
    comparable = json.dumps(as_json(term))
    parsing, parse_seconds, json_seconds = ratio(lambda: ec.parse(text), lambda: json.loads(comparable))
    print(
        f"parse {term.size} nodes ({len(text):,} characters): {1e3 * parse_seconds:.1f} ms = {parsing:.1f} x "
        f"json.loads ({1e3 * json_seconds:.1f} ms, {len(comparable):,} characters); goal at most 15 x"
    )
    space = ec.space("hierarchical-nb201")
    space.count()
    rng = random.Random(0)
    sampling = seconds(lambda: [space.sample(rng) for _ in range(1000)], repeats=5)
    print(f"sample 1,000 hierarchical terms: {sampling:.3f} s = 65 s / {65 / sampling:.0f}; goal at least 100 x")
    fresh = ec.Grammar.parse(space.grammar.source.text)
    counting = min(seconds(lambda: ec.Grammar.parse(space.grammar.source.text).count(), 1) for _ in range(3))
    print(f"read the largest grammar and count its terms: {1e3 * counting:.1f} ms; goal below 100 ms")
    del fresh
    importing, import_seconds, bare_seconds = ratio(lambda: _python("import eclose"), lambda: _python("pass"), 9)
    print(
        f"import eclose: {1e3 * import_seconds:.0f} ms = {importing:.2f} x python -c pass "
        f"({1e3 * bare_seconds:.0f} ms); goal below 300 ms"
    )
    helping = seconds(
        lambda: subprocess.run([sys.executable, "-m", "eclose", "--help"], capture_output=True, check=True), 5
    )
    print(f"eclose --help: {1e3 * helping:.0f} ms; goal below 500 ms")
    record(
        out,
        {
            "parse_over_json_loads": parsing,
            "parse_seconds": parse_seconds,
            "sample_1000_hierarchical_seconds": sampling,
            "sample_ratio_to_65ms_each": 65 / sampling,
            "count_largest_seconds": counting,
            "import_seconds": import_seconds,
            "import_over_pass": importing,
            "help_seconds": helping,
        },
    )


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
