"""`make bench`: runs every benchmark in turn; `python -m benchmarks NAME ...` runs some.

A benchmark is a module of this folder with `run(out: Path | None) -> None`; it prints ratios measured in one run and
writes them, with the machine and the versions, to `benchmarks/results/NAME.json` when asked with `--save`.
"""

import argparse
import importlib
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios measured in one run.")
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/NAME.json")
    arguments = parser.parse_args()
    for name in arguments.names or NAMES:
        print(f"== {name}", flush=True)
        out = FOLDER / "results" / f"{name}.json" if arguments.save else None
        importlib.import_module(f"benchmarks.{name}").run(out)


if __name__ == "__main__":
    main()
