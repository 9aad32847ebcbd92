"""A recorded session of 1,000 agent turns goes in, how long its control logic takes to decide the same comes out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from harness_core.shell.machine import SessionMachine
from harness_core.shell.ports import make_ports
from harness_core.shell.redaction import Redactor
from harness_core.shell.replay import replay_control
from harness_core.shell.replay_role import RoleReplay
from harness_hookspecs.store import Store

from ._agent import agent_rig, agent_turns
from ._rig import SESSION_ID, STREAM, session_parts
from ._stores import new_store
from .measure import cpu_microseconds, medians

__all__ = ["skipped_seconds"]

TURNS, ROLE_CALLS, ROUNDS = 100, 10, 5  # a role call has 100 turns at most


def skipped_seconds() -> float:
    """CPU of a replay, the median of some; each enters the role anew for every role call, on the answers of the log."""
    with new_store("NORMAL") as store, tempfile.TemporaryDirectory() as folder:
        agent_turns(store, TURNS, ROLE_CALLS)
        found = medians({"replay": lambda: cpu_microseconds(lambda: _replay(store, Path(folder)), 1)}, rounds=ROUNDS)
    return found["replay"] / 1e6


def _replay(store: Store, folder: Path) -> None:
    parts = session_parts(folder, agent_rig(TURNS, ROLE_CALLS))
    events = list(store.read(STREAM))
    machine = SessionMachine(SESSION_ID, parts.definition, store.blob)
    same: Any = lambda event: parts  # noqa: E731  # nothing was migrated
    site = RoleReplay(SESSION_ID, parts, machine, make_ports("inline"), Redactor(), same, store)
    report = replay_control(events, machine, site)
    assert report.equal, report.diverged
    assert report.roles_entered == ROLE_CALLS
