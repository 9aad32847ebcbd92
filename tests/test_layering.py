"""The import law, second half: the whole project obeys it, and each rule finds the sample that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from editable import distributions
from tests import law

ROOT = Path(__file__).resolve().parent.parent
FOLDERS: list[Path] = distributions(ROOT, tests=True)


def test_every_distribution_is_found_and_read() -> None:
    assert FOLDERS[:2] == [ROOT / "hookspecs", ROOT]
    files = [file for depth in ("", "*/", "*/*/", "*/*/*/") for file in ROOT.glob(f"{depth}pyproject.toml")]
    assert set(FOLDERS) == {file.parent for file in files if _is_source(file)}
    assert all(list(law.modules(folder)) for folder in FOLDERS if folder != ROOT)


def _is_source(file: Path) -> bool:
    parts = file.relative_to(ROOT).parts
    return not any(part.startswith(".") or part in {"build", "contrib", "docs"} for part in parts)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_law_is_kept(folder: Path) -> None:
    found = [
        str(finding)
        for file, place in law.modules(folder)
        for finding in law.findings(file.read_text(encoding="utf-8"), place)
    ]
    assert not found, "\n" + "\n".join(found)


TOOL = ("harness-tool-x", "harness_tool_x")
CORE = ("main", "harness_core")
CONTRACT = ("hookspecs", "harness_hookspecs")
CATCH = "try:\n    x = 1\nexcept Exception:\n    x = 2"
SAMPLES = {
    # who may import whom
    "a plugin imports the core": (*TOOL, "noun.py", "from harness_core.kernel import decide"),
    "a plugin imports its neighbour": (*TOOL, "tool.py", "import harness_store_sqlite.store"),
    "a plugin imports the core late": (*TOOL, "tool.py", "def build():\n    import harness_core"),
    "a plugin imports the core for its types": (
        *TOOL, "tool.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from harness_core import Host",
    ),
    "a plugin imports the core by a string": (*TOOL, "tool.py", "importlib.import_module('harness_core.shell')"),
    "the core imports a plugin": (*CORE, "shell/parts.py", "from harness_rules_cel import rules"),
    "the contract imports the core": (*CONTRACT, "launch.py", "import harness_core.cli.main"),
    "a suite of the contract imports the core": (*CONTRACT, "contracts/tool.py", "import harness_core"),
    "the shell imports the command line": (*CORE, "shell/loop.py", "from harness_core.cli import main"),
    "the kernel imports the shell": (*CORE, "kernel/decide.py", "from harness_core.shell import ports"),
    "the kernel imports the shell by dots": (*CORE, "kernel/decide.py", "from ..shell import ports"),
    "the kernel imports the system": (*CORE, "kernel/decide.py", "import os"),
    "the kernel imports a framework": (*CORE, "kernel/state.py", "from pydantic import BaseModel"),
    # the world
    "a clock": (*TOOL, "noun.py", "import time"),
    "a clock in the part that may touch the world": (*TOOL, "tool.py", "from time import monotonic"),
    "the date": (*CORE, "shell/loop.py", "import datetime\nx = datetime.datetime.now(datetime.UTC)"),
    "today": (*CORE, "kernel/decide.py", "from datetime import date\nx = date.today()"),
    "an id": (*TOOL, "tool.py", "import uuid\nx = uuid.uuid4()"),
    "an id by name": (*TOOL, "tool.py", "from uuid import uuid4"),
    "chance": (*TOOL, "tool.py", "import os\nx = os.urandom(8)"),
    "a thread": (*TOOL, "tool.py", "import threading"),
    "a pool": (*CORE, "shell/perform.py", "from concurrent.futures import ThreadPoolExecutor"),
    "an event loop": (*TOOL, "tool.py", "import asyncio"),
    "a file outside the part that may": (*TOOL, "noun.py", "x = open('a')"),
    "a file by its path": (*TOOL, "noun.py", "from pathlib import Path\nx = Path('a').read_text()"),
    "a path opened": (*CORE, "cli/run.py", "from pathlib import Path\nx = Path('a').open()"),
    "a process outside the part that may": (*TOOL, "settings.py", "import subprocess"),
    "a process by the system": (*CORE, "shell/loop.py", "import os\nos.execvp('a', ['a'])"),
    "the part of another kind": (*TOOL, "store.py", "import subprocess"),
    "a question to the terminal": ("harness-approver-x", "harness_approver_x", "approver.py", "x = input()"),
    "a socket in the contract's kit": (*CONTRACT, "kit/http.py", "import socket"),
    "a temporary file in the core": (*CORE, "shell/trust.py", "from tempfile import mkdtemp"),
    # catching everything
    "a catch of everything": (*TOOL, "tool.py", CATCH),
    "a bare catch": (*CORE, "shell/toolbox.py", "try:\n    x = 1\nexcept:\n    pass"),
    "a catch among others": (*TOOL, "noun.py", "try:\n    x = 1\nexcept (KeyError, Exception) as e:\n    x = e"),
    "a suppression": (*TOOL, "noun.py", "import contextlib\nwith contextlib.suppress(BaseException):\n    x = 1"),
}  # fmt: skip


def _found(sample: tuple[str, str, str, str]) -> list[str]:
    distribution, package, path, source = sample
    return [finding.what for finding in law.findings(source, law.Place(distribution, f"{package}/{path}"))]


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_break_of_the_law_is_found(sample: tuple[str, str, str, str]) -> None:
    assert _found(sample)


LAWFUL = {
    "the contract and itself": (*TOOL, "tool.py", "import harness_hookspecs.kit\nfrom harness_tool_x import noun"),
    "its neighbours by dots": (*TOOL, "__init__.py", "from . import settings\nfrom .noun import thing"),
    "files and processes in the part of the kind": (*TOOL, "tool.py", "import subprocess, socket\nx = open('a')"),
    "anything in the main of a child process": (*TOOL, "worker.py", "import threading, time\nimport random"),
    "anything in the ports": (*CORE, "shell/ports.py", "import threading, time, queue, tempfile"),
    "ports in several modules": (*CORE, "shell/ports_simulated.py", "import random"),
    "ports as a package": (*CORE, "shell/ports/threads.py", "import threading"),
    "anything in the suites": (*CONTRACT, "contracts/store.py", "import threading, tempfile"),
    "the port's own reading": (*CORE, "shell/config.py", "x = ports.files(root).read_bytes('a')"),
    "data of the package": (*CORE, "cli/demo.py", "x = resources.files('p').joinpath('a').read_text()"),
    "a type for checkers alone": (
        *TOOL, "noun.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import threading",
    ),
    "dates without now": (*CORE, "kernel/decide.py", "from datetime import UTC, datetime\nx = datetime(1, 1, 1)"),
    "cleaning up": (*TOOL, "tool.py", "try:\n    x = 1\nexcept BaseException:\n    x = 2\n    raise"),
    "a catch where effects are performed": (*CORE, "shell/perform.py", CATCH),
    "the layers downward": (*CORE, "cli/run.py", "from harness_core.shell import loop\nimport harness_core.kernel"),
}  # fmt: skip


@pytest.mark.parametrize("sample", LAWFUL.values(), ids=LAWFUL)
def test_what_is_allowed_is_not_found(sample: tuple[str, str, str, str]) -> None:
    assert not _found(sample)


def test_a_sample_laid_in_a_folder_is_found(tmp_path: Path) -> None:
    package = tmp_path / "harness-tool-x" / "harness_tool_x"
    package.mkdir(parents=True)
    (package / "noun.py").write_text("import harness_core\n", encoding="utf-8")
    [(file, place)] = law.modules(package.parent)
    [finding] = law.findings(file.read_text(encoding="utf-8"), place)
    assert str(finding) == "harness-tool-x/harness_tool_x/noun.py:1: imports harness_core"


def test_plugins_are_told_apart_by_their_name() -> None:
    kind: Callable[[str, str], str | None] = lambda folder, path: law.Place(folder, path).kind  # noqa: E731
    assert kind("harness-executor-agent", "harness_executor_agent/executor.py") == "executor"
    assert kind("harness-clone-of-it", "harness_core/shell/loop.py") is None
