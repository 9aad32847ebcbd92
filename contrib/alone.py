"""Takes plugin names (none: all), runs the tests of each beside contract and core only, gives the worst exit code.

The environment that runs this holds other people's packages and none of ours; a plugin that imports its neighbour
fails here. There are no entry points either: what a plugin needs from discovery is tested with installed wheels.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["environment", "main", "plugins"]

ROOT = Path(__file__).resolve().parent.parent


def plugins(names: Sequence[str], root: Path = ROOT) -> list[Path]:
    """Find the plugin folders that were named, or all that have tests.

    Raises:
        SystemExit: A name is no folder of ``plugins/``.
    """
    found = {folder.parent.name: folder.parent for folder in sorted((root / "plugins").glob("*/tests"))}
    unknown = sorted(set(names) - set(found))
    if unknown:
        raise SystemExit(f"no plugin with tests: {', '.join(unknown)}; there are: {', '.join(found)}")
    return [found[name] for name in names or found]


def environment(plugin: Path, inherited: Mapping[str, str], root: Path = ROOT) -> dict[str, str]:
    """Give the variables under which only the contract, the core and one plugin can be imported."""
    path = [root / "hookspecs", root, plugin]
    return {**inherited, "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONSAFEPATH": "1"}


def main(arguments: Sequence[str]) -> int:
    """Run the tests of each plugin in turn, all of them even when one fails."""
    failed = []
    for plugin in plugins(arguments):
        print(f"== {plugin.name}", flush=True)
        call = [sys.executable, "-m", "pytest", "-q", str(plugin / "tests")]
        if subprocess.call(call, cwd=ROOT, env=environment(plugin, os.environ)) != 0:
            failed.append(plugin.name)
    print(f"alone: {', '.join(failed) or 'every plugin'} {'failed' if failed else 'passed'}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
