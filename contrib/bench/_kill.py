"""Goal 5: a project in a folder of its own goes in, what came of sessions in it that were killed comes out.

Everything is the installed command in fresh processes: ``harness run``, ``kill -9``, ``harness resume``. What happened
is judged from outside, by the lines that the calls left.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from harness_hookspecs.contracts.distribution import make_distribution

from . import _effects

__all__ = ["Killed", "Shape", "Site"]

Shape = Literal["seq", "fan"]
TURNS: Mapping[Shape, int] = {"seq": 60, "fan": 12}
"""Calls of one branch; one branch of 60, or eight of 12."""

COMMAND = "import sys; from harness_core.cli.main import main; sys.exit(main())"
CHILD = """
import json, sys
from harness_core import Host
with Host.open(".") as host:
    document = host.run("Go.")
print(json.dumps({"mode": "kill-child", "count": int(sys.argv[1]), "status": document["status"]}))
"""
PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.0005


class Killed(NamedTuple):
    """What came of one session that was killed and gone on with."""

    calls: int  # that were made before
    resumed: bool
    lost: int
    repeats: int  # calls made twice, of any effect class
    unkeyed_repeats: int
    most_of_one: int  # how often the call that was made most often was made
    first_step_seconds: float | None  # after exec; None when nothing was left to do


class Site:
    """A trusted project with a scripted model and the tools that leave lines.

    Args:
        folder: An empty folder.
        shape: One branch, or some side by side.
        turns: Calls of a branch, at most 99: the one turn more is the answer.
    """

    def __init__(self, folder: Path, shape: Shape, turns: int | None = None) -> None:
        self.folder, self.shape, self.turns = folder.resolve(), shape, turns or TURNS[shape]
        self.branches = _effects.BRANCHES if shape == "fan" else 1
        self.calls = self.turns * self.branches
        self.file = self.folder / "effects.jsonl"
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(("HARNESS_", "XDG_"))}
        own = {f"XDG_{name}_HOME": str(self.folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        compiled = {"PYTHONPYCACHEPREFIX": str(self.folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
        plugin = {"PYTHONPATH": str(self.folder / "site"), "BENCH_EFFECTS_FILE": str(self.file)}
        self._env = {**inherited, **own, **compiled, **plugin, "HOME": str(self.folder)}

    def make(self) -> None:
        """Write the project and trust it."""
        source = Path(_effects.__file__).read_text(encoding="utf-8")
        make_distribution(self.folder / "site", "bench-effects", provides=_effects.PROVIDES, code=source)
        for name, content in self._files().items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content), encoding="utf-8")
        self.finish(self.start("trust"))

    def _files(self) -> dict[str, Any]:
        model = {"provider": "scripted", "script": "script.yaml", "context_size": 32768}
        stage = {
            "role": "worker",
            "task": "Do it.",
            "allowed_tools": ["bench"],
            "max_turns": self.turns + 1,
            "on_success": "completed",
            "executor": "bench-fan" if self.shape == "fan" else "agent",
        }
        models = {"default": "scripted", "models": {"scripted": {**model, "capabilities": ["tool_calling"]}}}
        calls = [
            {"tool_calls": [{"name": f"bench_{'un' if number % 2 else ''}keyed", "args": {"note": number}}]}
            for number in range(self.turns)
        ]
        replies = [{"when": {"turn": self.turns + 1}, "json": {"text": "Done."}}, *calls]
        return {
            ".harness/models.yaml": models,
            ".harness/harness.yaml": {"run": {"max_turns": self.turns + 1}},
            ".harness/policies.yaml": {"tiers": {"T2": "auto"}},
            ".harness/stages.yaml": {"stages": {"work": stage}},
            "script.yaml": {"schema": "harness.script/1", "replies": replies},
        }

    # -- processes ---

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the command."""
        call = [sys.executable, "-c", COMMAND, *words]
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(call, cwd=self.folder, env=self._env, text=True, **pipes)

    def become(self) -> NoReturn:
        """Turn this process into one that runs a session and prints a line, so that who kills it kills the session."""
        os.chdir(self.folder)
        os.execve(sys.executable, [sys.executable, "-c", CHILD, str(self.turns)], self._env)

    def finish(self, process: subprocess.Popen[str]) -> str:
        """Wait for its end, which must be a good one; gives what it printed."""
        out, errors = process.communicate(timeout=PATIENCE_SECONDS)
        if process.returncode != 0:
            raise RuntimeError(f"the command ended with {process.returncode}: {out[-500:]}{errors[-1500:]}")
        return out

    def lines(self) -> list[dict[str, Any]]:
        """What the calls left."""
        try:
            return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError:
            return []

    # -- one session ---

    def kill(self, point: random.Random) -> int:
        """Begin a session and kill it at a random point; gives how many calls were made."""
        self.file.unlink(missing_ok=True)
        wanted = point.randrange(1, self.calls - self.branches)
        process = self.start("run", "Go.", "--json")
        limit = time.monotonic() + PATIENCE_SECONDS
        while self._count() < wanted:
            if process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"it ended before it could be killed: {process.communicate()}")
            time.sleep(_LOOK_SECONDS)
        time.sleep(point.uniform(0, 2 * _effects.CALL_SECONDS))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return self._count()

    def _count(self) -> int:
        return self.file.read_bytes().count(b"\n") if self.file.exists() else 0

    def go_on(self) -> Killed:
        """Resume the session that was killed, in a process of its own, and see what came of it."""
        before = self._count()
        began = time.monotonic()
        process = self.start("resume", "@last", "--json")
        out, _ = process.communicate(timeout=PATIENCE_SECONDS)
        lines = self.lines()
        made = Counter(line["key"] for line in lines)
        tool_of = {line["key"]: line["tool"] for line in lines}
        new = [line["at"] for line in lines if line["pid"] == process.pid]
        return Killed(
            calls=before,
            resumed=process.returncode == 0 and json.loads(out)["status"] == "completed",
            lost=self.calls - len(made),
            repeats=sum(made.values()) - len(made),
            unkeyed_repeats=sum(count - 1 for key, count in made.items() if tool_of[key] == "bench_unkeyed"),
            most_of_one=max(made.values(), default=0),
            first_step_seconds=min(new) - began if new else None,
        )
