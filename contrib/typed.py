"""Takes every test folder, type-checks the test files in as few calls of mypy as their names allow.

Test files are no packages, so mypy knows them by their bare names and refuses two of one name in a call. The packages
themselves are checked by ``mypy`` alone, whose settings list them. None of ours has to be installed for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from editable import distributions

__all__ = ["files_of_tests", "main", "packed"]

ROOT = Path(__file__).resolve().parent.parent


def files_of_tests(root: Path = ROOT) -> list[Path]:
    """List the test files of all distributions, but not those that mypy's settings list, nor samples that must fail."""
    folders = [folder / "tests" for folder in distributions(root, tests=True)]
    found = {file for folder in folders for file in folder.rglob("*.py") if not _is_apart(file.relative_to(folder))}
    return sorted(found - set((root / "tests").glob("*.py")))


def _is_apart(file: Path) -> bool:
    return file.parts[0] in {"cases", "docs", "histories", "plugins", "release", "typing"}


def packed(files: Iterable[Path]) -> list[list[Path]]:
    """Deal the files into groups in which no two carry one name."""
    groups: list[dict[str, Path]] = []
    for file in files:
        group = next((group for group in groups if file.name not in group), None)
        if group is None:
            groups.append(group := {})
        group[file.name] = file
    return [list(group.values()) for group in groups]


def main() -> int:
    """Check group after group, all of them even when one fails."""
    calls = [[sys.executable, "-m", "mypy", *map(str, group)] for group in packed(files_of_tests())]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, distributions(ROOT, tests=True)))}
    return max([subprocess.call(call, cwd=ROOT, env=environment) for call in calls], default=0)


if __name__ == "__main__":
    raise SystemExit(main())
