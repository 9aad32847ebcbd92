"""Names of benchmarks go in as arguments (none: all of them), their figures come out as JSON lines."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .measure import Figure

__all__ = ["benches", "main"]


def benches() -> dict[str, Callable[[], Iterable[Figure]]]:
    """Every benchmark by its name; the modules of this folder are the list."""
    found = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name.startswith("_") or module.name == "measure":
            continue
        loaded = importlib.import_module(f"{__package__}.{module.name}")
        if hasattr(loaded, "run"):
            found[loaded.NAME] = loaded.run
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 when a figure misses its "must"."""
    known = benches()
    parser = argparse.ArgumentParser(prog="python -m contrib.bench", description="Measure, beside raw contestants.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(sorted(known))}; none: all")
    names = parser.parse_args(arguments).names or sorted(known)
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    missed = 0
    for name in names:
        for figure in known[name]():
            print(json.dumps(figure._asdict()), flush=True)
            missed += not figure.ok
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
