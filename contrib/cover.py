"""Runs the tests that bear the kernel and the stores, writes the share of branches they take into tests/deep.jsonl.

Processes that the tests start count too. Gives 1 when a test fails, or when a package has less than it must (G16).
What was not taken is shown afterwards by ``coverage report --include 'FOLDER/*'``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.deep import short, write

__all__ = ["FOLDERS", "main", "measured"]

ROOT = Path(__file__).resolve().parent.parent
STORES = ("memory", "sqlite", "postgres")
FOLDERS: Sequence[str] = (
    "harness_core/kernel",
    *(f"plugins/harness-store-{store}/harness_store_{store}" for store in STORES),
)
TESTS: Sequence[str] = (
    "tests/kernel", "tests/acceptance", "tests/cli/test_diff.py", "tests/cli/test_looks.py", "tests/cli/test_next.py",
    *(f"plugins/harness-store-{store}/tests" for store in STORES),
    "--ignore", "plugins/harness-store-sqlite/tests/test_power_loss.py",  # thousands of times the same branches
    "--deselect", "tests/acceptance/test_plugins.py::test_a_list_imports_no_plugin_and_little_else",  # nor coverage.py
)  # fmt: skip
MUST = {"branches_percent": 95}
COUNTS = ("covered_branches", "num_branches", "covered_lines", "num_statements")


def measured(files: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """What coverage.py says of the files of one folder, as a line of the gate G16."""
    found = [file["summary"] for name, file in files.items() if name.startswith(f"{folder}/")]
    taken, branches, run, lines = (sum(one[count] for one in found) for count in COUNTS)
    shares = {"branches_percent": _percent(taken, branches), "lines_percent": _percent(run, lines)}
    return {"gate": "G16", "what": f"branches of {folder} that tests take", **shares, "must": MUST}


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def _coverage(*words: str) -> int:
    return subprocess.call([sys.executable, "-m", "coverage", *words], cwd=ROOT)


def _files() -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        # tests also run copies of the program, which are gone by now
        _coverage("json", "-q", "--include", ",".join(f"{one}/*" for one in FOLDERS), "-o", str(report))
        files: Mapping[str, Any] = json.loads(report.read_text(encoding="utf-8"))["files"]
        return files


def main(arguments: Iterable[str]) -> int:
    """Run, count, write, and print."""
    _coverage("erase")
    failed = _coverage("run", "-m", "pytest", "-q", *arguments, *TESTS)
    _coverage("combine", "-q")
    files = _files()
    done = [{**measured(files, folder), "failures": int(failed != 0)} for folder in FOLDERS]
    write(done)
    for line in done:
        print(json.dumps(line))
    return int(failed != 0 or any(map(short, done)))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
