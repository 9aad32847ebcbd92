"""Goals 2b and 3 for plans: a number of branches goes in, one run of a plan comes out, and the same writes without it.

A step is a tool call of the plan: executor, role harness, dispatcher and store are the ones that are installed. What is
measured begins with the first call, since the check of a plan is paid once and mostly in a process of its own.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pysqlite3 import dbapi2 as sqlite

from harness_executor_workflow.executor import WorkflowExecutor
from harness_hookspecs.store import Draft, Store, StoredEvent
from harness_role_workflow.role import WorkflowRole
from harness_rules_cel.rules import CelRules

from ._rig import STREAM, TOOL, PureTool, Rig, played
from ._stores import Synchronous, new_store

__all__ = ["STEPS", "Commits", "planned", "raw_rate"]

STEPS = 1_000
_LONGEST = 50
"""Steps that a body may have: a longer sequence is one body after another."""


class Commits(NamedTuple):
    """What one run wrote, a pair of rows and contents for each commit since its first call, and what that took."""

    batches: Sequence[tuple[Sequence[tuple[Any, ...]], Mapping[str, bytes]]]
    seconds: float
    cpu_seconds: float


class _Watched:
    """The store, and what was committed when."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits: list[tuple[Sequence[Draft], Mapping[str, bytes], float, float]] = []

    def append(self, stream: str, drafts: Sequence[Draft], **more: Any) -> tuple[StoredEvent, ...]:
        """Append, and remember."""
        done = self._store.append(stream, drafts, **more)
        self.commits.append((drafts, more.get("blobs") or {}, time.perf_counter(), time.process_time()))
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def planned(synchronous: Synchronous, branches: int) -> Commits:
    """Run a plan of so many branches side by side, a thousand steps in all; one branch: one step after another."""
    with new_store(synchronous) as store:
        watched = _Watched(store)
        executor, said = WorkflowExecutor(CelRules), json.dumps({"items": _items(branches)})
        rig = Rig(executor, WorkflowRole(), PureTool(), role_calls=2 * STEPS, plan=_plan(branches), text=said)
        with played(watched, rig) as session:
            session.wait()
            assert session.state.status == "completed", session.state.failure
        commits = watched.commits
    asked = ["role.requested" in [draft.type for draft in drafts] for drafts, *_ in commits]
    first = asked.index(True)
    seq, batches = 0, []
    for drafts, blobs, _, _ in commits[first:]:
        rows = [(STREAM, seq + number, draft.type, draft.payload) for number, draft in enumerate(drafts)]
        batches.append((rows, blobs))
        seq += len(rows)
    begin, end = commits[first], commits[-1]
    return Commits(batches, end[2] - begin[2], end[3] - begin[3])


def _length(branches: int) -> int:
    return min(_LONGEST, STEPS // branches)


def _items(branches: int) -> list[str]:
    return [f"item {number}" for number in range(STEPS // _length(branches))]


def _plan(branches: int) -> dict[str, Any]:
    """Bodies of steps that need each other, in as many branches as it takes to a thousand steps."""
    length, items = _length(branches), _items(branches)
    call = {"uses": "tool.call", "with": {"tool": TOOL, "args": {"at": "{{ item }}"}}, "output": {"mode": "json"}}
    body = [{"id": f"s{number}", **call, "needs": [f"s{number - 1}"] if number else []} for number in range(length)]
    settings = {
        "items": "{{ input.items }}", "itemKey": "{{ item }}", "maxBranches": len(items), "maxConcurrency": branches,
        "failureMode": "fail_fast",
    }  # fmt: skip
    return {
        "apiVersion": "harness.lwir/v1",
        "kind": "Workflow",
        "metadata": {"name": "bench"},
        "input": {"schema": {"type": "object", "required": ["items"], "properties": {"items": {"type": "array"}}}},
        "output": {"schema": True, "value": {"text": "done"}},
        "permissions": {"models": [], "tools": [TOOL]},
        "steps": [{"id": "all", "uses": "parallel", "with": settings, "steps": body}],
    }


def raw_rate(commits: Commits) -> float:
    """Steps per second of the same rows and contents, in the same transactions, by bare statements (FULL)."""
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        database = sqlite.connect(f"{Path(folder)}/raw.db", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        columns = "stream TEXT, seq INTEGER, type TEXT, payload BLOB, UNIQUE (stream, seq)"
        database.execute(f"CREATE TABLE events ({columns})")
        database.execute("CREATE TABLE contents (digest TEXT PRIMARY KEY, content BLOB)")
        begin = time.perf_counter()
        for rows, contents in commits.batches:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
            if contents:
                database.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?)", contents.items())
            database.execute("COMMIT")
        seconds = time.perf_counter() - begin
        database.close()
    return STEPS / seconds
