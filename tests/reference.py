"""A project's settings and a script in, a whole isolated place to run it in out: folders, trust and an effects file.

Shared by the tests that run sessions from outside. Everything lies below one folder, but for the index of plugins,
which all tests of a session share: making it anew tries the import of every plugin in a process of its own.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness_core.shell.config.opening import open_config
from harness_core.shell.config.trust import remember_trust
from harness_core.shell.plugins.index import open_index
from harness_core.shell.ports import make_ports
from harness_hookspecs.store import GENESIS_HASH, Draft, StoredEvent, chain_hash

__all__ = [
    "HARNESS",
    "POLICIES",
    "REFERENCE",
    "Site",
    "calls",
    "cases",
    "change_log",
    "notes",
    "one_stage",
    "payloads",
    "rechained",
    "says",
    "scripted_models",
    "trust",
    "types_of",
    "write_reference",
    "write_site",
]

HARNESS: Sequence[str] = (sys.executable, "-m", "harness_core.cli.main")
"""The command, as the first words of a process."""

_USAGE = {"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 0, "reasoningTokens": 0, "known": True}

PATIENCE_SECONDS = 60.0
"""How long a test waits for what is promised: reached only when the promise is broken."""

POLICIES: Mapping[str, Any] = {"tiers": {"T2": "auto"}, "approver": ["policy"]}
"""T2 runs by itself, T3 asks, and only written rules answer."""


class Site(NamedTuple):
    """One isolated place."""

    project: Path
    env: dict[str, str]
    effects_file: Path

    def enter(self, patch: pytest.MonkeyPatch) -> Site:
        """Make this process see the place and nothing of the person who runs the tests."""
        for name in [name for name in os.environ if name.startswith("HARNESS_")]:
            patch.delenv(name)
        for name, value in self.env.items():
            patch.setenv(name, value)
        patch.chdir(self.project)
        return self

    def process_env(self, **more: str) -> dict[str, str]:
        """The environment of a child process in this place."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HARNESS_")}
        return {**kept, **self.env, **more}

    def effects(self) -> list[dict[str, Any]]:
        """What really happened, a line each: ``{tool, key, args, pid}``."""
        try:
            text = self.effects_file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def wait_for_effects(self, running: Callable[[], bool] = lambda: True) -> None:
        """Wait until something has really happened: that a call was started says only that it is about to.

        Args:
            running: Whether who is to do it still can.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.effects():
            assert running() and time.monotonic() < deadline, "nothing happened"
            time.sleep(0.01)  # the file belongs to another process

    def write(self, name: str, value: Any) -> None:
        """Replace one of the six files, or the script, and trust the project again."""
        _write(self.project, name, value)
        trust(self)


def write_site(
    root: Path, *, stages: Mapping[str, Any], replies: Sequence[Mapping[str, Any]], **files: Mapping[str, Any]
) -> Site:
    """Write a project with one scripted model and trust it.

    Args:
        root: An empty folder.
        stages: The whole of stages.yaml.
        replies: The script.
        files: Other files of the six by name, ``harness`` for example; what is given replaces the usual content.
    """
    project = root / "project"
    (project / ".harness").mkdir(parents=True)
    effects = root / "effects.jsonl"
    env = {f"XDG_{name}_HOME": str(root / name.lower()) for name in ("CONFIG", "DATA", "STATE")}
    cache = str(_shared(root) / "plugin-index")
    env |= {"HOME": str(root), "XDG_CACHE_HOME": cache, "HARNESS_EFFECTS_FILE": str(effects)}
    site = Site(project, env, effects)
    written: dict[str, Any] = {"models": scripted_models(), "policies": POLICIES, "stages": stages, **files}
    for name, value in written.items():
        _write(project, name, value)
    _write(project, "script", {"schema": "harness.script/1", "replies": list(replies)})
    trust(site)
    return site


def _shared(root: Path) -> Path:
    """The folder that all tests of one process share: trying every plugin anew for each of them costs seconds."""
    return next((folder for folder in root.parents if folder.name.startswith(("popen-", "pytest-"))), root.parent)


def scripted_models(*more: str) -> dict[str, Any]:
    """A models.yaml with the scripted model, and others of these names that have the same script."""
    entry = {"provider": "scripted", "script": "script.yaml", "capabilities": ["tool_calling"], "context_size": 32768}
    return {"default": "scripted", "models": dict.fromkeys(("scripted", *more), entry)}


def _write(project: Path, name: str, value: Any) -> None:
    file = project / ("script.yaml" if name == "script" else f".harness/{name}.yaml")
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    file.write_text(text, encoding="utf-8")


def trust(site: Site) -> None:
    """What ``harness trust`` does, without a process for it."""
    ports = make_ports("threads")
    previous = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = site.env["XDG_CACHE_HOME"]
    try:
        records = open_index().records
    finally:
        if previous is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = previous
    found = open_config(site.project, ports, env=site.env, plugins=records)
    assert found.project is not None and found.folders is not None
    remember_trust(ports.files, found.folders.state, found.project, found.untrusted_leaves)
    ports.close()


def one_stage(**stage: Any) -> dict[str, Any]:
    """A stages.yaml with the one stage ``work``; the keys given replace the usual ones."""
    usual = {"role": "worker", "task": "Do it.", "allowed_tools": ["effects"], "on_success": "completed"}
    return {"initial": "work", "stages": {"work": {**usual, **stage}}}


def calls(*asked: tuple[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """A reply that asks for tools of the set ``effects``."""
    return {"tool_calls": [_call(tool, **args) for tool, args in asked], "usage": _USAGE, **more}


def says(text: str, **more: Any) -> dict[str, Any]:
    """A reply that is an artifact of the type ``text``."""
    return {"json": {"text": text}, "usage": _USAGE, **more}


# ------------------------------------------------------------------------------------------ the reference session

REFERENCE = "Write the report."
"""What the reference session is asked."""


def _call(tool: str, **args: Any) -> dict[str, Any]:
    return {"name": f"effects_{tool}", "args": args}


_STAGES: Mapping[str, Any] = {
    "initial": "work",
    "stages": {
        "work": {
            "role": "worker",
            "task": "Do the work.",
            "allowed_tools": ["effects"],
            "transitions": [{"when": 'artifact.status == "success"', "goto": "check"}],
            "on_failure": "failed",
        },
        "check": {
            "role": "checker",
            "task": "Check it.",
            "retry": {"strategy": "corrective", "max_attempts": 2},
            "on_success": "completed",
            "on_failure": "failed",
        },
    },
}

_REPLIES: Sequence[Mapping[str, Any]] = (
    {
        "when": {"stage": "work", "turn": 1},
        "tool_calls": [_call("pure", note="a"), _call("keyed", note="b"), _call("keyed", note="c")],
        "usage": _USAGE,
    },
    {"when": {"stage": "work", "turn": 2}, "tool_calls": [_call("unkeyed", note="d")], "usage": _USAGE},
    {"when": {"stage": "work", "turn": 3}, "tool_calls": [_call("network", note="e")], "usage": _USAGE},
    {"when": {"stage": "work", "turn": 4}, "json": {"text": "The report."}, "usage": _USAGE},
    {"when": {"stage": "check", "attempt": 1}, "error": {"code": "provider.unavailable"}},
    {"when": {"stage": "check"}, "json": {"text": "It is good."}, "usage": _USAGE},
)


def write_reference(root: Path, *, probes: bool = True, **files: Mapping[str, Any]) -> Site:
    """The reference session: two stages, parallel calls, every effect class, one approval and one retry.

    Args:
        root: An empty folder.
        probes: Whether the tools can find out what became of a call; without it an unkeyed one is in doubt.
        files: As for ``write_site``.
    """
    tools = {"tools": {"effects": {"probes": probes}}}
    return write_site(root, stages=_STAGES, replies=_REPLIES, tools=tools, **files)


# ------------------------------------------------------------------------------------------------------- reading


def types_of(events: Any) -> list[str]:
    """The types of stored events, in order."""
    return [event.type for event in events]


def payloads(events: Any, kind: str) -> list[dict[str, Any]]:
    """The payloads of the events of one type, in order."""
    return [json.loads(event.payload) for event in events if event.type == kind]


def notes(site: Site) -> list[str]:
    """The notes of what really happened, in order."""
    return [line["args"].get("note", "") for line in site.effects()]


def cases(name: str) -> dict[str, dict[str, Any]]:
    """The cases of a file in ``tests/cases`` by id."""
    lines = (Path(__file__).parent / "cases" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for line in lines for case in [json.loads(line)]}


# -- logs that were changed ---


def change_log(site: Site, *statements: str) -> None:
    """Change the file as someone with an editor for it would: the triggers are put back afterwards."""
    with closing(sqlite3.connect(Path(site.env["XDG_DATA_HOME"]) / "harness" / "harness.db")) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, statement
        for _, text in triggers:
            connection.execute(text)
        connection.commit()


def rechained(events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
    """The events of a stream with the chain made anew, so that they say what they say and are proved."""
    last = GENESIS_HASH
    for event in events:
        last = chain_hash(last, event.stream, event.seq, Draft(*event[3:10]))
        yield event._replace(hash=last)
