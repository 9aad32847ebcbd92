"""A snapshot that is used without a look at the log it was made of."""

from __future__ import annotations

import pytest

from harness_core.kernel import snapshot
from harness_core.kernel.state import SessionState
from harness_core.shell import snapshots
from harness_core.shell.machine import SessionMachine
from harness_hookspecs.store import Store

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(snapshots, "from_nearest", _from_nearest)


def _from_nearest(store: Store, machine: SessionMachine, until: int | None = None) -> SessionState:
    found = store.snapshot(f"session:{machine.session_id}", snapshots._MAKER, until=until)
    return machine.new_state() if found is None else snapshot.state_of(found.content[32:])
