"""Goal 7: imports and whole commands go into fresh processes, their CPU time comes out beside that of others.

Everything is compiled beforehand, as pip leaves what it installs: an environment that forbids bytecode would have our
modules compiled anew in every process, and only ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness_hookspecs.contracts.distribution import make_distribution

from .measure import Figure, at_most, medians

__all__ = ["NAME", "run"]

NAME = "startup"

IMPORTS = {
    "bare": "pass",
    # Where psycopg is installed peewee takes as long again to load it, which is none of the three.
    "libraries": "import sys; sys.modules['psycopg'] = None; import peewee, pydantic, orjson",
    "ours": "import harness_store_sqlite.store; from harness_core import Host",
}
COMMANDS = {
    "version": ("--version",),
    "plugins": ("plugins", "list"),
    "run": ("run", "Say something.", "--json"),
}
COMMAND = "import sys; from harness_core.cli.main import main; sys.exit(main())"
FILES: Mapping[str, Any] = {
    ".harness/models.yaml": {
        "default": "scripted",
        "models": {"scripted": {"provider": "scripted", "script": "script.yaml", "context_size": 32768}},
    },
    ".harness/stages.yaml": {"stages": {"work": {"role": "worker", "task": "Do it.", "on_success": "completed"}}},
    "script.yaml": {"schema": "harness.script/1", "replies": [{"json": {"text": "Done."}}]},
}
ROUNDS = 11


def run() -> Iterator[Figure]:
    """The interpreter's own start is taken off the imports, and is the measure of the commands."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        _make_project(site)
        contestants = {name: _started(site, code) for name, code in IMPORTS.items()}
        contestants |= {name: _started(site, COMMAND, *words) for name, words in COMMANDS.items()}
        contestants["plugins.hundred"] = _started(site, COMMAND, *COMMANDS["plugins"], path=_hundred_plugins(site))
        for start in contestants.values():  # compiles, and fills the index of plugins
            start()
        found = medians(contestants, rounds=ROUNDS)
    bare = found["bare"]
    libraries = ("peewee, pydantic and orjson", found["libraries"] - bare)
    yield at_most("startup.import", found["ours"] - bare, "ms CPU", of=libraries, must=1.3, aim=1.0)
    interpreter = ("a bare Python", bare)
    for name, limit in (("version", 3.0), ("plugins", 6.0), ("run", 20.0)):
        yield at_most(f"startup.{name}", found[name], "ms CPU", of=interpreter, must=limit, aim=limit)
    few = ("no plugin beside ours", found["plugins"])
    yield at_most("startup.plugins.hundred", found["plugins.hundred"], "ms CPU", of=few, must=1.2, aim=1.2)


def _make_project(site: Path) -> None:
    """A project with one stage and a scripted model, trusted."""
    for name, content in FILES.items():
        file = site / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content), encoding="utf-8")
    _started(site, COMMAND, "trust")()


def _hundred_plugins(site: Path) -> str:
    """A folder of a hundred installed distributions, each with a tool."""
    folder = site / "hundred"
    for number in range(100):
        make_distribution(folder, f"dummy-{number}", provides=[{"kind": "tool", "name": f"t{number}"}])
    return str(folder)


def _started(site: Path, code: str, *words: str, path: str = "") -> Callable[[], float]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HARNESS_", "PYTHON", "XDG_"))}
    env |= {"HOME": str(site), "PYTHONPYCACHEPREFIX": str(site / "compiled"), "PYTHONPATH": path}

    def milliseconds() -> float:
        process = subprocess.Popen([sys.executable, "-c", code, *words], cwd=site, env=env, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, (code, words)
        return (used.ru_utime + used.ru_stime) * 1000

    return milliseconds
